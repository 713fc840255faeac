"""Duplication of a repository: branches, tags, their history and large files, under a new name.

Git writes a pack of all that branches and tags reach into a folder that nobody knows yet, then one
transaction makes the copy visible. Pruning removes the folder of a process that dies before.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hublet.core.database import Connection, Database, Reader
from hublet.core.dataclasses import dataclass
from hublet.core.logs import get_logger
from hublet.repos import blobs_store, lifecycle, service
from hublet.repos.browse import list_index
from hublet.repos.cards import read_card
from hublet.repos.errors import GitFailed, RepoFolderGone, StorageUnavailable
from hublet.repos.git import bare_repos
from hublet.repos.lifecycle import NewRepo
from hublet.repos.packs import store as packs_store
from hublet.repos.packs.workspaces import open_workspace
from hublet.repos.records import (
    HEADS,
    MAIN,
    TAGS,
    Card,
    NewPacks,
    Ref,
    Repo,
    RepoAddress,
    RepoType,
    Right,
    Visibility,
)
from hublet.repos.refs import store as ref_store
from hublet.repos.usage import check_quota
from hublet.storage.chunker import schedule_cutting
from hublet.tokens.records import Caller
from hublet.tokens.service import check_still_reaches

log = get_logger("repos")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCopy:
    # None: the caller's own.
    namespace: str | None
    name: str
    # None: as the original.
    visibility: Visibility | None
    resource_group_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _CopiedContent:
    """What git holds of a copy; nothing points to it yet."""

    refs: Sequence[Ref]
    # Of main, with its card.
    head: str
    card: Card
    packs: NewPacks | None = None


async def duplicate(
    database: Database, caller: Caller, address: RepoAddress, copy: NewCopy
) -> Repo:
    """Copy a repository with git; discussions, pull requests, likes and grants stay behind."""
    async with database.read() as conn:
        source = await service.get(conn, caller, address, Right.read)
        repo = await _new_record(conn, caller, source, copy)
        refs = [
            ref
            for ref in await ref_store.list_of(conn, source.id)
            if ref.name.startswith((HEADS, TAGS))
        ]
    origin = await service.open_folder(database, source.id)
    async with open_workspace(database, repo.id, is_new=True) as work:
        try:
            content = await _copy_content(origin, work.folder, repo, refs)
            content = replace(content, packs=await work.upload())
            async with database.transaction() as conn:
                # The copy may have taken minutes, so the rights are checked once more.
                source = await _get_again(conn, caller, address, source)
                repo = replace(await _new_record(conn, caller, source, copy), id=repo.id)
                for owner_id in (source.owner_id, repo.owner_id):
                    await check_still_reaches(conn, caller, owner_id)
                return await _add(conn, source, repo, content)
        except BaseException:
            await asyncio.shield(asyncio.to_thread(bare_repos.remove, work.folder))
            raise


async def _get_again(conn: Reader, caller: Caller, address: RepoAddress, source: Repo) -> Repo:
    found = await service.get(conn, caller, address, Right.read)
    if found.id != source.id:
        # It was deleted, and another one has its name.
        raise RepoFolderGone
    return found


async def _new_record(conn: Reader, caller: Caller, source: Repo, copy: NewCopy) -> Repo:
    new = NewRepo(
        type=source.type,
        namespace=copy.namespace,
        name=copy.name,
        visibility=copy.visibility or source.visibility,
        sdk=source.sdk,
        resource_group_id=copy.resource_group_id,
    )
    lifecycle.check_request(new)
    # The gate is copied too: who may pass it may not open it to everybody by accident.
    return replace(await lifecycle.new_record(conn, caller, new), gated=source.gated)


async def _copy_content(
    source: Path, folder: Path, repo: Repo, refs: Sequence[Ref]
) -> _CopiedContent:
    try:
        await bare_repos.create_copy(folder, of=source, shas=[ref.sha for ref in refs])
    except (GitFailed, OSError) as error:
        if not await asyncio.to_thread(source.exists):
            raise RepoFolderGone from None
        log.exception("a repository could not be copied", source=source.name)
        raise StorageUnavailable from error
    head = next(ref.sha for ref in refs if ref.name == MAIN)
    card = await asyncio.to_thread(read_card, folder, head, repo.type)
    return _CopiedContent(refs=refs, head=head, card=card)


async def _add(conn: Connection, source: Repo, repo: Repo, content: _CopiedContent) -> Repo:
    card = content.card
    repo = replace(repo, head_sha=content.head, size=source.size, card=card.data, tags=card.tags)
    await lifecycle.add_or_refuse(conn, repo)
    await ref_store.add_all(conn, repo.id, content.refs)
    await ref_store.set_card(conn, repo.id, card)
    if content.packs is not None:
        await packs_store.add_first(conn, repo.id, content.packs.packs, created_by=repo.creator_id)
    await blobs_store.link_those_of(conn, repo.id, source_id=source.id)
    await schedule_cutting(conn)
    if repo.type is RepoType.model:
        await list_index.schedule_count(conn, repo.id)
    await check_quota(conn, repo.owner_id, 0)
    return repo
