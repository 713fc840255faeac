"""Wire schemas of collections and their items."""

from html import escape
from typing import Annotated, Any, Literal, Self

from pydantic import MISSING, Field, StringConstraints

from hublet.community.collections.records import (
    MAX_DESCRIPTION,
    MAX_NOTE,
    MAX_TITLE,
    MOST_ITEMS,
    CollectionChange,
    CollectionItemView,
    CollectionRecord,
    CollectionView,
    ItemAddress,
    ItemChange,
    ItemType,
    ListedCollection,
    NewCollection,
    Theme,
)
from hublet.community.comment_schemas import Author
from hublet.community.papers.records import PaperRecord
from hublet.community.threads.records import Accounts
from hublet.core.schema import ONE_LINE, Flag, ObjectId, Schema, Timestamp
from hublet.repos.cards import emoji_of
from hublet.repos.records import Repo, RepoType
from hublet.repos.schemas import GateName, RepoResourceGroup, RepoTypeName

MAX_POSITION = 2**53 - 1
MOST_PICTURES = 20

ItemTypeName = Literal[
    "model", "dataset", "space", "kernel", "bucket", "container", "paper", "collection"
]
ThemeName = Literal["orange", "blue", "green", "purple", "pink", "indigo"]
CollectionTitle = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_TITLE),
    ONE_LINE,
]
CollectionDescription = Annotated[str, Field(max_length=MAX_DESCRIPTION)]
ItemNoteText = Annotated[str, Field(max_length=MAX_NOTE)]
Position = Annotated[int, Field(ge=0, le=MAX_POSITION, strict=True)]
PictureUrl = Annotated[str, Field(max_length=2000, pattern=r"^https?://[^\s\x00-\x1f]+$")]
Gallery = Annotated[list[PictureUrl], Field(max_length=MOST_PICTURES)]
NoGate = Annotated[
    Literal[False], Field(description="Always false: who sees a collection sees all of its items.")
]


def _given(value: Any) -> Any:
    return None if value is MISSING else value


class NamedItem(Schema):
    """What to add: owner/name of a repository, the id of a paper, the slug of a collection."""

    type: ItemTypeName
    id: Annotated[str, Field(min_length=1, max_length=300)]

    def address(self) -> ItemAddress:
        return ItemAddress(type=ItemType(self.type), id=self.id)


class CreateCollection(Schema):
    title: CollectionTitle
    # The name of the caller, or of an organization.
    namespace: Annotated[str, Field(min_length=1, max_length=200)]
    description: CollectionDescription = ""
    # Public without it, or what the organization has set for what is new.
    private: Flag | MISSING = MISSING
    item: NamedItem | MISSING = MISSING
    resourceGroupId: ObjectId | MISSING = MISSING

    def new(self) -> NewCollection:
        return NewCollection(
            title=self.title,
            namespace=self.namespace,
            description=self.description,
            is_private=_given(self.private),
            resource_group_id=_given(self.resourceGroupId),
            item=None if self.item is MISSING else self.item.address(),
        )


class UpdateCollection(Schema):
    """A field that is left out keeps its value."""

    title: CollectionTitle | MISSING = MISSING
    description: CollectionDescription | MISSING = MISSING
    theme: ThemeName | MISSING = MISSING
    private: Flag | MISSING = MISSING
    # Among the owner's collections that the caller sees, from 0.
    position: Position | MISSING = MISSING
    gating: NoGate | MISSING = MISSING

    def change(self) -> CollectionChange:
        return CollectionChange(
            title=_given(self.title),
            description=_given(self.description),
            theme=None if self.theme is MISSING else Theme(self.theme),
            is_private=_given(self.private),
            position=_given(self.position),
        )


class AddItem(Schema):
    item: NamedItem
    note: ItemNoteText = ""


class UpdateItem(Schema):
    """A field that is left out keeps its value; an empty note removes it."""

    note: ItemNoteText | MISSING = MISSING
    # Among the items that the caller sees, from 0.
    position: Position | MISSING = MISSING
    gallery: Gallery | MISSING = MISSING

    def change(self, item_id: str) -> ItemChange:
        return ItemChange(
            item_id=item_id,
            note=_given(self.note),
            position=_given(self.position),
            gallery=None if self.gallery is MISSING else tuple(self.gallery),
        )


