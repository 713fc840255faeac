"""What is known of a repository, on the wire.

Answers are put together as plain values: one may have as many files as a repository, and those
are turned into bytes in a thread, without a model for each.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Annotated, Any, Literal

from pydantic import MISSING, Field

from hublet.accounts.resource_groups.records import ResourceGroup
from hublet.core.clock import wire
from hublet.core.schema import ObjectId, Schema, Timestamp
from hublet.repos.git.trees import Entry
from hublet.repos.information.properties import Property
from hublet.repos.records import Repo, RepoType
from hublet.repos.settings.schemas import GateName, RepoResourceGroup


class LfsFile(Schema):
    size: int
    sha256: str
    pointerSize: int


class RepoFile(Schema):
    rfilename: str
    # These with `blobs=true` only.
    size: int | MISSING = MISSING
    blobId: str | MISSING = MISSING
    lfs: LfsFile | MISSING = MISSING


class SpaceHardware(Schema):
    current: str | None
    requested: str | None


class SpaceRuntime(Schema):
    """The app of a space, which this hub does not run."""

    stage: Literal["STOPPED"]
    hardware: SpaceHardware


class SecurityStatus(Schema):
    """This hub does not scan files."""

    scansDone: bool
    filesWithIssues: list[str]


class RepoInfo(Schema):
    """A repository; with `expand` only its ids and what was asked for."""

    object_id: Annotated[ObjectId, Field(alias="_id")]
    # In the form owner/name.
    id: str
    author: str | MISSING = MISSING
    sha: str | MISSING = MISSING
    createdAt: Timestamp | MISSING = MISSING
    lastModified: Timestamp | MISSING = MISSING
    private: bool | MISSING = MISSING
    gated: GateName | MISSING = MISSING
    disabled: bool | MISSING = MISSING
    downloads: int | MISSING = MISSING
    downloadsAllTime: int | MISSING = MISSING
    likes: int | MISSING = MISSING
    trendingScore: int | MISSING = MISSING
    # Tags and card are those of main, whatever the revision.
    tags: list[str] | MISSING = MISSING
    cardData: dict[str, Any] | MISSING = MISSING
    pipeline_tag: str | MISSING = MISSING
    library_name: str | MISSING = MISSING
    model_index: Annotated[Any | MISSING, Field(alias="model-index")] = MISSING
    sdk: str | MISSING = MISSING
    runtime: SpaceRuntime | MISSING = MISSING
    usedStorage: int | MISSING = MISSING
    resourceGroup: RepoResourceGroup | MISSING = MISSING
    # Of more than 50,000 files only so many are listed; a tree has all.
    siblings: list[RepoFile] | MISSING = MISSING
    securityRepoStatus: SecurityStatus | MISSING = MISSING


def _card_text(repo: Repo, key: str) -> str | None:
    value = (repo.card or {}).get(key)
    return value if isinstance(value, str) else None


def _runtime(repo: Repo) -> dict[str, Any] | None:
    if repo.type is not RepoType.space:
        return None
    return {"stage": "STOPPED", "hardware": {"current": None, "requested": None}}


def _of_a_model(key: str) -> Callable[[Repo], str | None]:
    return lambda repo: _card_text(repo, key) if repo.type is RepoType.model else None


def _sdk(repo: Repo) -> str | None:
    return (_card_text(repo, "sdk") or repo.sdk) if repo.type is RepoType.space else None


# What is None is left out.
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
    Property.trending_score: lambda repo: repo.likes,
    Property.tags: lambda repo: repo.tags,
    Property.card_data: lambda repo: repo.card,
    Property.pipeline_tag: _of_a_model("pipeline_tag"),
    Property.library_name: _of_a_model("library_name"),
    Property.model_index: lambda repo: (repo.card or {}).get("model-index"),
    Property.sdk: _sdk,
    Property.runtime: _runtime,
    Property.used_storage: lambda repo: repo.size,
}


def info_of(repo: Repo, shown: Collection[Property]) -> dict[str, Any]:
    """Return what the repository's own record tells of these properties."""
    values = {name.value: get(repo) for name, get in _VALUES.items() if name in shown}
    known = {name: value for name, value in values.items() if value is not None}
    return {"_id": repo.id, "id": repo.full_name, **known}


def group_of(group: ResourceGroup) -> dict[str, Any]:
    return {"id": group.id, "name": group.name}


def security_status() -> dict[str, Any]:
    return {"scansDone": False, "filesWithIssues": []}


def files_of(entries: Sequence[Entry], *, with_blobs: bool) -> list[dict[str, Any]]:
    return [_file(entry) if with_blobs else {"rfilename": entry.path} for entry in entries]


def _file(entry: Entry) -> dict[str, Any]:
    file: dict[str, Any] = {"rfilename": entry.path, "size": entry.size, "blobId": entry.oid}
    if entry.lfs is not None:
        file["lfs"] = {
            "size": entry.lfs.size,
            "sha256": entry.lfs.sha256,
            "pointerSize": entry.lfs.pointer_size,
        }
    return file
