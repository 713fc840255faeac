"""Feed of changes: what happens to the files of a bucket or container, for clients that follow it.

Changes are noted while somebody follows the bucket, in the transaction that makes them, and stay for a
quarter of an hour: a client that was cut off goes on after the last change that it heard of, at any
node. Who was away for longer is told to begin anew (`reset`).
"""

import asyncio
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from datetime import timedelta
from typing import Any

import msgspec

from hublet.core import metadata
from hublet.core.clock import micros, monotonic, wire
from hublet.core.database import Connection, Database, Reader
from hublet.core.dataclasses import dataclass
from hublet.repos.errors import RepoNotFound
from hublet.repos.files import store
from hublet.repos.files.records import File

_CHANNEL = "file-changes"
_KEPT = timedelta(minutes=15) // timedelta(microseconds=1)
# How long a bucket counts as followed after its follower gave a sign of life.
_FOLLOWED = 2 * _KEPT
KEEP_ALIVE_SECONDS = 15.0
_LOOK_SECONDS = 1.0
_LEAST_PAUSE_SECONDS = 0.1
_CHANGES_PER_EVENT = 1000
_EVENTS_AT_ONCE = 100
_SWEPT_AT_ONCE = 1000
# Names of the values; what is noted has its time at the end, in microseconds.
_FOLLOWERS, _CHANGES = "followed files ", "changed files "
_END = "~"


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """From when to when changes of a bucket are noted, in microseconds."""

    start: int
    end: int


async def note_changes(
    conn: Connection,
    repo_id: str,
    *,
    added: Sequence[File] = (),
    before: Mapping[str, File],
    removed: Iterable[str] = (),
) -> None:
    """Note changes of a repository that is locked, if anybody follows it; `before` is what was there."""
    following = await _find_following(conn, repo_id)
    if following is None or following.end < micros():
        return
    # Clocks of nodes differ, and nobody who follows may have heard of a later moment.
    latest = max(following.start, await _find_last(conn, repo_id))
    at = max(micros(), latest + 1)
    changes = list(_describe(added, before, removed))
    for number, start in enumerate(range(0, len(changes), _CHANGES_PER_EVENT)):
        text = msgspec.json.encode(changes[start : start + _CHANGES_PER_EVENT]).decode()
        await metadata.set_value(conn, _name(repo_id, at + number), text)
    conn.wake(_CHANNEL)


async def _find_last(conn: Reader, repo_id: str) -> int:
    """Return when the last change was noted; 0: there is none."""
    last = await metadata.find_last(conn, after=_name(repo_id, 0), before=_name(repo_id, None))
    return int(last.rpartition(" ")[2]) if last else 0


def _describe(
    added: Sequence[File], before: Mapping[str, File], removed: Iterable[str]
) -> Iterator[dict[str, Any]]:
    for file in added:
        change = {
            "path": file.path,
            "op": "update" if file.path in before else "add",
            "size": file.size,
            "uploadedAt": wire(file.uploaded_at),
            "mtime": wire(file.modified_at),
        }
        yield change if file.xet_hash is None else change | {"xetHash": file.xet_hash}
    for path in removed:
        yield {"path": path, "op": "delete"}


def _name(repo_id: str, at: int | None) -> str:
    """Return the name of what was noted at a moment; None: the end of all names."""
    return f"{_CHANGES}{repo_id} {_END if at is None else f'{at:016d}'}"


async def _find_following(conn: Reader, repo_id: str) -> Following | None:
    found = await metadata.find(conn, _FOLLOWERS + repo_id)
    return None if found is None else msgspec.json.decode(found, type=Following)


async def follow(conn: Connection, repo_id: str) -> tuple[Following, int]:
    """Note from now on what changes; return since when that is so, and when it changed last.

    It waits for those who are changing the repository: what they did not note is committed then.
    """
    changed_at = await store.lock_unchanged_repo(conn, repo_id)
    if changed_at is None:
        raise RepoNotFound
    now, known = micros(), await _find_following(conn, repo_id)
    start = known.start if known is not None and known.end >= now else now
    following = Following(start=max(start, now - _KEPT), end=now + _FOLLOWED)
    text = msgspec.json.encode(following).decode()
    await metadata.set_value(conn, _FOLLOWERS + repo_id, text)
    await metadata.remove_range(
        conn, after=_name(repo_id, 0), before=_name(repo_id, following.start)
    )
    return following, changed_at


async def forget_changes(conn: Connection) -> None:
    """Remove what was noted of repositories that nobody follows any more."""
    after = _FOLLOWERS
    while found := await metadata.list_range(
        conn, after=after, before=_FOLLOWERS + _END, limit=_SWEPT_AT_ONCE
    ):
        for name, value in found:
            if msgspec.json.decode(value, type=Following).end < micros():
                repo_id = name.removeprefix(_FOLLOWERS)
                await metadata.remove_range(
                    conn, after=_name(repo_id, 0), before=_name(repo_id, None)
                )
                await metadata.remove_range(conn, after=name[:-1], before=f"{name} ")
        after = found[-1][0]


async def stream_changes(
    database: Database,
    repo_id: str,
    position: int | None,
    *,
    check_access: Callable[[], Awaitable[object]],
    stopping: asyncio.Event,
) -> AsyncGenerator[str]:
    """Yield the changes after a position, then `ready`, then those that come; None: only those.

    A position is a moment in microseconds. The access is checked before a change is told.
    """
    with database.subscribe(_CHANNEL) as wakes:
        async with database.transaction() as conn:
            following, changed_at = await follow(conn, repo_id)
            last = await _find_last(conn, repo_id)
        if position is not None and _is_missed(position, following, changed_at):
            yield _event("reset", {"reason": "Older changes are not kept: list the files again."})
            return
        position = max(following.start, last if position is None else position)
        async for at, event in _replay(database, repo_id, position):
            yield event
            position = at
        yield _event("ready", {"cursor": str(position)})
        renewed_at = monotonic()
        while not stopping.is_set():
            is_due = monotonic() >= renewed_at + KEEP_ALIVE_SECONDS
            # A wake-up by another process may be lost.
            if await wakes.wait(timeout=_LOOK_SECONDS) or is_due:
                async for at, event in _replay(database, repo_id, position):
                    await check_access()
                    yield event
                    position = at
            if is_due:
                await check_access()
                async with database.transaction() as conn:
                    await follow(conn, repo_id)
                yield ": keep-alive\n\n"
                renewed_at = monotonic()
            await asyncio.sleep(_LEAST_PAUSE_SECONDS)
        yield _event("reconnect", {"cursor": str(position)})


def _is_missed(position: int, following: Following, changed_at: int) -> bool:
    """Tell whether something changed after a position that was not noted."""
    # Responses cut times to milliseconds, and a client asks with the time of the last change.
    return position < following.start and changed_at // 1000 > position // 1000


async def _replay(database: Database, repo_id: str, after: int) -> AsyncGenerator[tuple[int, str]]:
    """Yield all events after a position, each with its own."""
    while True:
        async with database.read() as conn:
            found = await metadata.list_range(
                conn,
                after=_name(repo_id, after),
                before=_name(repo_id, None),
                limit=_EVENTS_AT_ONCE,
            )
        for name, value in found:
            after = int(name.rpartition(" ")[2])
            changes = msgspec.Raw(value.encode())
            yield after, _event("changes", {"cursor": str(after), "changes": changes})
        if not found:
            return


def _event(name: str, data: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {msgspec.json.encode(data).decode()}\n\n"
