"""HTTP routes for papers, their votes and comments."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Depends, Query, Response
from pydantic import MISSING

from hublet.community import comments
from hublet.community.comment_schemas import (
    CommentEvent,
    EditComment,
    Muted,
    NewComment,
    UpdatedComment,
    WriteComment,
)
from hublet.community.errors import InvalidPaper
from hublet.community.papers import records, service, store
from hublet.community.papers.periods import span_of
from hublet.community.papers.records import DailyPapersQuery, PaperSort
from hublet.community.papers.records import PaperRecord as RecordsPaper
from hublet.community.papers.schemas import IndexPaper, Paper, PaperItem, Upvotes
from hublet.community.papers.service import render_markdown
from hublet.community.threads import store as threads_store
from hublet.community.threads.records import Account
from hublet.community.threads.store import find_accounts
from hublet.core.database import Reader
from hublet.core.http import Conn, ReadConn, Router
from hublet.core.http.paging import PAGED_RESPONSES, PageQuery
from hublet.core.schema import Done
from hublet.tokens.auth import AccountOwner, Administrator, DiscussionWriter

# The address of a paper.
_PAPER_PATH = "/api/papers/{paper_id}"


async def _paper_in_path(conn: Conn, paper_id: str) -> RecordsPaper:
    return await service.get(conn, paper_id)


# For routes that change something: the paper is read in their own transaction.
_PaperInPath = Annotated[RecordsPaper, Depends(_paper_in_path)]


async def _daily_query(  # noqa: PLR0913 - these are the parameters of the public client
    *,
    date: Annotated[str | None, Query(description="A day, as in 2026-11-15.")] = None,
    week: Annotated[str | None, Query(description="A week, as in 2026-W46.")] = None,
    month: Annotated[str | None, Query(description="A month, as in 2026-11.")] = None,
    submitter: Annotated[str, Query(description="Only what this user submitted.")] = "",
    sort: PaperSort = PaperSort.newest,
    p: Annotated[int, Query(ge=0, le=10_000, description="The page, from 0.")] = 0,
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
) -> DailyPapersQuery:
    return DailyPapersQuery(
        span=span_of(day=date, week=week, month=month),
        submitter=submitter,
        sort=sort,
        page=p,
        limit=limit,
    )


_DailyQuery = Annotated[DailyPapersQuery, Depends(_daily_query)]


router = Router(tags=["papers"])


@router.post(
    "/api/papers/index",
    responses={
        404: {"description": "There is no user of the name in `submittedBy`."},
        409: {"description": "The paper is here already."},
    },
)
async def index_paper(conn: Conn, caller: AccountOwner, body: IndexPaper) -> Paper:
    """Add a paper, with what is known of it: this hub asks no other service about papers."""
    paper = await service.submit(conn, caller, _new_paper(body))
    return (await _render(conn, [paper]))[0]


def _new_paper(body: IndexPaper) -> records.NewPaper:
    ids = [given for given in (body.arxivId, body.id) if given is not MISSING]
    if len(ids) != 1:
        raise InvalidPaper("A paper needs exactly one of arxivId and id.")
    return records.NewPaper(
        id=ids[0],
        title=body.title,
        summary=body.summary,
        authors=tuple(body.authors),
        published_at=None if body.publishedAt is MISSING else body.publishedAt,
        submitted_by=None if body.submittedBy is MISSING else body.submittedBy,
    )


@router.get("/api/papers", responses=PAGED_RESPONSES)
async def list_papers(conn: ReadConn, page: PageQuery) -> list[Paper]:
    """List papers, the newest here first, page by page."""
    found = await store.list_newest(conn, after=page.after, limit=page.reach)
    return await _render(conn, page.cut(found, position=lambda paper: paper.thread.id))


@router.get("/api/papers/search")
async def search_papers(
    conn: ReadConn,
    q: Annotated[str, Query(max_length=200, description="Words that all have to occur.")] = "",
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> list[PaperItem]:
    """Find papers by words of their title, summary and authors, or by their id."""
    return await _render_items(conn, await store.search(conn, q.split(), limit=limit))


@router.get("/api/daily_papers")
async def list_daily_papers(conn: ReadConn, asked: _DailyQuery) -> list[PaperItem]:
    """List the papers that were submitted on a day, in a week or in a month, or the latest."""
    return await _render_items(conn, await store.list_daily(conn, asked))


@router.get(_PAPER_PATH)
async def get_paper(conn: ReadConn, paper_id: str) -> Paper:
    """Get a paper; its comments have an address of their own."""
    return (await _render(conn, [await service.get(conn, paper_id)]))[0]


@router.delete(_PAPER_PATH)
async def delete_paper(conn: Conn, caller: Administrator, paper: _PaperInPath) -> Done:
    """Delete a paper with its comments; only hub administrators can."""
    await service.delete(conn, caller, paper)
    return Done()


@router.get(
    "/papers/{paper_id}.md",
    response_class=Response,
    responses={200: {"content": {"text/markdown": {"schema": {"type": "string"}}}}},
)
async def read_paper(conn: ReadConn, paper_id: str) -> Response:
    """Read a paper as Markdown: its title, authors and abstract."""
    text = render_markdown(await service.get(conn, paper_id))
    return Response(text, media_type="text/markdown")


@router.post(f"{_PAPER_PATH}/upvote")
async def upvote_paper(conn: Conn, caller: DiscussionWriter, paper: _PaperInPath) -> Upvotes:
    """Vote for a paper; doing it again changes nothing."""
    voted = await service.vote(conn, caller, paper, voted=True)
    return Upvotes(upvotes=voted.upvotes, isUpvotedByUser=True)


@router.delete(f"{_PAPER_PATH}/upvote")
async def take_back_paper_upvote(
    conn: Conn, caller: DiscussionWriter, paper: _PaperInPath
) -> Upvotes:
    """Take back one's vote for a paper; doing it again changes nothing."""
    voted = await service.vote(conn, caller, paper, voted=False)
    return Upvotes(upvotes=voted.upvotes, isUpvotedByUser=False)


