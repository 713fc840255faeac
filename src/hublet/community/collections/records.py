"""Records of collections, their items, and queries for them."""

from datetime import datetime
from enum import StrEnum

from hublet.accounts.records import Owner, ResourceGroupRecord
from hublet.community.papers.records import PaperRecord
from hublet.core.dataclasses import dataclass
from hublet.repos.records import Reach, Repo

# Of a collection, and of an owner; every response and every move reads all of them.
MOST_ITEMS = 1000
MOST_COLLECTIONS = 1000
# Of each collection in a list.
MOST_LISTED_ITEMS = 4
MAX_TITLE = 60
MAX_DESCRIPTION = 150
MAX_NOTE = 500


class Theme(StrEnum):
    """The color of a collection's page."""

    orange = "orange"
    blue = "blue"
    green = "green"
    purple = "purple"
    pink = "pink"
    indigo = "indigo"


class ItemType(StrEnum):
    """What a collection may hold: the six types of repository, papers, other collections."""

    model = "model"
    dataset = "dataset"
    space = "space"
    kernel = "kernel"
    bucket = "bucket"
    container = "container"
    paper = "paper"
    collection = "collection"

    @property
    def plural(self) -> str:
        return f"{self}s"

    @property
    def is_repo(self) -> bool:
        return self not in {ItemType.paper, ItemType.collection}


class CollectionSort(StrEnum):
    """How lists are ordered, always descending; the values are the client's words."""

    update = "lastModified"
    trending = "trending"
    upvotes = "upvotes"


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionRecord:
    id: str
    owner: Owner
    creator_id: str
    title: str
    # What stands before the id in its address; it follows the title.
    slug: str
    description: str = ""
    theme: Theme = Theme.orange
    is_private: bool = False
    resource_group_id: str | None = None
    # Its place among those of its owner, with gaps: see `CollectionView.position`.
    position: int = 0
    upvotes: int = 0
    trending: int = 0
    created_at: datetime
    updated_at: datetime

    @property
    def owner_id(self) -> str:
        return self.owner.id

    @property
    def full_slug(self) -> str:
        """The owner's name, the slug and the id, as the clients name a collection."""
        return f"{self.owner.name}/{self.slug}-{self.id}"

    def url(self, base_url: str) -> str:
        return f"{base_url}/collections/{self.full_slug}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemAddress:
    """What an item is, as requests name it: owner/name, the id of a paper, or a slug."""

    type: ItemType
    id: str

    @property
    def phrase(self) -> str:
        return f"{self.type} {self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemTarget:
    """What an item points to, by its id: exactly one is set."""

    repo_id: str | None = None
    thread_id: str | None = None
    listed_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRecord:
    id: str
    collection_id: str
    target: ItemTarget
    position: int
    note: str = ""
    gallery: tuple[str, ...] = ()
    added_by: str
    added_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedCollection:
    """A collection that is an item of another one, with how many items the reader sees in it."""

    collection: CollectionRecord
    item_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionItemView:
    """An item that the reader may see, with what it points to."""

    record: ItemRecord
    type: ItemType
    # Its place among the items that the reader sees, without gaps.
    position: int
    target: Repo | PaperRecord | ListedCollection
    is_liked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionView:
    """A collection as a reader sees it."""

    collection: CollectionRecord
    items: tuple[CollectionItemView, ...]
    is_upvoted: bool = False
    # Its place among those of its owner that the reader sees; None in lists.
    position: int | None = None
    resource_group: ResourceGroupRecord | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionViewer:
    """Who reads: which private collections and repositories they may see, and what they like."""

    user_id: str | None = None
    collections: Reach | None = None
    repos: Reach | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCollection:
    title: str
    namespace: str
    description: str = ""
    # None: public, or what the organization has set for what is new.
    is_private: bool | None = None
    resource_group_id: str | None = None
    item: ItemAddress | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionChange:
    """Changes of a collection; None keeps a value."""

    title: str | None = None
    description: str | None = None
    theme: Theme | None = None
    is_private: bool | None = None
    position: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemChange:
    """Changes of an item; None keeps a value."""

    item_id: str
    note: str | None = None
    position: int | None = None
    gallery: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionQuery:
    """Filter and order of lists; an empty field matches every collection."""

    owners: tuple[str, ...] = ()
    # Those that hold one of these; None: whatever they hold.
    items: tuple[ItemTarget, ...] | None = None
    text: str = ""
    sort: CollectionSort = CollectionSort.trending
    # Where to go on: the value that the list is ordered by, and the id.
    after: tuple[int, str] | None = None
    limit: int = 10
