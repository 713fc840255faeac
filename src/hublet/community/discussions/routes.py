"""HTTP routes for discussions and pull requests."""

from typing import Annotated, Any, Literal

from fastapi import Depends, Path, Query
from pydantic import MISSING

from hublet.accounts.organizations.store import find_accounts
from hublet.community import emoji
from hublet.community.comment_schemas import (
    CommentEvent,
    EditComment,
    NewComment,
    UpdatedComment,
    author_ids,
)
from hublet.community.discussions import merge, pull_requests, service, view
from hublet.community.discussions.records import (
    CLOSED_STATUSES,
    OPEN_STATUSES,
    DiscussionFilters,
    DiscussionRecord,
    DiscussionSort,
    NewDiscussion,
)
from hublet.community.discussions.schemas import (
    ChangeStatus,
    ChangeTitle,
    CreatedDiscussion,
    CreateDiscussion,
    DiscussionDetails,
    DiscussionPage,
    FreedStorage,
    Ignore,
    MergedPullRequest,
    MergePullRequest,
    NewStatus,
    NewTitle,
    Pin,
    Reply,
    StatusChange,
    TitleChange,
)
from hublet.community.emoji import ThreadInContext
from hublet.community.emoji_routes import ReactionThreads, add_emoji_routes
from hublet.community.threads import store as thread_store
from hublet.community.threads.records import Comment, Thread, ThreadStatus
from hublet.core.database import Reader
from hublet.core.http import Conn, Db, ReadConn, Router
from hublet.core.schema import Done
from hublet.repos import service as repos
from hublet.repos.auth import ANY_REPO, MOVED, AnyRepo
from hublet.repos.lfs.management import estimate_freed_bytes
from hublet.repos.records import Right
from hublet.tokens.auth import AnyCaller, MaybeCaller

_PREFIX = f"{ANY_REPO}/discussions"

_MAX_NUMBER = 2**31 - 1
_Number = Annotated[int, Path(ge=1, le=_MAX_NUMBER, description="The number of the discussion.")]

# For the `responses` of a route that not every state of a discussion allows.
_CONFLICT: dict[int | str, dict[str, Any]] = {
    409: {"description": "The discussion is not in a state in which this can be done."}
}


router = Router(prefix=_PREFIX, tags=["discussions"], responses=MOVED)

_SearchText = Annotated[str | None, Query(min_length=1, max_length=200)]

_KINDS = {"all": None, "discussion": False, "pull_request": True}
_STATUSES = {
    "all": OPEN_STATUSES | CLOSED_STATUSES,
    "open": OPEN_STATUSES,
    "closed": CLOSED_STATUSES,
}


async def _filters(
    what: Annotated[Literal["all", "discussion", "pull_request"], Query(alias="type")] = "all",
    status: Annotated[
        Literal["all", "open", "closed"],
        Query(description="Drafts count as open, merged ones as closed."),
    ] = "all",
    author: _SearchText = None,
    search: Annotated[_SearchText, Query(description="A part of the title.")] = None,
    sort: DiscussionSort = DiscussionSort.created,
) -> DiscussionFilters:
    return DiscussionFilters(
        is_pull_request=_KINDS[what],
        statuses=_STATUSES[status],
        author=author,
        search=search,
        sort=sort,
    )


@router.get("")
async def list_discussions(
    conn: ReadConn,
    caller: MaybeCaller,
    repo: AnyRepo,
    filters: Annotated[DiscussionFilters, Depends(_filters)],
    p: Annotated[int, Query(ge=0, le=_MAX_NUMBER, description="Which page; the first is 0.")] = 0,
) -> DiscussionPage:
    """List a repository's discussions and pull requests, 50 to a page, pinned ones first."""
    page = await service.get_page(conn, caller, repo, filters, number=p)
    return DiscussionPage.of(page, base_url=conn.hub.settings.base_url)


@router.post("")
async def create_discussion(
    conn: Conn, caller: AnyCaller, repo: AnyRepo, body: CreateDiscussion
) -> CreatedDiscussion:
    """Open a discussion, or a pull request that starts as a draft without changes."""
    new = NewDiscussion(title=body.title, description=body.description)
    open_ = pull_requests.open_draft if body.pullRequest else service.open_discussion
    discussion = await open_(conn, caller, repo, new)
    url = discussion.url(conn.hub.settings.base_url)
    return CreatedDiscussion(num=discussion.number, url=url, pullRequest=body.pullRequest)


