"""Repository information: the properties and files of one repository at a revision."""

import asyncio
import json
from collections.abc import Mapping, Sequence
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
from hublet.core.errors import HubError, NotFound
from hublet.repos import cards, list_index_store, settings
from hublet.repos import service as repos
from hublet.repos.browse import lists, store
from hublet.repos.browse.records import IN_DETAIL, IN_FILES, Property
from hublet.repos.browse.schemas import (
    render_files,
    render_information,
    render_resource_group,
    render_safetensors,
    render_security_status,
)
from hublet.repos.errors import RevisionNotFound
from hublet.repos.git import bare_repos, trees
from hublet.repos.records import Repo, RepoAddress, RepoType, Right
from hublet.repos.refs import service as refs
from hublet.tokens.records import Caller

# The public client takes a longer list as incomplete, and asks for the tree instead.
_MOST_FILES = 50_001
# Of each repository in a list.
MOST_LISTED_FILES = 1000
MOST_SPACES = 100
MOST_CHILDREN = 1000
_OF_LINKS = frozenset({Property.spaces, Property.children_model_count})
_LARGEST_CONFIG = 1_000_000
_IN_CONFIG = ("architectures", "auto_map", "model_type", "quantization_config")


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
        may_read = repo.gated is None or await repos.may(conn, caller, repo, Right.read)
        [values] = await list_info(conn, caller, [repo], options.properties)
    if Property.safetensors in options.properties and may_read and repo.safetensors:
        values["safetensors"] = render_safetensors(repo)
    if options.with_security:
        values["securityRepoStatus"] = render_security_status()
    folder = await repos.open_folder(database, repo.id)
    asked = options.properties if may_read else options.properties - {Property.config}
    return await asyncio.to_thread(
        _render, values, folder, repo, replace(options, properties=asked)
    )


async def _visible_group(
    conn: Reader, caller: Caller | None, repo: Repo
) -> ResourceGroupRecord | None:
    try:
        return await settings.find_resource_group(conn, caller, repo) if caller else None
    except (RoleNeeded, ResourceGroupNotFound):
        return None


def _render(values: dict[str, Any], folder: Path, repo: Repo, options: InformationRequest) -> bytes:
    sha = repo.head_sha or ""
    if options.revision is not None:
        sha = _commit_of(folder, sha)
        if Property.sha in options.properties:
            values["sha"] = sha
    wanted = options.properties & IN_FILES
    values |= _read_content(
        folder, repo, sha, wanted, with_blobs=options.with_blobs, most_files=_MOST_FILES
    )
    return msgspec.json.encode(values)


async def list_info(
    conn: Reader, caller: Caller | None, listed: Sequence[Repo], properties: frozenset[Property]
) -> list[dict[str, Any]]:
    """Return the properties of repositories that the database knows."""
    found = {repo.id: render_information(repo, properties) for repo in listed}
    if Property.resource_group in properties:
        for repo in listed:
            if (group := await _visible_group(conn, caller, repo)) is not None:
                found[repo.id]["resourceGroup"] = render_resource_group(group)
    models = [repo for repo in listed if repo.type is RepoType.model]
    if models and not properties.isdisjoint(_OF_LINKS):
        related = await _related(conn, caller, models, properties)
        for name, values in related.items():
            for repo_id, value in values.items():
                found[repo_id][name.value] = value
    return list(found.values())


async def _related(
    conn: Reader, caller: Caller | None, models: Sequence[Repo], properties: frozenset[Property]
) -> dict[Property, Mapping[str, Any]]:
    """Return what names these models, by the model's id: only of what the caller may see."""
    reach = await lists.reach_of(conn, caller)
    names = await list_index_store.target_keys_of(conn, models)
    found: dict[Property, Mapping[str, Any]] = {}
    if Property.spaces in properties:
        found[Property.spaces] = await store.list_linking(conn, names, reach, limit=MOST_SPACES)
    if Property.children_model_count in properties:
        found[Property.children_model_count] = await store.count_children(
            conn, names, reach, most=MOST_CHILDREN
        )
    return found


async def add_content(
    database: Database,
    listed: Sequence[Repo],
    found: Sequence[dict[str, Any]],
    properties: frozenset[Property],
) -> None:
    """Add the properties that stand in files of main; no transaction may be open."""
    wanted = properties & IN_FILES
    if not wanted:
        return
    for repo, values in zip(listed, found, strict=True):
        asked = wanted if repo.gated is None else wanted - {Property.config}
        # It may be deleted at any moment: then it has no files.
        with suppress(HubError, pygit2.GitError):
            folder = await repos.open_folder(database, repo.id)
            content = await asyncio.to_thread(
                _read_content,
                folder,
                repo,
                repo.head_sha or "",
                asked,
                most_files=MOST_LISTED_FILES,
            )
            values.update(content)


def _read_content(
    folder: Path,
    repo: Repo,
    sha: str,
    wanted: frozenset[Property],
    *,
    with_blobs: bool = False,
    most_files: int,
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    is_dataset = repo.type is RepoType.dataset
    if Property.siblings in wanted or (Property.main_size in wanted and is_dataset):
        entries = trees.list_tree(folder, sha, recursive=True)
        files = [entry for entry in entries if entry.type == "file"]
        if Property.siblings in wanted:
            values["siblings"] = render_files(files[:most_files], with_blobs=with_blobs)
        if Property.main_size in wanted and is_dataset:
            values["mainSize"] = sum(entry.size for entry in files)
    if is_dataset and wanted & {Property.description, Property.citation}:
        text = cards.read_text(folder, sha)
        if Property.description in wanted:
            values["description"] = cards.description_of(text)
        if Property.citation in wanted:
            values["citation"] = cards.citation_of(text)
    if Property.config in wanted and repo.type is RepoType.model:
        values["config"] = _read_config(folder, sha)
    return {name: value for name, value in values.items() if value is not None}


def _read_config(folder: Path, sha: str) -> dict[str, Any] | None:
    """Return what lists of models show of config.json; None when there is none of use."""
    for entry in trees.find_entries(folder, sha, ["config.json"]):
        if entry.type != "file" or entry.lfs is not None or entry.size > _LARGEST_CONFIG:
            return None
        try:
            data = json.loads(trees.read_blob(folder, entry.oid))
        except (ValueError, RecursionError):
            return None
        if isinstance(data, dict):
            return {name: data[name] for name in _IN_CONFIG if name in data}
    return None


def _commit_of(folder: Path, sha: str) -> str:
    """Return the id of a commit, or of the commit that the tag of this id points to."""
    try:
        return str(trees.get_commit(bare_repos.open_repository(folder), sha).id)
    except pygit2.GitError:
        # The repository was deleted a moment ago.
        raise RevisionNotFound(sha) from None
