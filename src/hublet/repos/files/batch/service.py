"""Rules of a batch: everything is checked, then everything is done, in one transaction."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

from hublet.core.clock import now
from hublet.core.database import Connection, Database, Reader
from hublet.core.errors import InvalidRequest, NotAllowed, NotFound
from hublet.repos import service as repos
from hublet.repos.blobs import store as blobs
from hublet.repos.blobs.folder import Spool
from hublet.repos.blobs.records import Blob
from hublet.repos.files import service, store
from hublet.repos.files.batch.errors import BatchFailed, Failure
from hublet.repos.files.batch.records import Addition
from hublet.repos.files.errors import PATH_TAKEN, PathTaken
from hublet.repos.files.records import File, Removal
from hublet.repos.paths import check_path
from hublet.repos.records import Repo, RepoAddress, Right
from hublet.tokens.records import Caller

Operations = Sequence[Addition | Removal]


async def run(
    database: Database, caller: Caller, address: RepoAddress, operations: Operations
) -> None:
    """Do every operation, or raise BatchFailed with those that cannot be done."""
    async with database.read() as conn:
        await repos.get(conn, caller, address, Right.write)
    if failures := _failures_of_paths(operations):
        raise BatchFailed(failures, of=len(operations))
    data_dir = database.hub.settings.database.data_dir
    arrived = await asyncio.to_thread(_keep_contents, data_dir, operations)
    async with database.transaction() as conn:
        repo = await repos.get(conn, caller, address, Right.write)
        await blobs.add(conn, arrived.values())
        await _do(conn, caller, repo, operations, arrived)


def _failures_of_paths(operations: Operations) -> list[Failure]:
    times = Counter(operation.path for operation in operations)
    failures = []
    for path, count in times.items():
        try:
            check_path(path)
        except InvalidRequest as error:
            failures.append(Failure(path=path, error=error.message))
        else:
            if count > 1:
                failures.append(Failure(path=path, error="A batch names each path once."))
    return failures


def _keep_contents(data_dir: Path, operations: Operations) -> dict[str, Blob]:
    """Write down the contents that came along; return them by the path of their file."""
    arrived = {}
    for operation in operations:
        if isinstance(operation, Addition) and operation.content is not None:
            with Spool(data_dir) as spool:
                spool.write(operation.content)
                arrived[operation.path] = spool.keep()
    return arrived


async def _do(
    conn: Connection,
    caller: Caller,
    repo: Repo,
    operations: Operations,
    arrived: dict[str, Blob],
) -> None:
    borrowed = [o for o in operations if isinstance(o, Addition) and o.path not in arrived]
    found, failures = await _find_contents(conn, caller, repo, borrowed)
    if failures:
        raise BatchFailed(failures, of=len(operations))
    contents, at = arrived | found, now()
    changes = [o if isinstance(o, Removal) else _file(o, contents[o.path], at) for o in operations]
    try:
        await service.change(conn, caller, repo, changes)
    except PathTaken as error:
        taken = [Failure(path=path, error=PATH_TAKEN.capitalize()) for path in error.paths]
        raise BatchFailed(taken, of=len(operations)) from None


def _file(addition: Addition, content: Blob, at: datetime) -> File:
    return File(
        path=addition.path,
        sha256=content.sha256,
        size=content.size,
        media_type=addition.media_type,
        modified_at=addition.modified_at or at,
        uploaded_at=at,
    )


async def _find_contents(
    conn: Reader, caller: Caller, repo: Repo, additions: Sequence[Addition]
) -> tuple[dict[str, Blob], list[Failure]]:
    """Look for what the hub is said to have already, in the repositories that are named."""
    found: dict[str, Blob] = {}
    failures: list[Failure] = []
    for source in dict.fromkeys(addition.source for addition in additions):
        wanted = [addition for addition in additions if addition.source == source]
        try:
            holder = repo if source is None else await _get_source(conn, caller, source)
        except (NotFound, NotAllowed) as error:
            failures += [Failure(path=a.path, error=error.message) for a in wanted]
            continue
        held = await _sizes(conn, holder, {a.sha256 for a in wanted if a.sha256})
        for addition in wanted:
            if addition.sha256 in held:
                content = Blob(sha256=addition.sha256, size=held[addition.sha256])
                found[addition.path] = content
            else:
                failures.append(Failure(path=addition.path, error=_not_held(addition, holder)))
    return found, failures


async def _get_source(conn: Reader, caller: Caller, source: RepoAddress) -> Repo:
    return await repos.get(conn, caller, source, Right.read)


async def _sizes(conn: Reader, repo: Repo, digests: Iterable[str]) -> dict[str, int]:
    """Return, by digest, the sizes of the contents that a repository has."""
    if not repo.type.has_git:
        return await store.sizes_of(conn, repo.id, digests)
    held = await blobs.find_in_repo(conn, repo.id, digests)
    return {sha256: blob.size for sha256, blob in held.items()}


def _not_held(addition: Addition, holder: Repo) -> str:
    if addition.sha256 is None:
        return "One of content, sha256 and xetHash is needed."
    return (
        f"{holder.full_name} has no content {addition.sha256}. This hub has no Xet storage: "
        "send the content in base64, or put the file with PUT."
    )