class ItemUpdate(Schema):
    """One change of a batch."""

    action: Literal["update"]
    id: Annotated[ObjectId, Field(alias="_id")]
    data: UpdateItem


ItemUpdates = Annotated[list[ItemUpdate], Field(min_length=1, max_length=MOST_ITEMS)]


class SetCollectionResourceGroup(Schema):
    # Null takes the collection out of its group.
    resourceGroupId: ObjectId | None


class GroupedCollection(Schema):
    """A collection after it was put into a resource group, or out of it."""

    id: ObjectId
    slug: str
    title: str
    private: bool
    # The id of the user who created it.
    addedBy: str

    @classmethod
    def of(cls, collection: CollectionRecord) -> Self:
        return cls(
            id=collection.id,
            slug=collection.full_slug,
            title=collection.title,
            private=collection.is_private,
            addedBy=collection.creator_id,
        )


class CollectionTaken(Schema):
    """The owner has a collection of this title: the one with this slug."""

    error: str
    slug: str


class ItemNote(Schema):
    html: str
    text: str


class CollectionOwner(Author):
    # The public service knows people of its own; this hub has none of these.
    isHf: bool = False
    isHfAdmin: bool = False
    isMod: bool = False
    isPro: bool = False


class CollectionItem(Schema):
    """An item, with what it is: each type has some of the fields."""

    item_id: Annotated[ObjectId, Field(alias="_id")]
    id: str
    type: ItemTypeName
    position: int
    note: ItemNote | MISSING = MISSING
    gallery: list[str] | MISSING = MISSING
    # Of repositories.
    author: str | MISSING = MISSING
    repoType: RepoTypeName | MISSING = MISSING
    private: bool | MISSING = MISSING
    gated: GateName | MISSING = MISSING
    likes: int | MISSING = MISSING
    downloads: int | MISSING = MISSING
    lastModified: Timestamp | MISSING = MISSING
    createdAt: Timestamp | MISSING = MISSING
    isLikedByUser: bool | MISSING = MISSING
    pipeline_tag: str | MISSING = MISSING
    sdk: str | MISSING = MISSING
    emoji: str | MISSING = MISSING
    # Of buckets and containers.
    size: int | MISSING = MISSING
    totalFiles: int | MISSING = MISSING
    updatedAt: Timestamp | MISSING = MISSING
    # Of papers and collections; the title of spaces too.
    title: str | MISSING = MISSING
    upvotes: int | MISSING = MISSING
    publishedAt: Timestamp | MISSING = MISSING
    slug: str | MISSING = MISSING
    theme: ThemeName | MISSING = MISSING
    owner: CollectionOwner | MISSING = MISSING
    numberItems: int | MISSING = MISSING
    shareUrl: str | MISSING = MISSING
    lastUpdated: Timestamp | MISSING = MISSING

    @classmethod
    def of(cls, item: CollectionItemView, accounts: Accounts, *, base_url: str) -> Self:
        note = item.record.note
        fields: dict[str, Any] = {
            "_id": item.record.id,
            "type": item.type.value,
            "position": item.position,
            "gallery": list(item.record.gallery) or MISSING,
        }
        if note:
            html = escape(note).replace("\n", "<br>")
            fields["note"] = {"html": f"<p>{html}</p>", "text": note}
        return cls.model_validate(fields | _target_fields(item, accounts, base_url))


def _target_fields(item: CollectionItemView, accounts: Accounts, base_url: str) -> dict[str, Any]:
    target = item.target
    if isinstance(target, PaperRecord):
        return {
            "id": target.id,
            "title": target.thread.title,
            "upvotes": target.upvotes,
            "publishedAt": target.published_at,
        }
    if isinstance(target, ListedCollection):
        return _listed_fields(target, accounts, base_url)
    return _repo_fields(target, is_liked=item.is_liked)


