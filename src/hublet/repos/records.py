"""Records of a repository: the repository itself, its refs, blobs, card, likes and access
requests.
"""

from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from hublet.accounts.records import User
from hublet.core.light_dataclasses import dataclass
from hublet.events import UpdatedRef


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
    """How somebody gets to read a gated repository: by asking, or by being accepted."""

    auto = "auto"
    manual = "manual"


class Right(StrEnum):
    """What a caller wants to do with a repository."""

    # Know that it exists, and read about it.
    see = "see"
    # Read its content; the gate of a gated repository stands here.
    read = "read"
    discuss = "discuss"
    write = "write"
    # Change its settings, move it, delete it.
    manage = "manage"


@dataclass(frozen=True, slots=True, kw_only=True)
class Repo:
    id: str
    type: RepoType
    owner_id: str
    owner_name: str
    # Either "user" or "org".
    owner_type: str
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
    created_at: datetime
    updated_at: datetime

    @property
    def full_name(self) -> str:
        return f"{self.owner_name}/{self.name}"

    @property
    def is_private(self) -> bool:
        """Whether strangers see nothing of it; the app of a protected space is not its files."""
        return self.visibility is not Visibility.public

    @property
    def address(self) -> "RepoAddress":
        return RepoAddress(type=self.type, namespace=self.owner_name, name=self.name)

    def url(self, base_url: str) -> str:
        return f"{base_url}/{self.type.prefix}{self.full_name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """Which repositories that are not public somebody may see, by what all of them have in common.

    Those in a resource group are seen by its members and by the organization's administrators.
    """

    user_id: str
    # Owners of whom the token reads everything, and those of whom it reads what it created.
    readable: tuple[str, ...]
    where_created: tuple[str, ...]
    created_with: str
    # Organizations where the user is an administrator.
    administered: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RepoAddress:
    """Which repository a request names."""

    type: RepoType
    namespace: str
    name: str
    # The address of the whole request, from the path on; where a moved repository is looked for.
    requested: str = field(default="", compare=False)

    @property
    def full_name(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    sha256: str
    size: int
    # What git would call the same bytes, where it is known.
    git_sha1: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedBlob:
    """A blob that a repository brought along, and when."""

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
    # Begin with a commit that holds nothing.
    is_empty: bool = False
    # Move the branch when there is one of this name.
    overwrite: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """The metadata at the top of README.md, and the tags that follow from it."""

    data: dict[str, Any] | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RefTransaction:
    """Refs that move together, all or none, and what else changes with them."""

    updates: tuple[UpdatedRef, ...]
    actor_id: str
    # The card of the commit that main moves to; None when main stays.
    card: Card | None = None
    # How much the repository's storage grows.
    added_bytes: int = 0
    # What these refs brought into the folder of blobs.
    blobs: tuple[Blob, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsChange:
    """What is None keeps its value; `gated` False takes the gate away."""

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
    # What the person filled in; None for one who never asked and was let in all the same.
    fields: dict[str, Any] | None
    rejection_reason: str | None = None
    # None when nobody decided, or the gate opens by itself.
    decided_by: str | None = None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRequester:
    """Who asked, with the address that asking shares."""

    request: GateRequest
    user: User
    email: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    # The last part of its address. Nobody can guess it, and who has it may see the content.
    name: str
    user_id: str
    sha256: str
    size: int
    media_type: str
    created_at: datetime
