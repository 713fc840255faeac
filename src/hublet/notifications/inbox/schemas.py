"""Schemas of the inbox, interface 2.4, 4.1 and 4.2, and of a message of the hub."""

from typing import Annotated, Literal, Self

from pydantic import (
    MISSING,
    ConfigDict,
    Field,
)

from hublet.core.schema import Flag, Moment, ObjectId, Schema, Timestamp
from hublet.notifications import records
from hublet.repos.records import RepoType

# The largest integer that JavaScript counts to.
MAX_PAGE = 9_007_199_254_740_991


class Filters(Schema):
    """Interface 4.1. What is not named here is no filter, and means nothing."""

    model_config = ConfigDict(extra="ignore")

    p: Annotated[
        int, Field(ge=0, le=MAX_PAGE, description="The page, from 0; a page has 25 items.")
    ] = 0
    readStatus: Annotated[
        Literal["all", "unread"], Field(description="Everything, or only what is unread.")
    ] = "all"
    repoType: Annotated[
        RepoType | MISSING, Field(description="Only discussions in repositories of this type.")
    ] = MISSING
    repoName: Annotated[
        str | MISSING,
        Field(description="Only discussions in this repository, as in `ada/engine`."),
    ] = MISSING
    postAuthor: Annotated[
        str | MISSING, Field(description="Only posts of this user or organization.")
    ] = MISSING
    paperId: Annotated[
        str | MISSING, Field(description="Only this paper: its id here, or its arXiv id.")
    ] = MISSING
    articleId: Annotated[
        str | MISSING, Field(description="Only this blog: its id, or its slug.")
    ] = MISSING
    mention: Annotated[
        Literal["all", "participating", "mentions"],
        Field(
            description="`participating`: threads that you opened, commented on, changed or were "
            "mentioned in. `mentions`: those in which you were mentioned, once."
        ),
    ] = "all"
    lastUpdate: Annotated[
        Moment | MISSING,
        Field(
            description="Nothing that changed after this moment. Give the newest `updatedAt` that "
            "was seen, with all its digits: pages stay as they are, and what came later is left "
            "alone."
        ),
    ] = MISSING


class ChangeFilters(Filters):
    applyToAll: Annotated[
        Literal["true", "false"],
        Field(description="`true`: everything that matches the filters, on all pages."),
    ] = "false"


class MarkAsRead(Schema):
    discussionIds: Annotated[
        list[str],
        Field(description="The threads; the id that stands in the item. Others are ignored."),
    ] = Field(default=[])
    read: Annotated[Flag, Field(description="`false` marks as unread again.")] = True


class DeleteNotifications(Schema):
    discussionIds: Annotated[
        list[Annotated[str, Field(pattern=r"^[0-9a-fA-F]{24}$")]] | MISSING, Field(min_length=1)
    ] = MISSING


class ChangedNotifications(Schema):
    """How many items changed."""

    count: int


class Participant(Schema):
    id: Annotated[ObjectId, Field(alias="_id")]
    avatar: str
    user: str


class RepoId(Schema):
    name: str
    type: RepoType


class _Item(Schema):
    updatedAt: Timestamp
    read: bool
    # The first thing in the thread that was not seen yet.
    discussionEventId: str | MISSING = MISSING


class NotifiedPaper(Schema):
    id: Annotated[ObjectId, Field(alias="_id")]
    title: str


class NotifiedPaperDiscussion(Schema):
    id: str
    participating: list[Participant]
    paperId: ObjectId


class PaperNotification(_Item):
    type: Literal["paper"]
    paper: NotifiedPaper
    paperDiscussion: NotifiedPaperDiscussion


class NotifiedDiscussion(Schema):
    num: int
    title: str
    status: Literal["draft", "open", "closed", "merged"]
    id: ObjectId
    isPullRequest: bool
    participating: list[Participant]


class RepoNotification(_Item):
    type: Literal["repo"]
    repo: RepoId
    discussion: NotifiedDiscussion


class NotifiedPost(Schema):
    id: str
    slug: str
    authorName: str
    title: str
    participating: list[Participant]


class PostNotification(_Item):
    type: Literal["post"]
    post: NotifiedPost


class NotifiedBlog(Schema):
    id: str
    slug: str
    title: str
    canonical: bool
    participating: list[Participant]
    authorName: str | MISSING = MISSING


class BlogNotification(_Item):
    type: Literal["community_blog"]
    blog: NotifiedBlog


Notification = Annotated[
    PaperNotification | RepoNotification | PostNotification | BlogNotification,
    Field(discriminator="type"),
]


class NotificationCount(Schema):
    """What matches all filters; of the same without `readStatus`, what is unread, and all."""

    view: int
    unread: int
    all: int


class Notifications(Schema):
    notifications: list[Notification]
    count: NotificationCount
    # How many items come before this page.
    start: int


class Message(Schema):
    id: ObjectId
    kind: Annotated[str, Field(description="What it is about, as in `webhook-suspended`.")]
    title: str
    body: Annotated[str, Field(description="Plain text; an empty line ends a paragraph.")]
    createdAt: Timestamp

    @classmethod
    def of(cls, message: records.HubMessage) -> Self:
        text = message.text
        return cls(
            id=message.id,
            kind=text.kind,
            title=text.title,
            body=text.body,
            createdAt=message.created_at,
        )
