"""Tools for threads: the inbox, and the discussions of repositories."""

from typing import Annotated, Any, Literal

import msgspec
from pydantic import Field

from hublet.community.comment_schemas import MAX_COMMENT
from hublet.community.discussions import service as discussions
from hublet.community.discussions import view
from hublet.community.discussions.records import (
    CLOSED_STATUSES,
    OPEN_STATUSES,
    DiscussionFilters,
    DiscussionSort,
    NewDiscussion,
)
from hublet.community.discussions.schemas import (
    CreateDiscussion,
    Discussion,
    DiscussionDetails,
    DiscussionPage,
    Reply,
)
from hublet.core.clock import wire
from hublet.core.errors import InvalidRequest
from hublet.core.schema import Flag, ObjectId, Schema
from hublet.mcp.records import (
    DISCUSSIONS,
    MARK_NOTIFICATIONS,
    NOTIFICATIONS,
    WRITE_DISCUSSIONS,
)
from hublet.mcp.repo_files import FileUri
from hublet.mcp.tools import Tool, ToolCall, cut, read
from hublet.notifications.inbox import service as inbox
from hublet.notifications.inbox.paging import read_page
from hublet.notifications.inbox.schemas import ChangeFilters, Filters
from hublet.repos.records import RepoAddress
from hublet.tokens.auth import identify_inbox_owner

_MAX_NUMBER = 2**31 - 1
_COMMENT_CHARACTERS = 4000
_MOST_EVENTS = 100
_DIFF_CHARACTERS = 20_000
_STATUSES = {
    "all": OPEN_STATUSES | CLOSED_STATUSES,
    "open": OPEN_STATUSES,
    "closed": CLOSED_STATUSES,
}

RepoUri = Annotated[
    str,
    Field(max_length=300, description="As in hf://ada/engine or hf://datasets/ada/poems."),
]
Number = Annotated[int, Field(ge=1, le=_MAX_NUMBER)]


class ListNotifications(Schema):
    unread_only: Flag = True
    page: Annotated[int, Field(ge=0, le=_MAX_NUMBER)] = 0
    mention: Annotated[
        Literal["all", "participating", "mentions"],
        Field(description="Everything, where you take part, or where you are mentioned."),
    ] = "all"


class NotificationItem(Schema):
    id: Annotated[str, Field(description="Of the thread, to mark it.")]
    type: str
    title: str
    place: Annotated[str, Field(description="A repository, an author, or what else it is about.")]
    num: Annotated[int | None, Field(description="Of a discussion in a repository.")] = None
    read: bool
    updated: str


class NotificationItems(Schema):
    notifications: list[NotificationItem]
    unread: int
    all: int


async def _list_notifications(call: ToolCall, request: ListNotifications) -> NotificationItems:
    caller = call.get_caller()
    filters = Filters(
        p=request.page,
        readStatus="unread" if request.unread_only else "all",
        mention=request.mention,
    )
    async with call.database.read() as conn:
        selection = await inbox.select(
            conn, caller.user_id, filters, except_owners=caller.blocked_owners
        )
    found = await read_page(call.database, caller.user_id, selection, page=request.page)
    # Its values are those of the wire, but for structs among them.
    page = msgspec.to_builtins(found)
    return NotificationItems(
        notifications=[_notification(each) for each in page["notifications"]],
        unread=page["count"]["unread"],
        all=page["count"]["all"],
    )


def _notification(item: dict[str, Any]) -> NotificationItem:
    thread: dict[str, Any]
    match item["type"]:
        case "repo":
            thread = item["discussion"]
            place, title = f"{item['repo']['type']} {item['repo']['name']}", thread["title"]
        case "paper":
            thread, place, title = item["paperDiscussion"], "paper", item["paper"]["title"]
        case "post":
            thread, place = item["post"], item["post"]["authorName"]
            title = thread["title"]
        case _:
            thread, place, title = item["blog"], "blog", item["blog"]["title"]
    return NotificationItem(
        id=thread["id"],
        type=item["type"],
        title=title,
        place=place,
        num=thread.get("num"),
        read=item["read"],
        updated=item["updatedAt"],
    )


class MarkNotifications(Schema):
    ids: Annotated[
        list[Annotated[str, Field(pattern=r"^[0-9a-fA-F]{24}$")]],
        Field(min_length=1, max_length=100, description="Ids of threads, from hf_notifications."),
    ]
    read: Annotated[Flag, Field(description="False marks as unread again.")] = True


class MarkedNotifications(Schema):
    count: Annotated[int, Field(description="How many were not marked so before.")]


async def _mark_notifications(call: ToolCall, request: MarkNotifications) -> MarkedNotifications:
    caller = await identify_inbox_owner(call.get_caller())
    ids = [each.lower() for each in request.ids]
    async with call.database.read() as conn:
        selection = await inbox.select_for_change(
            conn,
            caller.user_id,
            ChangeFilters(),
            thread_ids=ids,
            except_owners=caller.blocked_owners,
        )
        selection = await inbox.limit_to_now(conn, caller.user_id, selection)
    async with call.database.transaction() as conn:
        count = await inbox.mark(conn, caller.user_id, selection, read=request.read)
    return MarkedNotifications(count=count)


class ReadDiscussions(Schema):
    repo: RepoUri
    num: Annotated[Number | None, Field(description="One of them; without it they are listed.")] = (
        None
    )
    status: Literal["all", "open", "closed"] = "open"
    search: Annotated[str, Field(max_length=200, description="A part of the title.")] = ""
    page: Annotated[int, Field(ge=0, le=_MAX_NUMBER)] = 0
    diff: Annotated[Flag, Field(description="With what a pull request changes.")] = False