async def _render(conn: Reader, papers: Sequence[records.PaperRecord]) -> list[Paper]:
    accounts = await _submitters(conn, papers)
    return [Paper.of(paper, accounts, base_url=conn.hub.settings.base_url) for paper in papers]


async def _render_items(conn: Reader, papers: Sequence[records.PaperRecord]) -> list[PaperItem]:
    accounts = await _submitters(conn, papers)
    base_url = conn.hub.settings.base_url
    return [PaperItem.of(paper, accounts, base_url=base_url) for paper in papers]


async def _submitters(conn: Reader, papers: Sequence[records.PaperRecord]) -> dict[str, Account]:
    return await find_accounts(conn, [paper.submitter_id for paper in papers])


comments_router = Router(prefix=_PAPER_PATH, tags=["papers"])


@comments_router.get("/comments", responses=PAGED_RESPONSES)
async def list_paper_comments(conn: ReadConn, paper_id: str, page: PageQuery) -> list[CommentEvent]:
    """List the comments under a paper, oldest first, page by page."""
    paper = await service.get(conn, paper_id)
    found = await threads_store.list_comments(
        conn, paper.thread.id, after=page.after, limit=page.reach
    )
    return await comments.render(conn, page.cut(found, position=lambda comment: comment.id))


@comments_router.post("/comment")
async def comment_on_paper(
    conn: Conn, caller: DiscussionWriter, paper: _PaperInPath, body: WriteComment
) -> NewComment:
    """Comment on a paper."""
    written = await comments.comment(conn, caller, paper.thread, body.comment)
    return await comments.render_new(conn, written)


@comments_router.post(
    "/comment/{comment}/reply", responses={409: {"description": "The comment is hidden."}}
)
async def reply_to_paper_comment(
    conn: Conn, caller: DiscussionWriter, paper: _PaperInPath, comment: str, body: WriteComment
) -> NewComment:
    """Answer a comment under a paper."""
    written = await comments.reply(conn, caller, paper.thread, comment, body.comment)
    return await comments.render_new(conn, written)


@comments_router.post(
    "/comment/{comment}/edit", responses={409: {"description": "The comment is hidden."}}
)
async def edit_paper_comment(
    conn: Conn, caller: DiscussionWriter, paper: _PaperInPath, comment: str, body: EditComment
) -> UpdatedComment:
    """Replace the text of one's own comment under a paper."""
    edited = await comments.edit(conn, caller, paper.thread, comment, body.content)
    return await comments.render_updated(conn, edited)


@comments_router.post("/comment/{comment}/hide")
async def hide_paper_comment(
    conn: Conn, caller: DiscussionWriter, paper: _PaperInPath, comment: str
) -> UpdatedComment:
    """Hide a comment for good: one's own, or any for hub administrators."""
    hidden = await comments.hide(conn, caller, paper.thread, comment, owns_thread=False)
    return await comments.render_updated(conn, hidden)


@comments_router.post("/mute")
async def mute_paper(conn: Conn, caller: DiscussionWriter, paper: _PaperInPath) -> Muted:
    """Hear nothing more of a paper; doing it again changes nothing."""
    await comments.mute(conn, caller, paper.thread, muted=True)
    return Muted(muted=True)


@comments_router.delete("/mute")
async def unmute_paper(conn: Conn, caller: DiscussionWriter, paper: _PaperInPath) -> Muted:
    """Hear of a paper again; doing it again changes nothing."""
    await comments.mute(conn, caller, paper.thread, muted=False)
    return Muted(muted=False)
