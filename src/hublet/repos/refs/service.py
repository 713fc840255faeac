"""Rules of refs: what a revision means, and how refs move.

The table of refs is the truth. Git's objects are written before it changes and nobody sees
them until then; a process that dies in between leaves objects that nothing points to. So a
change of content happens entirely or not at all, with its event.
"""

import re
from dataclasses import replace

from hublet.core.database import Connection, Reader
from hublet.core.outbox import publish
from hublet.events import RepoContentUpdated
from hublet.repos import service as repos
from hublet.repos.blobs import store as blobs
from hublet.repos.errors import RefChanged, RevisionNotFound
from hublet.repos.records import Repo
from hublet.repos.refs import store
from hublet.repos.refs.errors import RefInTheWay
from hublet.repos.refs.records import HEADS, MAIN, TAGS, Move

SHA = re.compile(r"[0-9a-f]{40}")


async def find_sha(conn: Reader, repo: Repo, revision: str) -> str | None:
    """Return the commit that a branch, a tag, a whole ref or a commit id names.

    Whether a commit of this id exists only git can tell.
    """
    for name in _spellings(revision):
        if (sha := await store.find(conn, repo.id, name)) is not None:
            return sha
    return revision if SHA.fullmatch(revision) else None


def _spellings(revision: str) -> tuple[str, ...]:
    if revision.startswith("refs/"):
        return (revision,)
    return (HEADS + revision, TAGS + revision)


async def get_sha(conn: Reader, repo: Repo, revision: str) -> str:
    sha = await find_sha(conn, repo, revision)
    if sha is None:
        raise RevisionNotFound(revision)
    return sha


async def move(conn: Connection, repo: Repo, wanted: Move) -> Repo:
    """Move refs, all or none, and tell of it; return the repository as it is then.

    The objects they point to must be in git, on the disk, before this is called.
    """
    created = [update.ref for update in wanted.updates if update.old_sha is None]
    if created:
        # Of two that exclude each other, the second must see the first.
        await conn.lock(f"names of refs of {repo.id}")
    for update in wanted.updates:
        if not await store.move(conn, repo.id, update):
            raise RefChanged(update.ref.removeprefix(HEADS))
        if update.ref == MAIN and update.new_sha is not None and wanted.card is not None:
            await store.set_head(conn, repo.id, update.new_sha, wanted.card)
            repo = replace(
                repo, head_sha=update.new_sha, card=wanted.card.data, tags=wanted.card.tags
            )
    for name in created:
        if (other := await store.find_in_the_way(conn, repo.id, name)) is not None:
            raise RefInTheWay(name, other=other)
    await blobs.add(conn, wanted.blobs)
    await blobs.link(conn, repo.id, [blob.sha256 for blob in wanted.blobs])
    await store.note_change(conn, repo.id, added_bytes=wanted.added_bytes)
    await publish(
        conn,
        RepoContentUpdated(
            repo=repos.snapshot(repo), updated_refs=wanted.updates, actor_id=wanted.actor_id
        ),
    )
    return repo
