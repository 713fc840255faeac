"""Buckets as volumes: an attempt gets a copy, and what it changed goes back when it has ended."""

from collections.abc import Sequence
from pathlib import Path

from hublet.core.database import Database
from hublet.jobs.launch_threads import in_launch_thread
from hublet.jobs.records import Mount
from hublet.jobs.runners.records import CannotRun
from hublet.jobs.volumes import buckets
from hublet.jobs.volumes.appearing import appearing
from hublet.jobs.volumes.places import FILES, NOTE
from hublet.jobs.volumes.records import Handed
from hublet.repos.blobs.folder import path_of
from hublet.repos.files import service as files
from hublet.repos.files.records import File
from hublet.repos.records import Repo

_PAGE = 1000


async def hand_over(
    database: Database, repo: Repo, mount: Mount, target: Path, *, rooms: Sequence[str]
) -> Path:
    """Return the folder with the files of a bucket, below one that is filled the first time.

    `rooms` are the folders in it on which other volumes are mounted.
    """
    if not await in_launch_thread(target.exists):
        prefix = prefix_of(mount)
        data_dir = database.hub.settings.database.data_dir
        contents = {
            file.path.removeprefix(prefix): (file.sha256, path_of(data_dir, file.sha256))
            for file in await _list_files(database, repo, prefix)
        }
        for room in rooms:
            if not contents.keys().isdisjoint((*buckets.above(room), room)):
                where = f"{mount.mount_path}/{room}"
                raise CannotRun(
                    f"Nothing can be mounted at {where}: {mount.source} has a file there"
                )
        await in_launch_thread(_fill, target, repo.id, contents, rooms)
    return target / FILES


def prefix_of(mount: Mount) -> str:
    """Return what the paths of the mounted files begin with in their bucket."""
    return f"{mount.path}/" if mount.path else ""


def _fill(target: Path, repo_id: str, contents: buckets.Contents, rooms: Sequence[str]) -> None:
    with appearing(target) as folder:
        seen = buckets.fill(folder / FILES, contents, rooms=rooms)
        buckets.note(folder / NOTE, Handed(repo_id=repo_id, files=seen))


async def _list_files(database: Database, repo: Repo, prefix: str) -> list[File]:
    found: list[File] = []
    async with database.read() as conn:
        while True:
            after = found[-1].path if found else ""
            page = await files.list_tree(
                conn, repo, prefix=prefix, after=after, limit=_PAGE, recursive=True
            )
            found += [entry for entry in page if isinstance(entry, File)]
            if len(page) < _PAGE:
                return found
