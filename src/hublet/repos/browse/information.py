"""Repository information: the properties and files of one repository at a revision."""

import asyncio
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pygit2

from hublet.accounts.errors import ResourceGroupNotFound, RoleNeeded
from hublet.accounts.records import ResourceGroupRecord
from hublet.core.database import Database, Reader
from hublet.core.dataclasses import dataclass
from hublet.core.errors import NotFound
from hublet.repos import service as repos
from hublet.repos import settings
from hublet.repos.browse.records import IN_DETAIL, Property
from hublet.repos.browse.schemas import (
    render_files,
    render_information,
    render_resource_group,
    render_security_status,
)
from hublet.repos.errors import RevisionNotFound
from hublet.repos.git import bare_repos, trees
from hublet.repos.records import Repo, RepoAddress, Right
from hublet.repos.refs import service as refs
from hublet.tokens.records import Caller

# The public client takes a longer list as incomplete, and asks for the tree instead.
_MOST_FILES = 50_001


@dataclass(frozen=True, slots=True, kw_only=True)
class InformationRequest:
    """The properties of a repository that a request asks for."""

    # None: main, whose commit is in the record of the repository.
    revision: str | None = None
    properties: frozenset[Property] = IN_DETAIL
    # Sizes and digests of files.
    with_blobs: bool = False
    with_security: bool = False


async def get_info(
    database: Database,
    caller: Caller | None,
    address: RepoAddress,
    options: InformationRequest,
    *,
    may_be_old: bool = False,
) -> bytes:
    """Return the properties of a repository at a revision, as the body of a response.

    What may be old is read from a replica, and from the primary if it is not there yet.
    """
    if may_be_old:
        with suppress(NotFound):
            return await _get_info(database, database.read_replica(), caller, address, options)
    return await _get_info(database, database.read(), caller, address, options)


async def _get_info(
    database: Database,
    reading: AbstractAsyncContextManager[Reader],
    caller: Caller | None,
    address: RepoAddress,
    options: InformationRequest,
) -> bytes:
    async with reading as conn:
        repo = await repos.get(conn, caller, address, Right.see)
        if options.revision is not None:
            repo = replace(repo, head_sha=await refs.get_sha(conn, repo, options.revision))
        values = render_information(repo, options.properties)
        group = await _visible_group(conn, caller, repo)
    if Property.resource_group in options.properties and group is not None:
        values["resourceGroup"] = render_resource_group(group)
    if options.with_security:
        values["securityRepoStatus"] = render_security_status()
    folder = await repos.open_folder(database, repo.id)
    return await asyncio.to_thread(_render, values, folder, repo.head_sha or "", options)


async def _visible_group(
    conn: Reader, caller: Caller | None, repo: Repo
) -> ResourceGroupRecord | None:
    try:
        return await settings.find_resource_group(conn, caller, repo) if caller else None
    except (RoleNeeded, ResourceGroupNotFound):
        return None


def _render(values: dict[str, Any], folder: Path, sha: str, options: InformationRequest) -> bytes:
    if options.revision is not None:
        sha = _commit_of(folder, sha)
        if Property.sha in options.properties:
            values["sha"] = sha
    if Property.siblings in options.properties:
        entries = trees.list_tree(folder, sha, recursive=True)
        files = [entry for entry in entries if entry.type == "file"]
        values["siblings"] = render_files(files[:_MOST_FILES], with_blobs=options.with_blobs)
    return msgspec.json.encode(values)


def _commit_of(folder: Path, sha: str) -> str:
    """Return the id of a commit, or of the commit that the tag of this id points to."""
    try:
        return str(trees.get_commit(bare_repos.open_repository(folder), sha).id)
    except pygit2.GitError:
        # The repository was deleted a moment ago.
        raise RevisionNotFound(sha) from None
