"""Records of repositories: a repository, its refs, blobs, card, likes and access requests."""

from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from hublet.accounts.records import Owner, Role, User
from hublet.core.dataclasses import dataclass
from hublet.events import UpdatedRef
from hublet.storage.records import Blob


class RepoType(StrEnum):
    model = "model"
    dataset = "dataset"
    space = "space"
    kernel = "kernel"
    bucket = "bucket"
    container = "container"

    @property
    def plural(self) -> str:
        """The word for it in an address: `/api/models/…`."""
        return f"{self}s"

    @property
    def prefix(self) -> str:
        """What stands before owner/name in the address of a page or a download."""
        return "" if self is RepoType.model else f"{self.plural}/"

    @property
    def has_git(self) -> bool:
        # Interface 1: buckets are git-free, containers mirror them.
        return self not in {RepoType.bucket, RepoType.container}


class Visibility(StrEnum):
    public = "public"
    private = "private"
    # A space whose app anybody may use and whose files only its members see.
    protected = "protected"


class Gated(StrEnum):
    """How a request to read a gated repository is granted: at once, or by its owner's decision."""

    auto = "auto"
    manual = "manual"


class Right(StrEnum):
    """A right to a repository, from the weakest to the strongest."""

    # Know that it exists, and read about it.
    see = "see"
    # Read its content; of a gated repository only after a request for access.
    read = "read"
    discuss = "discuss"
    write = "write"
    # Change its settings, move it, delete it.
    manage = "manage"


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoViewer:
    """What a caller may do with a repository, and whether they like it."""

    rights: frozenset[Right]
    is_liked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Repo:
    id: str
    type: RepoType
    owner: Owner
    name: str
    visibility: Visibility
    gated: Gated | None = None
    discussions_disabled: bool = False
    sdk: str | None = None
    resource_group_id: str | None = None
    creator_id: str
    created_with: str | None = None
    head_sha: str | None = None
    card: dict[str, Any] | None = None
    tags: tuple[str, ...] = ()
    size: int = 0
    total_files: int = 0
    downloads: int = 0
    likes: int = 0
    trending_score: int = 0
    # Of a model: its parameters by type, from the headers of its safetensors files.
    safetensors: dict[str, int] | None = None
    created_at: datetime
    updated_at: datetime

    @property
    def owner_id(self) -> str:
        return self.owner.id

    @property
    def owner_name(self) -> str:
        return self.owner.name

    @property
    def full_name(self) -> str:
        return f"{self.owner.name}/{self.name}"

    @property
    def is_private(self) -> bool:
        """Whether strangers see none of its files; those of a protected space are private."""
        return self.visibility is not Visibility.public

    @property
    def address(self) -> "RepoAddress":
        return RepoAddress(type=self.type, namespace=self.owner_name, name=self.name)

    def url(self, base_url: str) -> str:
        return f"{base_url}/{self.type.prefix}{self.full_name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoGuard:
    """What decides whether a user finds a repository: its owner and the user's own roles there.

    A name that no repository has gets a guard that lets nobody pass, so that both take the same way.
    """

    repo_id: str
    owner_id: str
    creator_id: str
    visibility: Visibility
    gated: Gated | None
    resource_group_id: str | None
    created_with: str | None
    organization_role: Role | None
    group_role: Role | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The private repositories that a caller may see in lists, described by their owners.

    Those in a resource group are seen by its members and by the organization's administrators.
    """

    user_id: str
    # Owners whose repositories the token reads, and owners where it reads what it created.
    readable: tuple[str, ...]
    where_created: tuple[str, ...]
    created_with: str
    # Organizations where the user is an administrator.
    administered: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoAddress:
    """The repository that a request names."""

    type: RepoType
    namespace: str
    name: str
    # Path and query of the request, to redirect it when the repository was moved.
    request_url: str = field(default="", compare=False)

    @property
    def full_name(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedBlob:
    """A blob that was uploaded to a repository, and when."""

    sha256: str
    size: int
    pushed_at: datetime


MAIN = "refs/heads/main"
HEADS = "refs/heads/"
TAGS = "refs/tags/"
PULL_REQUESTS = "refs/pr/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ref:
    # As git spells it: refs/heads/main.
    name: str
    sha: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewBranch:
    name: str
    # A branch, a tag or a commit; None: main.
    starting_point: str | None = None
    # Begin with an empty commit.
    is_empty: bool = False
    # Move the branch when there is one of this name.
    overwrite: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationResult:
    """A value that a model reached in a task of a dataset, as its repository states it."""

    # owner/name, as names are compared.
    dataset_key: str
    task_id: str
    value: float
    # The file that states it.
    filename: str
    # Address, and if known the name and the account, of where it comes from.
    source: dict[str, str] = field(default_factory=dict)
    notes: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """The metadata at the top of README.md, and what follows from it."""

    data: dict[str, Any] | None = None
    tags: tuple[str, ...] = ()
    # None: they are as they were before.
    evaluations: tuple[EvaluationResult, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedResult:
    """A result with the model that states it."""

    model: Repo
    result: EvaluationResult
    # As the headers of its weights say.
    parameters: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedModel:
    """A place on the leaderboard of a dataset."""

    rank: int
    best: RankedResult


class LinkKind(StrEnum):
    """What a repository has in common with others that a list can be filtered by."""

    tag = "tag"
    model = "model"
    dataset = "dataset"
    base_model = "base_model"
    # To any model or dataset; the target is empty.
    linked = "linked"


@dataclass(frozen=True, slots=True)
class RepoLink:
    """A tag of a repository, or a repository that its card names; in lower case."""

    kind: LinkKind
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPack:
    """A pack of git objects that is in the shared store, or comes with its row if it is small."""

    name: str
    size: int
    objects: int
    # The pack, and behind it its index.
    data: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPacks:
    """The packs that a change wrote, on a hub with a shared store."""

    # False: the objects of this repository are still in the folder of a node, and so are these.
    is_listed: bool
    packs: tuple[NewPack, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RefTransaction:
    """Ref transaction: refs that move together, all or none, and what else changes with them."""

    updates: tuple[UpdatedRef, ...]
    actor_id: str
    # The card of the commit that main moves to; None when main stays, or keeps its card.
    card: Card | None = None
    # The first names of all paths that the one ref changes by, where that is known.
    changed_names: tuple[str, ...] | None = None
    # False: no file that is new has the prefix of a credential.
    may_leak: bool = True
    # How much the repository's storage grows.
    added_bytes: int = 0
    # The blobs that were uploaded with these refs.
    blobs: tuple[Blob, ...] = ()
    # None without a shared store, and where no objects were written.
    packs: NewPacks | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageUsage:
    """Bytes of content, and bytes at rest that one repository of the owner needs, or several do."""

    raw: int
    stored: int
    shared: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoUsage:
    type: str
    # With the owner's.
    name: str
    usage: StorageUsage


@dataclass(frozen=True, slots=True, kw_only=True)
class DamagedObject:
    """An object of the store whose bytes are wrong or gone."""

    # `blobs` or `xorbs`.
    kind: str
    digest: str
    # `damaged` or `missing`.
    problem: str
    found_at: datetime
    # The names of repositories with content in it, a few at most.
    repos: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsChange:
    """Changed settings: None keeps a value, `gated` False removes the gate."""

    visibility: Visibility | None = None
    gated: Gated | Literal[False] | None = None
    discussions_disabled: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UserLike:
    repo: Repo
    created_at: datetime


class AccessStatus(StrEnum):
    pending = "pending"
    accepted = "accepted"
    rejected = "rejected"


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRequest:
    id: str
    repo_id: str
    user_id: str
    status: AccessStatus
    # The form that the user filled in; None when access was granted without a request.
    fields: dict[str, Any] | None
    rejection_reason: str | None = None
    # None while it is pending, or when the gate is automatic.
    decided_by: str | None = None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRequester:
    """An access request with its user and the email address that the request shares."""

    request: GateRequest
    user: User
    email: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    # The last part of its address: a secret that nobody can guess and that gives access.
    name: str
    user_id: str
    sha256: str
    size: int
    media_type: str
    created_at: datetime
