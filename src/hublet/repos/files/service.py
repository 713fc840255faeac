"""Files of buckets: lookup, lists, and changes with their totals and events."""

from collections.abc import Iterable, Sequence

from hublet.core.database import Connection, Reader
from hublet.core.errors import NotAllowed
from hublet.core.outbox import publish_many
from hublet.events import RepoFilesUpdated, UpdatedFile
from hublet.repos import blobs_store
from hublet.repos.errors import (
    ConditionFailed,
    FileNotFound,
    OwnerNotFound,
    PathTakenInBucket,
    RepoNotFound,
)
from hublet.repos.files import store
from hublet.repos.files.changes import note_changes
from hublet.repos.files.records import Condition, File, FileChange, FileOrFolder, FileRemoval
from hublet.repos.names import is_of_registry, paths_above
from hublet.repos.records import Repo, RepoType
from hublet.repos.service import snapshot
from hublet.repos.usage import check_quota
from hublet.storage.contents import ContentSource
from hublet.storage.object_store import open_store
from hublet.tokens.errors import TokenNeeded
from hublet.tokens.records import Caller

FILES_PER_EVENT = 1000
# A namespace that stands for the caller's own.
ME = "me"

_ALWAYS = Condition()


async def find(conn: Reader, repo: Repo, path: str) -> File | None:
    return await store.find(conn, repo.id, path)


async def get(conn: Reader, repo: Repo, path: str) -> File:
    file = await find(conn, repo, path)
    if file is None:
        raise FileNotFound(path, full_name=repo.full_name)
    return file


async def open_content(conn: Reader, repo: Repo, file: File) -> ContentSource:
    """Return what reads the bytes of a file."""
    found = await blobs_store.find_contents(conn, repo.id, [file.sha256])
    return ContentSource(open_store(conn.hub.settings), found[file.sha256])


async def list_tree(
    conn: Reader, repo: Repo, *, prefix: str, after: str, limit: int, recursive: bool
) -> list[FileOrFolder]:
    """Return the files below a prefix: all of them, or the nearest files and folders."""
    listing = store.list_files if recursive else store.list_entries
    return await listing(conn, repo.id, prefix=prefix, after=after, limit=limit)


async def change_files(
    conn: Connection,
    caller: Caller,
    repo: Repo,
    changes: Sequence[FileChange],
    *,
    on: Condition = _ALWAYS,
) -> None:
    """Store and remove files, each path once; totals and events change in the same transaction.

    The contents must be blobs already. Of two changes at once, the second waits for the first.
    """
    for change in changes:
        check_writable(repo, change.path)
    if not await store.lock_repo(conn, repo.id):
        raise RepoNotFound
    before = await store.find_all(conn, repo.id, [change.path for change in changes])
    for change in changes:
        if not on.holds(before.get(change.path)):
            raise ConditionFailed(change.path)
    added = [change for change in changes if isinstance(change, File)]
    removed = [
        before[change.path]
        for change in changes
        if isinstance(change, FileRemoval) and change.path in before
    ]
    await store.remove(conn, repo.id, [file.path for file in removed])
    await _check_paths(conn, repo, [file.path for file in added])
    await store.put(conn, repo.id, added)
    await store.remove_uploads(conn, repo.id, [file.sha256 for file in added])
    await note_changes(
        conn, repo.id, added=added, before=before, removed=[file.path for file in removed]
    )
    replaced = [before[file.path] for file in added if file.path in before]
    growth = _size(added) - _size(replaced) - _size(removed)
    await store.add_totals(
        conn, repo.id, size=growth, files=len(added) - len(replaced) - len(removed)
    )
    if growth > 0:
        await check_quota(conn, repo.owner_id, 0)
    new = [file for file in added if file.sha256 not in _digest(before.get(file.path))]
    await _publish(
        conn, caller, repo, [*_updated_files("add", new), *_updated_files("delete", removed)]
    )


def check_writable(repo: Repo, path: str) -> None:
    """Refuse a path of a container that only its registry changes."""
    if repo.type is RepoType.container and is_of_registry(path):
        raise NotAllowed(
            f"{path} belongs to the container registry: blobs and manifests are pushed and deleted "
            "by docker, podman and their like, not as files."
        )


async def _check_paths(conn: Reader, repo: Repo, paths: Sequence[str]) -> None:
    above = {folder for path in paths for folder in paths_above(path)}
    files = {*await store.find_all(conn, repo.id, above), *above.intersection(paths)}
    folders = set(await store.folders_among(conn, repo.id, paths))
    taken = [p for p in paths if p in folders or not files.isdisjoint(paths_above(p))]
    if taken:
        raise PathTakenInBucket(taken)


def _size(files: Iterable[File]) -> int:
    return sum(file.size for file in files)


def _digest(file: File | None) -> tuple[str, ...]:
    return (file.sha256,) if file else ()


def _updated_files(action: str, files: Iterable[File]) -> list[UpdatedFile]:
    return [
        UpdatedFile(
            path=file.path,
            action=action,
            sha256=file.sha256,
            xet_hash=file.xet_hash,
            size=file.size,
        )
        for file in files
    ]


async def _publish(
    conn: Connection, caller: Caller, repo: Repo, updated: Sequence[UpdatedFile]
) -> None:
    events = [
        RepoFilesUpdated(
            repo=snapshot(repo),
            updated_files=tuple(updated[start : start + FILES_PER_EVENT]),
            actor_id=caller.user_id,
        )
        for start in range(0, len(updated), FILES_PER_EVENT)
    ]
    if events:
        await publish_many(conn, events)


async def get_owner_name(conn: Reader, caller: Caller | None, namespace: str) -> str:
    """Return the name of the user or organization that a namespace stands for."""
    if namespace == ME:
        if caller is None:
            raise TokenNeeded
        return caller.user_name
    if not await store.owner_exists(conn, namespace):
        raise OwnerNotFound(namespace)
    return namespace
