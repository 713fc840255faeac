"""Repository information: all that is known of one repository at a revision."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pygit2

from hublet.accounts.errors import ResourceGroupNotFound, RoleNeeded
from hublet.accounts.records import ResourceGroupRecord
from hublet.core.database import Database, Reader
from hublet.core.light_dataclasses import dataclass
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
    """What is to be told of a repository."""

    # None: main, as the repository's own record knows it.
    revision: str | None = None
    shown: frozenset[Property] = IN_DETAIL
    # Sizes and digests of files.
    with_blobs: bool = False
    with_security: bool = False


async def get_info(
    database: Database, caller: Caller | None, address: RepoAddress, asked: InformationRequest
) -> bytes:
    """Return what is known of a repository at a revision, as the bytes of an answer."""
    async with database.read() as conn:
        repo = await repos.get(conn, caller, address, Right.see)
        if asked.revision is not None:
            repo = replace(repo, head_sha=await refs.get_sha(conn, repo, asked.revision))
        values = render_information(repo, asked.shown)
        group = await _visible_group(conn, caller, repo)
    if Property.resource_group in asked.shown and group is not None:
        values["resourceGroup"] = render_resource_group(group)
    if asked.with_security:
        values["securityRepoStatus"] = render_security_status()
    folder = bare_repos.folder_of(database.hub.settings.database.data_dir, repo.id)
    return await asyncio.to_thread(_render, values, folder, repo.head_sha or "", asked)


async def _visible_group(
    conn: Reader, caller: Caller | None, repo: Repo
) -> ResourceGroupRecord | None:
    try:
        return await settings.find_resource_group(conn, caller, repo) if caller else None
    except (RoleNeeded, ResourceGroupNotFound):
        return None


def _render(values: dict[str, Any], folder: Path, sha: str, asked: InformationRequest) -> bytes:
    if asked.revision is not None:
        sha = _commit_of(folder, sha)
        if Property.sha in asked.shown:
            values["sha"] = sha
    if Property.siblings in asked.shown:
        entries = trees.list_tree(folder, sha, recursive=True)
        files = [entry for entry in entries if entry.type == "file"]
        values["siblings"] = render_files(files[:_MOST_FILES], with_blobs=asked.with_blobs)
    return msgspec.json.encode(values)


def _commit_of(folder: Path, sha: str) -> str:
    """Return the commit that this is the id of, or that the tag of this id points to."""
    try:
        return str(trees.get_commit(bare_repos.open_repository(folder), sha).id)
    except pygit2.GitError:
        # The repository was deleted a moment ago.
        raise RevisionNotFound(sha) from None
