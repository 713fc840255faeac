"""Before an attempt: everything that it mounts lies ready on this machine."""

import errno
import shutil
from pathlib import Path

from hublet.core.database import Database, DatabaseUnavailable, Reader
from hublet.core.errors import HubError
from hublet.jobs.asking import mounts
from hublet.jobs.creators import get_creator
from hublet.jobs.errors import SpaceNotFound, VolumeNotFound, VolumeNotWritable
from hublet.jobs.launch_threads import in_launch_thread
from hublet.jobs.records import Job, Mount, Spec, VolumeType
from hublet.jobs.runners.records import Bind, CannotRun, TryLater
from hublet.jobs.volumes import checkouts, handing, repositories, spaces
from hublet.jobs.volumes.appearing import appearing
from hublet.jobs.volumes.copying import copy
from hublet.jobs.volumes.nesting import framed, rooms_in
from hublet.jobs.volumes.places import bucket_of, content_of, frame_of
from hublet.jobs.volumes.records import Prepared
from hublet.repos import service as repos
from hublet.repos.cards.reading import read_card
from hublet.repos.records import Repo, Right
from hublet.repos.refs import service as refs
from hublet.tokens.records import Caller

_MAIN = "main"


async def prepare(database: Database, job: Job, *, folder: Path) -> Prepared:
    """Put what a job mounts where an attempt finds it; `folder` is the attempt's own.

    May be asked again for the same attempt, also while it runs. Rights are those that the
    creator has now. Raises CannotRun or TryLater. No transaction may be open.
    """
    try:
        return await _prepare(database, job, folder)
    except DatabaseUnavailable as error:
        raise TryLater(error.message.rstrip(".")) from error
    except HubError as error:
        raise CannotRun(error.message.rstrip(".")) from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise CannotRun("its volumes have a path that is too long for this machine") from None
        raise TryLater(f"its volumes cannot be written: {error.strerror}") from error


async def _prepare(database: Database, job: Job, folder: Path) -> Prepared:
    async with database.read() as conn:
        creator = await get_creator(conn, job.creator_id)
        sources = [await _source(conn, creator, *each) for each in enumerate(job.spec.mounts)]
    placed = [
        bind
        for place, repo in enumerate(sources)
        for bind in await _binds(database, job.spec, place, repo, folder)
    ]
    # What lies in another mounted folder comes after that one.
    binds = tuple(sorted(placed, key=lambda bind: bind.target))
    if job.spec.space is not None:
        return await _with_space(database, creator, job, folder, binds)
    argv = (*(job.spec.command or ()), *(job.spec.arguments or ()))
    return Prepared(image=job.spec.image or "", content=None, argv=argv, binds=binds)


async def _source(conn: Reader, creator: Caller, place: int, mount: Mount) -> Repo:
    repo = await mounts.get_mounted(conn, creator, mount)
    if repo is None:
        raise VolumeNotFound(place, mount.type, mount.source)
    if not mount.read_only and not await repos.may(conn, creator, repo, Right.write):
        raise VolumeNotWritable(place, mount.source)
    return repo


async def _binds(
    database: Database, spec: Spec, place: int, repo: Repo, folder: Path
) -> list[Bind]:
    mount = spec.mounts[place]
    rooms = rooms_in(mount.mount_path, [other.mount_path for other in spec.mounts])
    if mount.type is VolumeType.bucket:
        target = bucket_of(folder, place)
        source = await handing.hand_over(database, repo, mount, target, rooms=rooms)
        return [Bind(source=source, target=mount.mount_path, read_only=bool(mount.read_only))]
    whole = await repositories.checkout(database, repo, mount.commit or repo.head_sha or "")
    inside = await in_launch_thread(checkouts.find_inside, whole, mount.path)
    if inside is None:
        raise CannotRun(f"volumes[{place}]: {mount.source} has no folder {mount.path}")
    bind = Bind(source=inside, target=mount.mount_path, read_only=True)
    return await in_launch_thread(framed, bind, rooms, frame=frame_of(folder, place))


async def _with_space(
    database: Database, creator: Caller, job: Job, folder: Path, binds: tuple[Bind, ...]
) -> Prepared:
    name = job.spec.space or ""
    async with database.read() as conn:
        asked = Mount(type=VolumeType.space, source=name, mount_path="/app", read_only=True)
        repo = await mounts.get_mounted(conn, creator, asked)
        if repo is None:
            raise SpaceNotFound(name)
        commit = await refs.get_sha(conn, repo, _MAIN)
    whole = await repositories.checkout(database, repo, commit)
    data_dir = database.hub.settings.database.data_dir
    git = checkouts.checkout_of(data_dir, repo_id=repo.id, commit=commit).git
    card = await in_launch_thread(read_card, git, commit, repo.type)
    argv = spaces.argv_of(job.spec, repo, card.data)
    content = content_of(folder)
    await in_launch_thread(_copy_content, whole, content)
    return Prepared(image=spaces.image_of(name), content=content, argv=argv, binds=binds)


def _copy_content(source: Path, target: Path) -> None:
    """Give an attempt the files of a space as its own, to write to as well; once."""
    if not target.exists():
        with appearing(target) as folder:
            shutil.copytree(
                source, folder, symlinks=True, copy_function=_copy_open, dirs_exist_ok=True
            )


def _copy_open(source: str, target: str) -> None:
    # A job may not be the hub's own user; nobody else gets as far as this folder.
    copy(Path(source), Path(target), mode=Path(source).stat().st_mode | 0o666)