class ThreadSummary(Schema):
    num: int
    title: str
    status: str
    is_pull_request: bool
    author: str | None
    comments: int
    updated: str


class ThreadEvent(Schema):
    type: str
    author: str | None
    created: str
    id: Annotated[str | None, Field(description="Of a comment, to answer it.")] = None
    text: Annotated[str | None, Field(description="What a comment says, or a change did.")] = None


class DiscussionsRead(Schema):
    discussions: list[ThreadSummary]
    count: int
    events: Annotated[list[ThreadEvent], Field(description="Of one discussion, oldest first.")]
    is_cut: Annotated[bool, Field(description="Only the last events are shown.")] = False
    diff: str | None = None
    diff_is_cut: bool = False


async def _read_discussions(call: ToolCall, request: ReadDiscussions) -> DiscussionsRead:
    address = _address(request.repo)
    if request.num is not None:
        return await _read_discussion(call, address, request.num, with_diff=request.diff)
    filters = DiscussionFilters(
        is_pull_request=None,
        statuses=_STATUSES[request.status],
        author=None,
        search=request.search or None,
        sort=DiscussionSort.created,
    )
    async with call.database.read() as conn:
        found = await discussions.get_page(conn, call.caller, address, filters, number=request.page)
    page = DiscussionPage.of(found, base_url=call.base_url)
    listed = [_summary(each) for each in page.discussions]
    return DiscussionsRead(discussions=listed, count=page.count, events=[])


async def _read_discussion(
    call: ToolCall, address: RepoAddress, num: int, *, with_diff: bool
) -> DiscussionsRead:
    found = await view.get(call.database, call.caller, address, num, with_diff=with_diff)
    details = DiscussionDetails.of_details(found, base_url=call.base_url)
    values = details.model_dump(mode="json", by_alias=True)
    diff, diff_is_cut = cut(values.get("diff") or "", _DIFF_CHARACTERS)
    events = [_event(each) for each in values["events"]]
    return DiscussionsRead(
        discussions=[_summary(details)],
        count=1,
        events=events[-_MOST_EVENTS:],
        is_cut=len(events) > _MOST_EVENTS,
        diff=diff or None,
        diff_is_cut=diff_is_cut or bool(values.get("diffTruncated")),
    )


def _address(uri: str) -> RepoAddress:
    parsed = FileUri.parse(uri)
    if parsed.path or parsed.revision is not None:
        raise InvalidRequest("repo must name a repository, without a revision and a path.")
    return parsed.address


def _summary(discussion: Discussion) -> ThreadSummary:
    values = discussion.model_dump(mode="json", by_alias=True)
    return ThreadSummary(
        num=values["num"],
        title=values["title"],
        status=values["status"],
        is_pull_request=values["isPullRequest"],
        author=(values.get("author") or {}).get("name"),
        comments=values["numComments"],
        updated=wire(discussion.updatedAt),
    )


def _event(event: dict[str, Any]) -> ThreadEvent:
    is_comment = event["type"] == "comment"
    data = event["data"]
    text = data["latest"]["raw"] if is_comment else _change_text(data)
    return ThreadEvent(
        type=event["type"],
        author=(event.get("author") or {}).get("name"),
        created=event["createdAt"],
        id=event["id"] if is_comment else None,
        text=cut(text, _COMMENT_CHARACTERS)[0],
    )


def _change_text(data: dict[str, Any]) -> str:
    return ", ".join(f"{name}: {value}" for name, value in data.items())


class WriteDiscussion(Schema):
    operation: Literal["open", "comment"]
    repo: RepoUri
    title: Annotated[str, Field(max_length=200, description="Of a new discussion.")] = ""
    text: Annotated[str, Field(max_length=MAX_COMMENT, description="In Markdown.")]
    num: Annotated[Number | None, Field(description="The discussion to comment on.")] = None
    reply_to: Annotated[ObjectId | None, Field(description="The comment that it answers.")] = None


class WrittenDiscussion(Schema):
    num: int
    url: str
    comment_id: str | None = None


async def _write_discussion(call: ToolCall, request: WriteDiscussion) -> WrittenDiscussion:
    caller, address = call.get_caller(), _address(request.repo)
    if request.operation == "open":
        body = read(CreateDiscussion, {"title": request.title, "description": request.text})
        async with call.database.transaction() as conn:
            opened = await discussions.open_discussion(
                conn,
                caller,
                address,
                NewDiscussion(title=body.title, description=body.description),
            )
        return WrittenDiscussion(num=opened.number, url=opened.url(call.base_url))
    if request.num is None:
        raise InvalidRequest("num is needed to comment: the number of the discussion.")
    reply = read(Reply, {"comment": request.text})
    async with call.database.transaction() as conn:
        discussion = await discussions.get_for_change(conn, caller, address, request.num)
        comment = await discussions.comment(
            conn, caller, discussion, reply.comment, parent_id=request.reply_to
        )
    return WrittenDiscussion(
        num=request.num, url=discussion.url(call.base_url), comment_id=comment.id
    )


THREAD_TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        info=DISCUSSIONS, arguments=ReadDiscussions, result=DiscussionsRead, run=_read_discussions
    ),
    Tool(
        info=WRITE_DISCUSSIONS,
        arguments=WriteDiscussion,
        result=WrittenDiscussion,
        run=_write_discussion,
    ),
    Tool(
        info=NOTIFICATIONS,
        arguments=ListNotifications,
        result=NotificationItems,
        run=_list_notifications,
    ),
    Tool(
        info=MARK_NOTIFICATIONS,
        arguments=MarkNotifications,
        result=MarkedNotifications,
        run=_mark_notifications,
    ),
)
