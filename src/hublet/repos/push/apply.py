"""Application of a push: who may push where, and the transaction that moves the refs."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path

from hublet.core.database import Connection, Database, Reader
from hublet.core.dataclasses import dataclass
from hublet.events import UpdatedRef
from hublet.repos import blobs_store
from hublet.repos import service as repos
from hublet.repos.cards import read_card
from hublet.repos.commits.pull_requests import may_propose, may_push_to
from hublet.repos.errors import PushRefused, RefChanged, RefConflict
from hublet.repos.git import quarantine
from hublet.repos.git.trees import LfsPointer
from hublet.repos.push import ref_rules, validate
from hublet.repos.push.commands import CommandOutcome, Push
from hublet.repos.records import MAIN, Card, NewPacks, RefTransaction, Repo, RepoAddress, Right
from hublet.repos.refs import service as refs
from hublet.repos.refs import store as ref_store
from hublet.tokens.records import Caller
from hublet.tokens.service import check_still_reaches

# How often the refs are read again when another push moved one of them meanwhile.
ATTEMPTS = 3
_MOST_LISTED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class PushRequest:
    """A push with its caller and its repository, whose rights are checked again in the end."""

    caller: Caller
    address: RepoAddress
    push: Push


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedContent:
    """The content that a push brought into git, for the transaction that makes it visible."""

    added_bytes: int = 0
    # The card of the commit that main moves to; None when main stays.
    card: Card | None = None
    # What the pushed pointers name, each with one of its paths.
    pointers: Mapping[LfsPointer, str] = field(default_factory=dict)
    packs: NewPacks | None = None


async def get_to_push(conn: Reader, caller: Caller, address: RepoAddress) -> Repo:
    """Return the repository when the caller may push something to it, be it a pull request."""
    repo = await repos.get(conn, caller, address, Right.see)
    if not await may_propose(conn, caller, repo):
        await repos.check(conn, caller, repo, Right.write)
    return repo


async def check_refs(conn: Reader, caller: Caller, repo: Repo, push: Push) -> None:
    """Refuse a push to refs that are not the caller's to move."""
    if await repos.may(conn, caller, repo, Right.write):
        return
    for command in push.commands:
        if not await may_push_to(conn, caller, repo, command.ref):
            raise PushRefused(
                f"you have no write access to {repo.full_name}; "
                "without it you can push to your own open pull requests only"
            )


async def accept_objects(
    database: Database, repo: Repo, push: Push, *, folder: Path, objects: Path
) -> AcceptedContent:
    """Validate the objects of a push and move them to where git finds them.

    Nothing points to them yet.
    """
    async with database.read() as conn:
        outcomes = ref_rules.check_commands(push, await _current_refs(conn, repo))
    moves = [each.command for each in outcomes if each.refusal is None and each.command.new_sha]
    if not moves:
        # Every ref is refused or deleted; the report says why.
        return AcceptedContent()
    new = await asyncio.to_thread(validate.validate, folder, objects, moves)
    async with database.read() as conn:
        known = await blobs_store.find_in_repo(conn, repo.id, _digests(new.pointers))
        _check_pointers(new.pointers, {sha256: blob.size for sha256, blob in known.items()})
    await asyncio.to_thread(quarantine.accept, folder, objects)
    main = next((command.new_sha for command in moves if command.ref == MAIN), None)
    card = None if main is None else await asyncio.to_thread(read_card, folder, main, repo.type)
    return AcceptedContent(added_bytes=new.size, card=card, pointers=new.pointers)


def _digests(pointers: Iterable[LfsPointer]) -> set[str]:
    return {lfs.sha256 for lfs in pointers}


def _check_pointers(pointers: Mapping[LfsPointer, str], sizes: Mapping[str, int]) -> None:
    """Refuse pointers to content that did not arrive through LFS, or is not what they say."""
    missing = [path for lfs, path in pointers.items() if sizes.get(lfs.sha256) != lfs.size]
    if missing:
        listed = ", ".join(missing[:_MOST_LISTED])
        raise PushRefused(f"the content of {listed} is missing; send it with `git lfs push` first")


async def update_refs(
    database: Database, pushing: PushRequest, content: AcceptedContent
) -> list[CommandOutcome]:
    """Move the refs that may move, in one transaction with its event; return what became of each."""
    for _ in range(ATTEMPTS):
        try:
            async with database.transaction() as conn:
                return await _update_refs_once(conn, pushing, content)
        except (RefChanged, RefConflict):
            # On PostgreSQL another push may move a ref between our read and our write.
            continue
    return ref_rules.refuse_all(pushing.push, "fetch first: others are pushing at the same moment")


async def _update_refs_once(
    conn: Connection, pushing: PushRequest, content: AcceptedContent
) -> list[CommandOutcome]:
    repo = await get_to_push(conn, pushing.caller, pushing.address)
    await check_still_reaches(conn, pushing.caller, repo.owner_id)
    await check_refs(conn, pushing.caller, repo, pushing.push)
    outcomes = ref_rules.check_commands(pushing.push, await _current_refs(conn, repo))
    updates = [
        UpdatedRef(ref=each.ref, old_sha=each.old_sha, new_sha=each.new_sha)
        for each in (outcome.command for outcome in outcomes if outcome.refusal is None)
        if each.old_sha != each.new_sha
    ]
    if updates:
        await _keep_contents(conn, repo, content.pointers)
        # In one order everywhere, so that two pushes never wait for each other.
        updates.sort(key=lambda update: update.ref)
        transaction = RefTransaction(
            updates=tuple(updates),
            actor_id=pushing.caller.user_id,
            card=content.card,
            added_bytes=content.added_bytes,
            packs=content.packs,
        )
        await refs.update_refs(conn, repo, transaction)
    return outcomes


async def _keep_contents(conn: Connection, repo: Repo, pointers: Mapping[LfsPointer, str]) -> None:
    """Keep what the pointers of a push name; pruning may have taken it since they were checked."""
    if pointers:
        kept = await blobs_store.set_used(conn, repo.id, _digests(pointers))
        _check_pointers(pointers, {lfs.sha256: lfs.size for lfs in pointers if lfs.sha256 in kept})


async def _current_refs(conn: Reader, repo: Repo) -> dict[str, str]:
    return {ref.name: ref.sha for ref in await ref_store.list_of(conn, repo.id)}