def _listed_fields(listed: ListedCollection, accounts: Accounts, base_url: str) -> dict[str, Any]:
    collection = listed.collection
    return {
        "id": collection.id,
        "slug": collection.full_slug,
        "title": collection.title,
        "theme": collection.theme.value,
        "upvotes": collection.upvotes,
        "owner": CollectionOwner.of_id(collection.owner_id, accounts, base_url=base_url),
        "numberItems": listed.item_count,
        "shareUrl": collection.url(base_url),
        "lastUpdated": collection.updated_at,
        "private": collection.is_private,
    }


def _repo_fields(repo: Repo, *, is_liked: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "id": repo.full_name,
        "author": repo.owner_name,
        "repoType": repo.type.value,
        "private": repo.is_private,
        "gated": repo.gated.value if repo.gated else False,
        "likes": repo.likes,
        "downloads": repo.downloads,
        "lastModified": repo.updated_at,
        "createdAt": repo.created_at,
        "isLikedByUser": is_liked,
    }
    if not repo.type.has_git:
        fields |= {"size": repo.size, "totalFiles": repo.total_files, "updatedAt": repo.updated_at}
    card = repo.card or {}
    if repo.type is RepoType.model and isinstance(card.get("pipeline_tag"), str):
        fields["pipeline_tag"] = card["pipeline_tag"]
    if repo.type is RepoType.space:
        title = card.get("title")
        fields |= {
            "title": title if isinstance(title, str) else repo.name,
            "emoji": emoji_of(repo),
            "sdk": repo.sdk or MISSING,
        }
    return fields


class ListedCollectionInfo(Schema):
    """A collection in a list, with at most four of its items and without its position."""

    slug: str
    title: str
    description: str | MISSING = MISSING
    lastUpdated: Timestamp
    gating: Literal[False] = False
    owner: CollectionOwner
    theme: ThemeName
    private: bool
    upvotes: int
    shareUrl: str
    isUpvotedByUser: bool
    items: list[CollectionItem]

    @classmethod
    def of(cls, view: CollectionView, accounts: Accounts, *, base_url: str) -> Self:
        return cls.model_validate(_collection_fields(view, accounts, base_url))


class CollectionInfo(ListedCollectionInfo):
    """A collection with all items that the caller sees."""

    # Among the owner's collections that the caller sees.
    position: int
    resourceGroup: RepoResourceGroup | MISSING = MISSING

    @classmethod
    def of(cls, view: CollectionView, accounts: Accounts, *, base_url: str) -> Self:
        group = view.resource_group
        return cls.model_validate(
            _collection_fields(view, accounts, base_url)
            | {
                "position": view.position or 0,
                "resourceGroup": {"id": group.id, "name": group.name} if group else MISSING,
            }
        )


def _collection_fields(view: CollectionView, accounts: Accounts, base_url: str) -> dict[str, Any]:
    collection = view.collection
    return {
        "slug": collection.full_slug,
        "title": collection.title,
        "description": collection.description or MISSING,
        "lastUpdated": collection.updated_at,
        "owner": CollectionOwner.of_id(collection.owner_id, accounts, base_url=base_url),
        "theme": collection.theme.value,
        "private": collection.is_private,
        "upvotes": collection.upvotes,
        "shareUrl": collection.url(base_url),
        "isUpvotedByUser": view.is_upvoted,
        "items": [
            CollectionItem.of(item, accounts, base_url=base_url).model_dump(by_alias=True)
            for item in view.items
        ],
    }


class BriefCollection(Schema):
    """A collection in a list with `expand=false`."""

    title: str
    name: Annotated[str, Field(description="Its slug, with the owner's name.")]
    private: bool
    upvotes: int

    @classmethod
    def of(cls, collection: CollectionRecord) -> Self:
        return cls(
            title=collection.title,
            name=collection.full_slug,
            private=collection.is_private,
            upvotes=collection.upvotes,
        )


class CollectionEnvelope(Schema):
    """A collection after a change: so the clients read it."""

    success: Literal[True] = True
    data: CollectionInfo
