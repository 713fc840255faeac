"""Refs: valid names, resolution of a revision, and the ref transaction that makes a change visible.

The table of refs is the truth. Git's objects are written before it changes and nobody sees them
until then; a process that dies in between leaves objects that nothing points to. So a change of
content happens entirely or not at all, with its event.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

import pygit2

from hublet.core.database import Connection, Reader
from hublet.core.outbox import publish
from hublet.events import RepoContentUpdated
from hublet.repos import blobs_store
from hublet.repos import service as repos
from hublet.repos.errors import InvalidRefName, RefChanged, RefConflict, RevisionNotFound
from hublet.repos.packs import store as packs_store
from hublet.repos.records import HEADS, MAIN, TAGS, Card, RefTransaction, Repo
from hublet.repos.refs import store
from hublet.repos.usage import check_quota
from hublet.storage import chunker
from hublet.storage import store as contents

MAX_REF_BYTES = 200

COMMIT_ID = re.compile(r"[0-9a-f]{40}")
# As short as git itself writes them.
SHORT_COMMIT_ID = re.compile(r"[0-9a-f]{7,39}")


def check_ref_name(kind: str, name: str) -> None:
    """Raise InvalidRefName, which says the rule, for an invalid name of a branch or a tag."""
    if not 1 <= len(name.encode(errors="replace")) <= MAX_REF_BYTES:
        raise InvalidRefName(kind, f"it has 1 to {MAX_REF_BYTES} bytes")
    if COMMIT_ID.fullmatch(name):
        raise InvalidRefName(kind, "it does not look like the id of a commit")
    if name.startswith(("refs/", "-")) or name == "HEAD":
        raise InvalidRefName(kind, "it does not begin with 'refs/' or '-', and it is not HEAD")
    if not name.isprintable() or not pygit2.reference_is_valid_name(HEADS + name):
        raise InvalidRefName(
            kind,
            "it has no blanks, none of ~^:?*[\\ and '@{', no '..' and no '//', and no part of it "
            "begins with '.' or ends with '.' or '.lock'",
        )


async def find_sha(conn: Reader, repo: Repo, revision: str) -> str | None:
    """Return the commit that a branch, a tag, a whole ref or a commit id names.

    Whether a commit of this id exists only git can tell.
    """
    for name in _spellings(revision):
        if (sha := await store.find(conn, repo.id, name)) is not None:
            return sha
    return revision if COMMIT_ID.fullmatch(revision) else None


async def find_shas(conn: Reader, repo: Repo, revisions: Sequence[str]) -> dict[str, str]:
    """Return what `find_sha` does for each of these revisions, with one look."""
    names = [name for revision in revisions for name in _spellings(revision)]
    found = await store.find_many(conn, repo.id, names)
    shas = {
        revision: next((found[name] for name in _spellings(revision) if name in found), None)
        or (revision if COMMIT_ID.fullmatch(revision) else None)
        for revision in revisions
    }
    return {revision: sha for revision, sha in shas.items() if sha is not None}


def _spellings(revision: str) -> tuple[str, ...]:
    if revision.startswith("refs/"):
        return (revision,)
    return (HEADS + revision, TAGS + revision)


async def get_sha(conn: Reader, repo: Repo, revision: str) -> str:
    sha = await find_sha(conn, repo, revision)
    if sha is None:
        raise RevisionNotFound(revision)
    return sha


async def list_names(conn: Reader, repo: Repo, prefix: str, *, limit: int) -> tuple[str, ...]:
    """Return the names of branches or tags, without the prefix that says which."""
    names = await store.list_names(conn, repo.id, prefix=prefix, limit=limit)
    return tuple(name.removeprefix(prefix) for name in names)


async def get_starting_point(conn: Reader, repo: Repo, revision: str) -> str:
    """Return what `get_sha` does, or the beginning of a commit id, which only git can complete."""
    if SHORT_COMMIT_ID.fullmatch(revision):
        return await find_sha(conn, repo, revision) or revision
    return await get_sha(conn, repo, revision)


async def update_refs(conn: Connection, repo: Repo, transaction: RefTransaction) -> Repo:
    """Move refs, all or none, and publish the event; return the repository as it is then.

    The objects they point to must be in git, on the disk, before this is called.
    """
    created = [update.ref for update in transaction.updates if update.old_sha is None]
    if created:
        # Of two names that exclude each other, the second transaction must see the first.
        await conn.lock(f"names of refs of {repo.id}")
    main_sha = None
    for update in transaction.updates:
        if not await store.update_ref(conn, repo.id, update):
            raise RefChanged(update.ref.removeprefix(HEADS))
        if update.ref == MAIN and update.new_sha is not None:
            main_sha = update.new_sha
            repo = await _move_main(conn, repo, main_sha, transaction.card)
    for name in created:
        if (other := await store.find_conflicting(conn, repo.id, name)) is not None:
            raise RefConflict(name, other=other)
    if transaction.blobs:
        await contents.add_blobs(conn, transaction.blobs, may_stay_whole=True)
        await blobs_store.link(conn, repo.id, transaction.blobs)
        await chunker.schedule_cutting(conn)
        await check_quota(conn, repo.owner_id, 0)
    await _list_packs(conn, repo, transaction)
    await store.record_change(conn, repo.id, added_bytes=transaction.added_bytes, main_sha=main_sha)
    await publish(
        conn,
        RepoContentUpdated(
            repo=repos.snapshot(repo),
            updated_refs=transaction.updates,
            actor_id=transaction.actor_id,
            changed_names=transaction.changed_names,
            may_leak=transaction.may_leak,
        ),
    )
    return repo


async def _move_main(conn: Connection, repo: Repo, sha: str, card: Card | None) -> Repo:
    """Write the card of a commit of main, unless it is that of the commit before."""
    if card is None:
        return replace(repo, head_sha=sha)
    await store.set_card(conn, repo.id, card)
    return replace(repo, head_sha=sha, card=card.data, tags=card.tags)


async def _list_packs(conn: Connection, repo: Repo, transaction: RefTransaction) -> None:
    """List the packs with the objects that the refs point to, where there is a shared store."""
    if transaction.packs is not None and not await packs_store.add(
        conn, repo.id, transaction.packs, created_by=transaction.actor_id
    ):
        # The objects of the repository moved to the shared store, or from it, a moment ago.
        raise RefChanged(transaction.updates[0].ref.removeprefix(HEADS))
