"""Records of browsing: properties, revisions and files of a repository, filter and order of lists."""

from enum import StrEnum
from pathlib import Path

from hublet.core.dataclasses import dataclass
from hublet.repos.git.diffs import CommitDiff, Divergence
from hublet.repos.git.history import CommitInfo
from hublet.repos.git.trees import GitEntry
from hublet.repos.records import LinkKind, Repo, RepoType
from hublet.storage.records import Content


class Property(StrEnum):
    """What the public clients may ask for with `expand`.

    What has no meaning here, as where an app runs or what a widget shows, is empty or left out.
    """

    author = "author"
    base_models = "baseModels"
    card_data = "cardData"
    children_model_count = "childrenModelCount"
    citation = "citation"
    config = "config"
    created_at = "createdAt"
    datasets = "datasets"
    description = "description"
    disabled = "disabled"
    downloads = "downloads"
    downloads_all_time = "downloadsAllTime"
    eval_results = "evalResults"
    gated = "gated"
    gguf = "gguf"
    # Asked by the JavaScript client; what a server of the public service calls a repository.
    gitaly_uid = "gitalyUid"
    inference = "inference"
    inference_provider_mapping = "inferenceProviderMapping"
    last_modified = "lastModified"
    library_name = "library_name"
    likes = "likes"
    main_size = "mainSize"
    mask_token = "mask_token"  # noqa: S105 - a token of a text, no secret
    model_index = "model-index"
    models = "models"
    papers_with_code_id = "paperswithcode_id"
    pipeline_tag = "pipeline_tag"
    private = "private"
    region = "region"
    resource_group = "resourceGroup"
    runtime = "runtime"
    safetensors = "safetensors"
    sdk = "sdk"
    sha = "sha"
    siblings = "siblings"
    spaces = "spaces"
    subdomain = "subdomain"
    tags = "tags"
    transformers_info = "transformersInfo"
    trending_score = "trendingScore"
    used_storage = "usedStorage"
    widget_data = "widgetData"


IN_LISTS = frozenset(
    {
        Property.author,
        Property.created_at,
        Property.disabled,
        Property.downloads,
        Property.gated,
        Property.last_modified,
        Property.library_name,
        Property.likes,
        Property.pipeline_tag,
        Property.private,
        Property.sdk,
        Property.sha,
        Property.tags,
    }
)
IN_DETAIL = IN_LISTS | {
    Property.card_data,
    Property.datasets,
    Property.models,
    Property.runtime,
    Property.safetensors,
    Property.siblings,
    Property.used_storage,
}
# What stands in the files of a repository, so that git has to be read for it.
IN_FILES = frozenset(
    {
        Property.citation,
        Property.config,
        Property.description,
        Property.main_size,
        Property.siblings,
    }
)
# What other records say of a repository.
IN_RELATIONS = frozenset({Property.children_model_count, Property.resource_group, Property.spaces})


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """A commit of a repository, and the folder where git holds it."""

    repo: Repo
    commit: str
    folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedEntry:
    """A file or folder with what git's tree does not say of it."""

    entry: GitEntry
    # The file hash of Xet, of a file in LFS that is cut into chunks.
    xet_hash: str | None = None
    # The commit that last changed it, if requested and found in the recent history.
    last_commit: CommitInfo | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """A file of a commit: small ones are in git, large ones in the storage."""

    repo: Repo
    commit: str
    entry: GitEntry
    # Git's folder of the repository.
    folder: Path
    # Where the bytes lie; None when the content is in git.
    content: Content | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitView:
    repo: Repo
    info: CommitInfo
    # What it changed since its first parent; None for callers who may not read files.
    diff: CommitDiff | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionComparison:
    """What the head has that the base has not."""

    repo: Repo
    divergence: Divergence
    # What changed since the merge base; None for callers who may not read files.
    diff: CommitDiff | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTag:
    """A tag in the list of all tags of models, or of datasets."""

    id: str
    label: str
    type: str
    # The modality of a task.
    subtype: str | None = None


class ListSort(StrEnum):
    """Sort key of a list; the value is the column."""

    creation = "created_at"
    update = "updated_at"
    likes = "likes"
    downloads = "downloads"
    trend = "trending_score"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkFilter:
    """Repositories with a tag, or whose card names another repository by one of its names."""

    kind: LinkKind
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterRange:
    """How many parameters a model has at least and at most."""

    least: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoFilter:
    """Filter of a list; an empty field matches everything."""

    type: RepoType
    # The name of a user or an organization.
    author: str = ""
    # Each must be a part of owner/name.
    words: tuple[str, ...] = ()
    # Must be a part of the name alone.
    name_part: str = ""
    # Each must be among the tags, in any case.
    tags: tuple[str, ...] = ()
    gated: bool | None = None
    # Ids of users and organizations; None: of anybody.
    owner_ids: tuple[str, ...] | None = None
    # Each must be there.
    links: tuple[LinkFilter, ...] = ()
    parameters: ParameterRange | None = None
    # Only models that are served for inference; this hub serves none.
    is_served: bool = False
    # Repositories of the type, so few that reading all of them is best, all matches among them.
    candidate_ids: tuple[str, ...] | None = None
    # The same of public ones, and of those that are not.
    public_ids: tuple[str, ...] | None = None
    private_ids: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOrder:
    sort: ListSort = ListSort.creation
    ascending: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPosition:
    """Position of the last repository on a page: the value of the sort key, and its id."""

    value: int
    repo_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerListPosition:
    """Position of the last repository on a page of an owner's list."""

    # Empty at the start of the list.
    type: str = ""
    value: int = 0
    repo_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderboardQuery:
    """What a leaderboard shows."""

    # Empty: the task that most models state a result for.
    task_id: str = ""
    max_parameters: int | None = None
    # Without models that name a base model.
    only_roots: bool = True
