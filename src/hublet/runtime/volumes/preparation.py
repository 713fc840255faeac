"""Preparation of an attempt: puts its volumes, and the files of its space, on this machine."""

import errno
import shutil
from pathlib import Path
from typing import Any

from hublet.core.database import Database
from hublet.core.errors import HubError, Unavailable
from hublet.core.folders import atomic_dir
from hublet.jobs.access import get_delegate_of_job, get_mounted, get_space
from hublet.jobs.records import JobRecord, Spec, VolumeType
from hublet.repos.cards import read_card
from hublet.repos.records import Repo
from hublet.repos.refs import service as refs
from hublet.runtime.errors import CannotRun, CannotRunYet
from hublet.runtime.launch_threads import run_in_launch_thread
from hublet.runtime.records import BindMount
from hublet.runtime.volumes import bucket_mounts, checkouts
from hublet.runtime.volumes.checkouts import copy_file
from hublet.runtime.volumes.mount_frames import frame_binds, mount_points_in
from hublet.runtime.volumes.records import (
    SNAPSHOT,
    PreparedAttempt,
    bucket_folder,
    frame_folder,
    space_folder,
)
from hublet.tokens.records import Caller

_DEFAULT_FILE = "app.py"
_MAIN = "main"
# Why a space of this SDK has no command.
_NO_COMMAND = {
    "docker": "the space {} is made by its Dockerfile, which this hub does not build: "
    "give the job a command",
    "static": "the space {} is static and has nothing to run: give the job a command",
}


async def prepare(database: Database, job: JobRecord, *, folder: Path) -> PreparedAttempt:
    """Put the volumes of a job on this machine; `folder` is the attempt's own.

    May be called again for the same attempt, also while it runs. The rights are those that
    the creator delegated to the job and still has. Raises CannotRun or CannotRunYet. No transaction
    may be open.
    """
    try:
        return await _prepare(database, job, folder)
    except Unavailable as error:
        raise CannotRunYet(error.message.rstrip(".")) from error
    except HubError as error:
        raise CannotRun(error.message.rstrip(".")) from None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise CannotRun("its volumes have a path that is too long for this machine") from None
        raise CannotRunYet(f"its volumes cannot be written: {error.strerror}") from error


async def _prepare(database: Database, job: JobRecord, folder: Path) -> PreparedAttempt:
    async with database.read() as conn:
        creator = await get_delegate_of_job(conn, job)
        sources = [await get_mounted(conn, creator, *each) for each in enumerate(job.spec.mounts)]
    placed = [
        bind
        for place, repo in enumerate(sources)
        for bind in await _binds(database, job.spec, place, repo, folder)
    ]
    # A volume inside of another comes after that one.
    binds = tuple(sorted(placed, key=lambda bind: bind.target))
    if job.spec.space is not None:
        return await _prepare_space(database, creator, job, folder, binds)
    argv = (*(job.spec.command or ()), *(job.spec.arguments or ()))
    return PreparedAttempt(image=job.spec.image or "", content=None, argv=argv, binds=binds)


async def _binds(
    database: Database, spec: Spec, place: int, repo: Repo, folder: Path
) -> list[BindMount]:
    mount = spec.mounts[place]
    mount_points = mount_points_in(mount.mount_path, [other.mount_path for other in spec.mounts])
    if mount.type is VolumeType.bucket:
        target = bucket_folder(folder, place)
        source = await bucket_mounts.mount_bucket(
            database, repo, mount, target, mount_points=mount_points
        )
        is_written = not mount.read_only
        return [
            BindMount(
                source=source,
                target=mount.mount_path,
                read_only=not is_written,
                snapshot=target / SNAPSHOT if is_written else None,
            )
        ]
    whole = await checkouts.ensure_checkout(database, repo, mount.commit or repo.head_sha or "")
    inside = await run_in_launch_thread(checkouts.find_inside, whole, mount.path)
    if inside is None:
        raise CannotRun(f"volumes[{place}]: {mount.source} has no folder {mount.path}")
    bind = BindMount(source=inside, target=mount.mount_path, read_only=True)
    return await run_in_launch_thread(
        frame_binds, bind, mount_points, frame=frame_folder(folder, place)
    )


async def _prepare_space(
    database: Database, creator: Caller, job: JobRecord, folder: Path, binds: tuple[BindMount, ...]
) -> PreparedAttempt:
    name = job.spec.space or ""
    async with database.read() as conn:
        repo = await get_space(conn, creator, name)
        commit = await refs.get_sha(conn, repo, _MAIN)
    whole = await checkouts.ensure_checkout(database, repo, commit)
    data_dir = database.hub.settings.database.data_dir
    git = checkouts.checkout_of(data_dir, repo_id=repo.id, commit=commit).git
    card = await run_in_launch_thread(read_card, git, commit, repo.type)
    argv = space_argv(job.spec, repo, card.data)
    content = space_folder(folder)
    await run_in_launch_thread(_copy_content, whole, content)
    return PreparedAttempt(image=space_image(name), content=content, argv=argv, binds=binds)


def space_image(name: str) -> str:
    """Return the name under which the operator maps an image for a space."""
    return f"spaces/{name}"


def space_argv(spec: Spec, space: Repo, card: dict[str, Any] | None) -> tuple[str, ...]:
    """Return the command of the job, or else the one that the card of the space names."""
    if spec.command is not None:
        return (*spec.command, *(spec.arguments or ()))
    fields = card or {}
    sdk = fields.get("sdk") or space.sdk
    if sdk in {"docker", "static"}:
        raise CannotRun(_NO_COMMAND[sdk].format(space.full_name))
    file = fields.get("app_file")
    file = file if isinstance(file, str) and file else _DEFAULT_FILE
    start = ("streamlit", "run") if sdk == "streamlit" else ("python",)
    return (*start, file, *(spec.arguments or ()))


def _copy_content(source: Path, target: Path) -> None:
    """Copy the files of a space for an attempt, which may write to them; only once."""
    if not target.exists():
        with atomic_dir(target) as folder:
            shutil.copytree(
                source, folder, symlinks=True, copy_function=_copy_open, dirs_exist_ok=True
            )


def _copy_open(source: str, target: str) -> None:
    # A job may run as another user than the hub; nobody else can reach this folder.
    copy_file(Path(source), Path(target), mode=Path(source).stat().st_mode | 0o666)
