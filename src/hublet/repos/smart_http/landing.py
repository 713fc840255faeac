"""How a push that was taken apart becomes real: looked through, let in, and then the refs move."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from hublet.core.database import Connection, Database, Reader
from hublet.core.light_dataclasses import dataclass
from hublet.events import UpdatedRef
from hublet.repos.blobs import store as blobs
from hublet.repos.cards.reading import read_card
from hublet.repos.errors import RefChanged
from hublet.repos.git import quarantine
from hublet.repos.git.trees import Lfs
from hublet.repos.records import Repo, RepoAddress
from hublet.repos.refs import service as refs
from hublet.repos.refs import store as ref_store
from hublet.repos.refs.errors import RefInTheWay
from hublet.repos.refs.records import MAIN, Card, Move
from hublet.repos.smart_http import inspection, rights, rules
from hublet.repos.smart_http.errors import PushRefused
from hublet.repos.smart_http.records import Outcome, Push
from hublet.tokens.records import Caller

# How often a push looks again when another one moved a ref between its look and its move.
TRIES = 3
_MOST_LISTED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Pushing:
    """Whose push it is, and where to: the right to it is looked at again in the end."""

    caller: Caller
    address: RepoAddress
    push: Push


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What a push brought into git, for the transaction that makes it visible."""

    added_bytes: int = 0
    # Of the commit that main is to move to; None when main stays.
    card: Card | None = None


async def let_in(
    database: Database, repo: Repo, push: Push, *, folder: Path, objects: Path
) -> Content:
    """Look through what arrived, and move it to where git finds it; nothing points to it yet."""
    async with database.read() as conn:
        outcomes = rules.judge(push, await _refs(conn, repo))
    wanted = [each.command for each in outcomes if each.refusal is None and each.command.new_sha]
    if not wanted:
        # Every ref is refused or deleted, and why is told in the end.
        return Content()
    found = await asyncio.to_thread(inspection.inspect, folder, objects, wanted)
    async with database.read() as conn:
        await _check_pointers(conn, repo, found.pointers)
    await asyncio.to_thread(quarantine.accept, folder, objects)
    main = next((command.new_sha for command in wanted if command.ref == MAIN), None)
    card = None if main is None else await asyncio.to_thread(read_card, folder, main, repo.type)
    return Content(added_bytes=found.size, card=card)


async def _check_pointers(conn: Reader, repo: Repo, pointers: Mapping[Lfs, str]) -> None:
    """Refuse pointers to content that did not arrive through LFS, or is not what they say."""
    known = await blobs.find_in_repo(conn, repo.id, [lfs.sha256 for lfs in pointers])
    missing = [
        path
        for lfs, path in pointers.items()
        if lfs.sha256 not in known or known[lfs.sha256].size != lfs.size
    ]
    if missing:
        listed = ", ".join(missing[:_MOST_LISTED])
        raise PushRefused(f"the content of {listed} is missing; send it with `git lfs push` first")


async def move_refs(database: Database, pushing: Pushing, content: Content) -> list[Outcome]:
    """Move what may move, in one transaction with its event; tell about each ref."""
    for _ in range(TRIES):
        try:
            async with database.transaction() as conn:
                return await _move_once(conn, pushing, content)
        except (RefChanged, RefInTheWay):
            # On PostgreSQL another push may come between our look and our move.
            continue
    return rules.refused(pushing.push, "fetch first: others are pushing at the same moment")


async def _move_once(conn: Connection, pushing: Pushing, content: Content) -> list[Outcome]:
    repo = await rights.get_to_push(conn, pushing.caller, pushing.address)
    await rights.check_refs(conn, pushing.caller, repo, pushing.push)
    outcomes = rules.judge(pushing.push, await _refs(conn, repo))
    updates = [
        UpdatedRef(ref=each.ref, old_sha=each.old_sha, new_sha=each.new_sha)
        for each in (outcome.command for outcome in outcomes if outcome.refusal is None)
        if each.old_sha != each.new_sha
    ]
    if updates:
        # In one order everywhere, so that two pushes never wait for each other.
        updates.sort(key=lambda update: update.ref)
        wanted = Move(
            updates=tuple(updates),
            actor_id=pushing.caller.user_id,
            card=content.card,
            added_bytes=content.added_bytes,
        )
        await refs.move(conn, repo, wanted)
    return outcomes


async def _refs(conn: Reader, repo: Repo) -> dict[str, str]:
    return {ref.name: ref.sha for ref in await ref_store.list_of(conn, repo.id)}
