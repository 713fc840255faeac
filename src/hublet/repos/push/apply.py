"""Application of a push: its objects are validated and accepted, then the refs move in one
transaction.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from hublet.core.database import Connection, Database, Reader
from hublet.core.light_dataclasses import dataclass
from hublet.events import UpdatedRef
from hublet.repos import blobs_store as blobs
from hublet.repos.cards import read_card
from hublet.repos.errors import PushRefused, RefChanged, RefConflict
from hublet.repos.git import quarantine
from hublet.repos.git.trees import LfsPointer
from hublet.repos.push import permissions, ref_rules, validate
from hublet.repos.push.commands import CommandOutcome, Push
from hublet.repos.records import MAIN, Card, RefTransaction, Repo, RepoAddress
from hublet.repos.refs import service as refs
from hublet.repos.refs import store as ref_store
from hublet.tokens.records import Caller

# How often a push looks again when another one moved a ref between its look and its move.
ATTEMPTS = 3
_MOST_LISTED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class PushRequest:
    """Whose push it is, and where to: the right to it is looked at again in the end."""

    caller: Caller
    address: RepoAddress
    push: Push


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedContent:
    """What a push brought into git, for the transaction that makes it visible."""

    added_bytes: int = 0
    # Of the commit that main is to move to; None when main stays.
    card: Card | None = None


async def accept_objects(
    database: Database, repo: Repo, push: Push, *, folder: Path, objects: Path
) -> AcceptedContent:
    """Look through what arrived, and move it to where git finds it; nothing points to it yet."""
    async with database.read() as conn:
        outcomes = ref_rules.check_commands(push, await _current_refs(conn, repo))
    wanted = [each.command for each in outcomes if each.refusal is None and each.command.new_sha]
    if not wanted:
        # Every ref is refused or deleted, and why is told in the end.
        return AcceptedContent()
    found = await asyncio.to_thread(validate.validate, folder, objects, wanted)
    async with database.read() as conn:
        await _check_pointers(conn, repo, found.pointers)
    await asyncio.to_thread(quarantine.accept, folder, objects)
    main = next((command.new_sha for command in wanted if command.ref == MAIN), None)
    card = None if main is None else await asyncio.to_thread(read_card, folder, main, repo.type)
    return AcceptedContent(added_bytes=found.size, card=card)


async def _check_pointers(conn: Reader, repo: Repo, pointers: Mapping[LfsPointer, str]) -> None:
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


async def update_refs(
    database: Database, pushing: PushRequest, content: AcceptedContent
) -> list[CommandOutcome]:
    """Move what may move, in one transaction with its event; tell about each ref."""
    for _ in range(ATTEMPTS):
        try:
            async with database.transaction() as conn:
                return await _update_refs_once(conn, pushing, content)
        except (RefChanged, RefConflict):
            # On PostgreSQL another push may come between our look and our move.
            continue
    return ref_rules.refuse_all(pushing.push, "fetch first: others are pushing at the same moment")


async def _update_refs_once(
    conn: Connection, pushing: PushRequest, content: AcceptedContent
) -> list[CommandOutcome]:
    repo = await permissions.get_to_push(conn, pushing.caller, pushing.address)
    await permissions.check_refs(conn, pushing.caller, repo, pushing.push)
    outcomes = ref_rules.check_commands(pushing.push, await _current_refs(conn, repo))
    updates = [
        UpdatedRef(ref=each.ref, old_sha=each.old_sha, new_sha=each.new_sha)
        for each in (outcome.command for outcome in outcomes if outcome.refusal is None)
        if each.old_sha != each.new_sha
    ]
    if updates:
        # In one order everywhere, so that two pushes never wait for each other.
        updates.sort(key=lambda update: update.ref)
        wanted = RefTransaction(
            updates=tuple(updates),
            actor_id=pushing.caller.user_id,
            card=content.card,
            added_bytes=content.added_bytes,
        )
        await refs.update_refs(conn, repo, wanted)
    return outcomes


async def _current_refs(conn: Reader, repo: Repo) -> dict[str, str]:
    return {ref.name: ref.sha for ref in await ref_store.list_of(conn, repo.id)}
