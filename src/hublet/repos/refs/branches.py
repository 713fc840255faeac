"""Branches and tags: list, creation, deletion and squash; objects in git first, then the ref."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from hublet.core.clock import now
from hublet.core.database import Connection, Database, Reader
from hublet.core.dataclasses import dataclass
from hublet.events import UpdatedRef
from hublet.repos import service as repos
from hublet.repos.cards import read_card
from hublet.repos.errors import (
    InvalidBranch,
    RefChanged,
    RefExists,
    RevisionNotFound,
)
from hublet.repos.git import bare_repos, trees
from hublet.repos.git.object_writer import ObjectWriter
from hublet.repos.git.objects import CommitDraft, commit_data, tree_data
from hublet.repos.packs.workspaces import open_workspace
from hublet.repos.records import (
    HEADS,
    MAIN,
    PULL_REQUESTS,
    TAGS,
    Card,
    NewBranch,
    NewPacks,
    Ref,
    RefTransaction,
    Repo,
    RepoAddress,
    Right,
)
from hublet.repos.refs import service, store
from hublet.repos.refs.service import check_ref_name
from hublet.tokens.records import Caller

# How often a squash is repeated because the branch moved meanwhile.
SQUASH_ATTEMPTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class _BranchHead:
    """A commit that is in git, and its card when main moves to it."""

    sha: str
    card: Card | None
    packs: NewPacks | None = None


async def list_refs(database: Database, caller: Caller | None, address: RepoAddress) -> list[Ref]:
    """Return the refs of a repository, each with the commit that it points to."""
    async with database.read() as conn:
        repo = await repos.get(conn, caller, address, Right.read)
        refs = await store.list_of(conn, repo.id)
    return await asyncio.to_thread(_peel_tags, await repos.open_folder(database, repo.id), refs)


def _peel_tags(folder: Path, refs: list[Ref]) -> list[Ref]:
    # Tags that were pushed may be objects of their own.
    repository = bare_repos.open_repository(folder)
    return [
        Ref(name=ref.name, sha=str(trees.get_commit(repository, ref.sha).id))
        if ref.name.startswith(TAGS)
        else ref
        for ref in refs
    ]


async def create_branch(
    database: Database, caller: Caller, address: RepoAddress, branch: NewBranch
) -> None:
    check_ref_name("branch", branch.name)
    ref = HEADS + branch.name
    async with database.read() as conn:
        repo = await repos.get(conn, caller, address, Right.write)
        before = await store.find(conn, repo.id, ref)
        if before is not None and not branch.overwrite:
            raise RefExists(ref)
        start = None
        if not branch.is_empty:
            start = await service.get_starting_point(conn, repo, branch.starting_point or "main")
    async with open_workspace(database, repo.id) as work:
        head = await asyncio.to_thread(
            _start_branch, work.folder, repo, ref, start, author=caller.user_name
        )
        if head.sha == before:
            return
        head = replace(head, packs=await work.upload())
        async with database.transaction() as conn:
            update = UpdatedRef(ref=ref, old_sha=before, new_sha=head.sha)
            await _update_ref(conn, caller, address, update, head)


def _start_branch(
    folder: Path, repo: Repo, ref: str, start: str | None, *, author: str
) -> _BranchHead:
    if start is None:
        sha = _write_commit(folder, None, author=author, message="initial commit")
    else:
        sha = str(trees.get_commit(bare_repos.open_repository(folder), start).id)
    return _branch_head(folder, repo, ref, sha)


async def delete_branch(conn: Connection, caller: Caller, address: RepoAddress, name: str) -> None:
    if HEADS + name == MAIN:
        raise InvalidBranch(f"Cannot delete {MAIN}: every repository keeps its main branch.")
    await _delete_ref(conn, caller, address, HEADS + name)


async def create_tag(
    database: Database, caller: Caller, address: RepoAddress, *, name: str, revision: str
) -> None:
    """Create a lightweight tag: it points to its commit directly, with no object of its own."""
    async with database.read() as conn:
        repo = await repos.get(conn, caller, address, Right.write)
        start = await service.get_starting_point(conn, repo, revision)
    sha = await asyncio.to_thread(_commit_of, await repos.open_folder(database, repo.id), start)
    # The public client expects that a missing revision is told before an invalid name.
    check_ref_name("tag", name)
    async with database.transaction() as conn:
        if await store.find(conn, repo.id, TAGS + name) is not None:
            raise RefExists(TAGS + name)
        update = UpdatedRef(ref=TAGS + name, old_sha=None, new_sha=sha)
        await _update_ref(conn, caller, address, update, _BranchHead(sha=sha, card=None))


async def delete_tag(conn: Connection, caller: Caller, address: RepoAddress, name: str) -> None:
    await _delete_ref(conn, caller, address, TAGS + name)


async def squash(
    database: Database, caller: Caller, address: RepoAddress, *, branch: str, message: str
) -> None:
    """Squash the whole history of a branch or a pull request into one commit with its files."""
    ref = branch if branch.startswith((HEADS, PULL_REQUESTS)) else HEADS + branch
    for _ in range(SQUASH_ATTEMPTS):
        async with database.read() as conn:
            repo = await repos.get(conn, caller, address, Right.write)
            head = await _head_of(conn, repo, ref, revision=branch)
        async with open_workspace(database, repo.id) as work:
            made = await asyncio.to_thread(
                _squash_commit, work.folder, repo, ref, head, (caller.user_name, message)
            )
            made = replace(made, packs=await work.upload())
            with suppress(RefChanged):
                async with database.transaction() as conn:
                    update = UpdatedRef(ref=ref, old_sha=head, new_sha=made.sha)
                    await _update_ref(conn, caller, address, update, made)
                    return
    raise RefChanged(branch)


async def _head_of(conn: Reader, repo: Repo, ref: str, *, revision: str) -> str:
    head = await store.find(conn, repo.id, ref)
    if head is not None:
        return head
    if await service.find_sha(conn, repo, revision) is not None:
        raise InvalidBranch(
            f"{revision} is no branch; only the history of a branch can be squashed."
        )
    raise RevisionNotFound(revision)


def _squash_commit(
    folder: Path, repo: Repo, ref: str, head: str, by: tuple[str, str]
) -> _BranchHead:
    author, message = by
    return _branch_head(
        folder, repo, ref, _write_commit(folder, head, author=author, message=message)
    )


def _write_commit(folder: Path, head: str | None, *, author: str, message: str) -> str:
    """Write a commit without parents, with the files of another one or with none."""
    draft = CommitDraft(author=author, at=now(), message=message)
    with ObjectWriter(folder) as writer:
        if head is None:
            tree = writer.add("tree", tree_data({}))
        else:
            tree = str(trees.get_commit(bare_repos.open_repository(folder), head).tree_id)
        sha = writer.add("commit", commit_data(draft, tree=tree, parents=()))
        writer.finish()
    return sha


def _branch_head(folder: Path, repo: Repo, ref: str, sha: str) -> _BranchHead:
    return _BranchHead(sha=sha, card=read_card(folder, sha, repo.type) if ref == MAIN else None)


def _commit_of(folder: Path, sha: str) -> str:
    return str(trees.get_commit(bare_repos.open_repository(folder), sha).id)


async def _delete_ref(conn: Connection, caller: Caller, address: RepoAddress, ref: str) -> None:
    repo = await repos.get(conn, caller, address, Right.write)
    sha = await store.find(conn, repo.id, ref)
    if sha is None:
        raise RevisionNotFound(ref.removeprefix(HEADS).removeprefix(TAGS))
    update = UpdatedRef(ref=ref, old_sha=sha, new_sha=None)
    await service.update_refs(
        conn, repo, RefTransaction(updates=(update,), actor_id=caller.user_id)
    )


async def _update_ref(
    conn: Connection, caller: Caller, address: RepoAddress, update: UpdatedRef, head: _BranchHead
) -> None:
    repo = await repos.get(conn, caller, address, Right.write)
    transaction = RefTransaction(
        updates=(update,), actor_id=caller.user_id, card=head.card, packs=head.packs
    )
    await service.update_refs(conn, repo, transaction)