@router.get("/{num}")
async def get_discussion(
    database: Db,
    caller: MaybeCaller,
    repo: AnyRepo,
    num: _Number,
    diff: Annotated[bool, Query(description="Show what a pull request changes.")] = False,  # noqa: FBT002 - as FastAPI reads it
) -> DiscussionDetails:
    """Show a discussion with all that happened in it."""
    details = await view.get(database, caller, repo, num, with_diff=diff)
    return DiscussionDetails.of_details(details, base_url=database.hub.settings.base_url)


@router.get("/{num}/storage", responses=_CONFLICT)
async def estimate_pull_request_storage(
    database: Db, caller: AnyCaller, repo: AnyRepo, num: _Number
) -> FreedStorage:
    """Estimate how many bytes of large files would be free without the commits of a pull request."""
    async with database.read() as conn:
        discussion = await service.get(conn, caller, repo, num)
        pull_requests.check_pull_request(discussion)
        await repos.check(conn, caller, discussion.repo, Right.read)
    size = await estimate_freed_bytes(database, discussion.repo, discussion.ref)
    return FreedStorage(estimatedStorage=size or 0, refDeleted=size is None)


@router.delete("/{num}")
async def delete_discussion(conn: Conn, caller: AnyCaller, repo: AnyRepo, num: _Number) -> Done:
    """Delete a discussion with its comments; a pull request's commits go with it."""
    discussion = await service.get_for_change(conn, caller, repo, num, right=Right.write)
    await pull_requests.delete(conn, caller, discussion)
    return Done()


@router.post("/{num}/comment")
async def comment_discussion(
    conn: Conn, caller: AnyCaller, repo: AnyRepo, num: _Number, body: Reply
) -> NewComment:
    """Comment on a discussion, open or closed, or answer a comment."""
    discussion = await service.get_for_change(conn, caller, repo, num)
    parent_id = None if body.replyTo is MISSING else body.replyTo
    comment = await service.comment(conn, caller, discussion, body.comment, parent_id=parent_id)
    # Nobody has edited it or reacted to it: what there is to ask is asked while others wait.
    accounts = await find_accounts(conn, author_ids([comment]))
    base_url = conn.hub.settings.base_url
    event = CommentEvent.of(comment, accounts, base_url=base_url, versions=())
    return NewComment(newMessage=event)


@router.post("/{num}/comment/{comment_id}/edit", responses=_CONFLICT)
async def edit_discussion_comment(
    conn: Conn, caller: AnyCaller, repo: AnyRepo, num: _Number, comment_id: str, body: EditComment
) -> UpdatedComment:
    """Replace the text of one's own comment; what it said before stays in its history."""
    discussion = await service.get_for_change(conn, caller, repo, num)
    comment = await service.edit_comment(conn, caller, discussion, comment_id, body.content)
    return UpdatedComment(updatedComment=await _render_comment(conn, comment))


@router.post("/{num}/comment/{comment_id}/hide")
async def hide_discussion_comment(
    conn: Conn, caller: AnyCaller, repo: AnyRepo, num: _Number, comment_id: str
) -> UpdatedComment:
    """Hide a comment for good: one's own, or any in a repository that one may write to."""
    discussion = await service.get_for_change(conn, caller, repo, num)
    comment = await service.hide_comment(conn, caller, discussion, comment_id)
    return UpdatedComment(updatedComment=await _render_comment(conn, comment))


async def _render_comment(conn: Reader, comment: Comment) -> CommentEvent:
    accounts = await find_accounts(conn, author_ids([comment]))
    versions = (await thread_store.list_revisions(conn, comment.thread_id)).get(comment.id, ())
    base_url = conn.hub.settings.base_url
    counts = (await emoji.counts_of(conn, [comment])).get(comment.id, ())
    return CommentEvent.of(comment, accounts, base_url=base_url, versions=versions, emoji=counts)


