"""Schemas of repositories, alone and in lists, and of their folders, files and commits.

Information about a repository is rendered as plain values: it may have as many files as a
repository, and those are turned into bytes in a thread, without a model for each.
"""

from html import escape
from typing import Annotated, Any, Literal, Self

from pydantic import MISSING, Field

from hublet.core.schema import ObjectId, Schema, Timestamp
from hublet.repos.browse.records import ListedEntry, ListedTag
from hublet.repos.git import trees
from hublet.repos.git.history import CommitInfo
from hublet.repos.git.objects import user_of
from hublet.repos.records import Repo
from hublet.repos.schemas import (
    GateName,
    RepoResourceGroup,
    RepoTypeName,
    Sha1,
    Sha256,
    VisibilityName,
)

ModelTagType = Literal[
    "pipeline_tag", "library", "dataset", "bucket", "language", "license", "arxiv", "doi",
    "region", "deploy", "other",
]  # fmt: skip
DatasetTagType = Literal[
    "benchmark", "task_categories", "size_categories", "modality", "format", "library", "language",
    "license", "arxiv", "doi", "region", "other", "task_ids", "annotations_creators",
    "language_creators", "multilinguality", "source_datasets",
]  # fmt: skip

MOST_PATHS = 1000
_WHOLE = 100


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


class SafetensorsCount(Schema):
    """Parameters by type, as the headers of the safetensors files on main say."""

    parameters: dict[str, int]
    total: int


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
    # Of models. Those of a gated one are for who may read it, and are left out of lists.
    safetensors: SafetensorsCount | MISSING = MISSING
    config: dict[str, Any] | MISSING = MISSING
    baseModels: list[str] | MISSING = MISSING
    # Those that the caller may see: at most 1,000 are counted, and 100 spaces named.
    childrenModelCount: int | MISSING = MISSING
    spaces: list[str] | MISSING = MISSING
    widgetData: list[Any] | MISSING = MISSING
    # This hub has no evaluations and serves no models: always empty.
    evalResults: list[Any] | MISSING = MISSING
    inferenceProviderMapping: list[Any] | MISSING = MISSING
    # Of datasets.
    description: str | MISSING = MISSING
    citation: str | MISSING = MISSING
    paperswithcode_id: str | MISSING = MISSING
    # How large the files on main are together; `usedStorage` has those of all commits.
    mainSize: int | MISSING = MISSING
    # Of spaces: what their cards name.
    models: list[str] | MISSING = MISSING
    datasets: list[str] | MISSING = MISSING
    usedStorage: int | MISSING = MISSING
    resourceGroup: RepoResourceGroup | MISSING = MISSING
    # Of more than 50,000 files only so many are listed, in lists 1,000; a tree has all.
    siblings: list[RepoFile] | MISSING = MISSING
    securityRepoStatus: SecurityStatus | MISSING = MISSING


class OwnRepo(Schema):
    """A repository in the list of its owner, with the bytes it takes."""

    id: str
    type: RepoTypeName
    visibility: VisibilityName
    updatedAt: Timestamp
    storage: int
    # Of everything the owner stores.
    storagePercent: float

    @classmethod
    def of(cls, repo: Repo, *, all_bytes: int) -> Self:
        return cls.model_validate(
            {
                "id": repo.full_name,
                "type": repo.type.value,
                "visibility": repo.visibility.value,
                "updatedAt": repo.updated_at,
                "storage": repo.size,
                "storagePercent": round(_WHOLE * repo.size / all_bytes, 2) if all_bytes else 0,
            }
        )


class TaskDemo(Schema):
    """An example of a task; this hub has none."""

    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()


class TaskModel(Schema):
    id: Annotated[str, Field(description="In the form owner/name.")]


class TaskInfo(Schema):
    """A task of models, without the page of examples that the public service has for it."""

    id: str
    label: str
    summary: str = ""
    isPlaceholder: Literal[True] = True
    demo: TaskDemo = TaskDemo()
    libraries: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    # Public ones; the first is the one that a client takes when none is named.
    models: tuple[TaskModel, ...] = ()
    spaces: tuple[str, ...] = ()
    widgetModels: tuple[str, ...] = ()


class TagInfo(Schema):
    id: str
    label: str
    type: str
    # The modality of a task.
    subType: str | MISSING = MISSING

    @classmethod
    def of(cls, tag: ListedTag) -> Self:
        subtype = MISSING if tag.subtype is None else tag.subtype
        return cls(id=tag.id, label=tag.label, type=tag.type, subType=subtype)


class Lfs(Schema):
    """Where the content lies that a pointer in git stands for."""

    oid: Sha256
    size: int
    pointerSize: int


class LastCommit(Schema):
    """The commit that last changed a file or folder."""

    id: Sha1
    title: str
    date: Timestamp


class SecurityFileStatus(Schema):
    """What a scan found; this hub scans nothing."""

    status: Literal["unscanned"] = "unscanned"
    avScan: None = None
    pickleImportScan: None = None


class TreeEntry(Schema):
    """A file or a folder; the size of a file in LFS is that of its content."""

    type: Literal["file", "directory"]
    oid: Sha1
    size: int
    path: str
    lfs: Lfs | MISSING = MISSING
    # The file hash of Xet, of a file in LFS that can be downloaded so.
    xetHash: Sha256 | MISSING = MISSING
    lastCommit: LastCommit | MISSING = MISSING
    securityFileStatus: SecurityFileStatus | MISSING = MISSING

    @classmethod
    def of(cls, listed: ListedEntry, *, expand: bool) -> "TreeEntry":
        entry, last = listed.entry, listed.last_commit
        is_scanned = expand and entry.type == "file"
        # Lists are long, and these values come from git: checking them costs more than they do.
        return cls.model_construct(
            type=entry.type,
            oid=entry.oid,
            size=entry.size,
            path=entry.path,
            lfs=MISSING if entry.lfs is None else _lfs(entry.lfs),
            xetHash=MISSING if listed.xet_hash is None else listed.xet_hash,
            lastCommit=MISSING if last is None else _last_commit(last),
            securityFileStatus=SecurityFileStatus() if is_scanned else MISSING,
        )


def _lfs(lfs: trees.LfsPointer) -> Lfs:
    return Lfs.model_construct(oid=lfs.sha256, size=lfs.size, pointerSize=lfs.pointer_size)


def _last_commit(commit: CommitInfo) -> LastCommit:
    return LastCommit.model_construct(id=commit.id, title=commit.title, date=commit.date)


class PathsInfo(Schema):
    paths: Annotated[list[str], Field(min_length=1, max_length=MOST_PATHS)]
    expand: bool = False


class TreeSize(Schema):
    """How many bytes the files below a folder have together."""

    path: str
    size: int


class CommitAuthor(Schema):
    """A user of this hub, or the name that stands in a commit from elsewhere."""

    user: str


class Formatted(Schema):
    """The same texts, safe to put into a page."""

    title: str
    message: str


class Commit(Schema):
    id: Sha1
    title: str
    message: str
    authors: list[CommitAuthor]
    date: Timestamp
    parents: list[Sha1]
    formatted: Formatted | MISSING = MISSING

    @classmethod
    def of(cls, commit: CommitInfo, *, formatted: bool) -> Self:
        fields: dict[str, Any] = {
            "id": commit.id,
            "title": commit.title,
            "message": commit.message,
            "authors": [{"user": user_of(commit.author_email) or commit.author_name}],
            "date": commit.date,
            "parents": list(commit.parents),
        }
        if formatted:
            fields["formatted"] = {
                "title": escape(commit.title),
                "message": escape(commit.message),
            }
        return cls.model_validate(fields)
