"""Repository information: the properties and files of one repository at a revision."""

import asyncio
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pygit2

from hublet.accounts.errors import ResourceGroupNotFound, RoleNeeded
from hublet.accounts.records import ResourceGroupRecord
from hublet.core.clock import wire
from hublet.core.database import Database, Reader
from hublet.core.dataclasses import dataclass
from hublet.core.errors import HubError, NotFound
from hublet.repos import cards, list_index_store, settings
from hublet.repos import service as repos
from hublet.repos.browse import lists, store
from hublet.repos.browse.records import IN_DETAIL, IN_FILES, Property
from hublet.repos.errors import RevisionNotFound
from hublet.repos.git import bare_repos, trees
from hublet.repos.git.trees import GitEntry
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


def _card_text(repo: Repo, key: str) -> str | None:
    value = (repo.card or {}).get(key)
    return value if isinstance(value, str) else None


def _runtime(repo: Repo) -> dict[str, Any] | None:
    if repo.type is not RepoType.space:
        return None
    return {"stage": "STOPPED", "hardware": {"current": None, "requested": None}}


def _safetensors(repo: Repo) -> dict[str, Any] | None:
    # The gate of a gated model guards its files, and so what their headers say.
    return None if repo.gated else render_safetensors(repo)


def render_safetensors(repo: Repo) -> dict[str, Any] | None:
    found = repo.safetensors
    return {"parameters": found, "total": sum(found.values())} if found else None


def _of(type_: RepoType, get: Callable[[Repo], Any]) -> Callable[[Repo], Any]:
    """Return what gets a value of repositories of one type; those of others have none."""
    return lambda repo: get(repo) if repo.type is type_ else None


def _names(type_: RepoType, field: str) -> Callable[[Repo], Any]:
    return _of(type_, lambda repo: cards.names_in(repo.card, field))


def _widget_data(repo: Repo) -> list[Any] | None:
    found = (repo.card or {}).get("widget")
    return found if isinstance(found, list) else None


def _model_text(key: str) -> Callable[[Repo], str | None]:
    return lambda repo: _card_text(repo, key) if repo.type is RepoType.model else None


def _sdk(repo: Repo) -> str | None:
    return (_card_text(repo, "sdk") or repo.sdk) if repo.type is RepoType.space else None


# Values that are None are left out.
_VALUES: dict[Property, Callable[[Repo], Any]] = {
    Property.author: lambda repo: repo.owner_name,
    Property.sha: lambda repo: repo.head_sha,
    Property.created_at: lambda repo: wire(repo.created_at),
    Property.last_modified: lambda repo: wire(repo.updated_at),
    Property.private: lambda repo: repo.is_private,
    Property.gated: lambda repo: repo.gated or False,
    Property.disabled: lambda _: False,
    Property.downloads: lambda repo: repo.downloads,
    Property.downloads_all_time: lambda repo: repo.downloads,
    Property.likes: lambda repo: repo.likes,
    Property.trending_score: lambda repo: repo.trending_score,
    Property.tags: lambda repo: repo.tags,
    Property.card_data: lambda repo: repo.card,
    Property.pipeline_tag: _model_text("pipeline_tag"),
    Property.library_name: _model_text("library_name"),
    Property.model_index: lambda repo: (repo.card or {}).get("model-index"),
    Property.sdk: _sdk,
    Property.runtime: _runtime,
    Property.used_storage: lambda repo: repo.size,
    Property.safetensors: _safetensors,
    Property.base_models: _names(RepoType.model, "base_model"),
    Property.widget_data: _of(RepoType.model, _widget_data),
    Property.eval_results: _of(RepoType.model, lambda _: []),
    Property.inference_provider_mapping: _of(RepoType.model, lambda _: []),
    Property.papers_with_code_id: _of(
        RepoType.dataset, lambda repo: _card_text(repo, "paperswithcode_id")
    ),
    Property.models: _names(RepoType.space, "models"),
    Property.datasets: _names(RepoType.space, "datasets"),
}


def render_information(repo: Repo, properties: Collection[Property]) -> dict[str, Any]:
    """Return the values of these properties that the repository's own record has."""
    values = {name.value: get(repo) for name, get in _VALUES.items() if name in properties}
    known = {name: value for name, value in values.items() if value is not None}
    return {"_id": repo.id, "id": repo.full_name, **known}


def render_resource_group(group: ResourceGroupRecord) -> dict[str, Any]:
    return {"id": group.id, "name": group.name}


def render_security_status() -> dict[str, Any]:
    return {"scansDone": False, "filesWithIssues": []}


def render_files(entries: Sequence[GitEntry], *, with_blobs: bool) -> list[dict[str, Any]]:
    return [_render_file(entry) if with_blobs else {"rfilename": entry.path} for entry in entries]


def _render_file(entry: GitEntry) -> dict[str, Any]:
    file: dict[str, Any] = {"rfilename": entry.path, "size": entry.size, "blobId": entry.oid}
    if entry.lfs is not None:
        file["lfs"] = {
            "size": entry.lfs.size,
            "sha256": entry.lfs.sha256,
            "pointerSize": entry.lfs.pointer_size,
        }
    return file