@router.post("/{num}/title", responses=_CONFLICT)
async def rename_discussion(
    conn: Conn, caller: AnyCaller, repo: AnyRepo, num: _Number, body: ChangeTitle
) -> NewTitle:
    """Give a discussion another title: its author and those who may write to the repository."""
    discussion = await service.get_for_change(conn, caller, repo, num)
    change = await service.rename(conn, caller, discussion, body.title)
    accounts = await find_accounts(conn, [change.author_id])
    base_url = conn.hub.settings.base_url
    return NewTitle(newTitle=TitleChange.of(change, accounts, base_url=base_url))


@router.post("/{num}/status", responses=_CONFLICT)
async def change_discussion_status(
    conn: Conn, caller: AnyCaller, repo: AnyRepo, num: _Number, body: ChangeStatus
) -> NewStatus:
    """Close or open a discussion; opening a draft pull request makes it ready to be merged."""
    discussion = await service.get_for_change(conn, caller, repo, num)
    comment = None if body.comment is MISSING else body.comment
    status = ThreadStatus(body.status)
    change = await service.set_status(conn, caller, discussion, status, message=comment)
    accounts = await find_accounts(conn, [change.author_id])
    base_url = conn.hub.settings.base_url
    return NewStatus(newStatus=StatusChange.of(change, accounts, base_url=base_url))


@router.post("/{num}/pin")
async def pin_discussion(
    conn: Conn, caller: AnyCaller, repo: AnyRepo, num: _Number, body: Pin
) -> Pin:
    """Keep a discussion on top of the list, or let it go again."""
    discussion = await service.get_for_change(conn, caller, repo, num, right=Right.write)
    await service.set_pinned(conn, caller, discussion, pinned=body.pinned)
    return body


@router.post("/{num}/ignore")
async def ignore_discussion(
    conn: Conn, caller: AnyCaller, repo: AnyRepo, num: _Number, body: Ignore | None = None
) -> Ignore:
    """Hear nothing more of a discussion, or hear of it again."""
    request = body or Ignore()
    discussion = await service.get(conn, caller, repo, num, right=Right.discuss)
    await thread_store.set_muted(
        conn, discussion.thread.id, user_id=caller.user_id, muted=request.ignore
    )
    return request


async def _thread_to_read(
    conn: ReadConn, caller: MaybeCaller, repo: AnyRepo, num: _Number
) -> Thread:
    return (await service.get(conn, caller, repo, num)).thread


async def _thread_to_react_in(
    conn: Conn, caller: AnyCaller, repo: AnyRepo, num: _Number
) -> ThreadInContext:
    discussion = await service.get_for_change(conn, caller, repo, num)
    service.check_enabled(discussion.repo)
    return _in_context(discussion)


async def _thread_to_take_back_in(
    conn: Conn, caller: AnyCaller, repo: AnyRepo, num: _Number
) -> ThreadInContext:
    return _in_context(await service.get_for_change(conn, caller, repo, num))


def _in_context(discussion: DiscussionRecord) -> ThreadInContext:
    return ThreadInContext(thread=discussion.thread, context=service.context_of(discussion.repo))


emoji_router = Router(prefix=f"{_PREFIX}/{{num}}", tags=["discussions"], responses=MOVED)
add_emoji_routes(
    emoji_router,
    ReactionThreads(
        name="discussion",
        phrase="in a discussion",
        to_read=_thread_to_read,
        to_add=_thread_to_react_in,
        to_remove=_thread_to_take_back_in,
    ),
)


pull_requests_router = Router(prefix=_PREFIX, tags=["discussions"], responses=MOVED)


@pull_requests_router.post("/{num}/merge", responses=_CONFLICT)
async def merge_pull_request(
    database: Db,
    caller: AnyCaller,
    repo: AnyRepo,
    num: _Number,
    body: MergePullRequest | None = None,
) -> MergedPullRequest:
    """Merge a pull request into its branch; files that conflict are named in a 409."""
    comment = None if body is None or body.comment is MISSING else body.comment
    oid = await merge.merge_into_base(database, caller, repo, num, comment=comment)
    return MergedPullRequest(mergeCommitId=oid)


@pull_requests_router.delete("/{num}/ref", responses=_CONFLICT)
async def delete_pull_request_ref(
    conn: Conn, caller: AnyCaller, repo: AnyRepo, num: _Number
) -> Done:
    """Delete the git ref of a pull request that is closed or merged; its page stays."""
    discussion = await service.get_for_change(conn, caller, repo, num, right=Right.write)
    await pull_requests.delete_ref(conn, caller, discussion)
    return Done()
