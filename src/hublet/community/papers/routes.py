"""HTTP routes for papers, their votes and comments."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Depends, Query, Response
from pydantic import MISSING

from hublet.accounts.organizations.store import find_accounts
from hublet.community.comment_routes import CommentedKind, create_comments_router
from hublet.community.errors import InvalidPaper
from hublet.community.papers import service, store
from hublet.community.papers.records import DailyPapersQuery, NewPaper, PaperRecord, PaperSort
from hublet.community.papers.schemas import (
    ClaimedPaper,
    ClaimPaper,
    IndexPaper,
    Paper,
    PaperItem,
    PaperLinksUpdated,
    UpdatePaperLinks,
    Upvotes,
)
from hublet.community.papers.service import span_of
from hublet.community.threads.records import Accounts, Thread
from hublet.core.database import Reader
from hublet.core.http import Conn, PublicReadConn, ReadConn, Router
from hublet.core.http.paging import PAGED_RESPONSES, PageQuery
from hublet.core.schema import Done
from hublet.tokens.auth import AccountOwner, Administrator, DiscussionWriter
from hublet.tokens.records import Caller

_PAPER_PATH = "/api/papers/{paper_id}"


async def _paper_to_read(conn: ReadConn, paper_id: str) -> PaperRecord:
    return await service.get(conn, paper_id)


async def _paper_to_change(conn: Conn, paper_id: str) -> PaperRecord:
    return await service.get(conn, paper_id)


_PaperToRead = Annotated[PaperRecord, Depends(_paper_to_read)]
_PaperToChange = Annotated[PaperRecord, Depends(_paper_to_change)]


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


def _new_paper(body: IndexPaper) -> NewPaper:
    ids = [given for given in (body.arxivId, body.id) if given is not MISSING]
    if len(ids) != 1:
        raise InvalidPaper("A paper needs exactly one of arxivId and id.")
    return NewPaper(
        id=ids[0],
        title=body.title,
        summary=body.summary,
        authors=tuple(body.authors),
        published_at=None if body.publishedAt is MISSING else body.publishedAt,
        submitted_by=None if body.submittedBy is MISSING else body.submittedBy,
    )


@router.get("/api/papers", responses=PAGED_RESPONSES)
async def list_papers(conn: PublicReadConn, page: PageQuery) -> list[Paper]:
    """List papers, the newest here first, page by page."""
    papers = await store.list_newest(conn, after=page.after, limit=page.reach)
    return await _render(conn, page.cut(papers, position=lambda paper: paper.thread.id))


@router.get("/api/papers/search")
async def search_papers(
    conn: ReadConn,
    q: Annotated[str, Query(max_length=200, description="Words that all have to occur.")] = "",
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> list[PaperItem]:
    """Find papers by words of their title, summary and authors, or by their id."""
    return await _render_items(conn, await store.search(conn, q.split(), limit=limit))


@router.get("/api/daily_papers")
async def list_daily_papers(conn: PublicReadConn, query: _DailyQuery) -> list[PaperItem]:
    """List the papers that were submitted on a day, in a week or in a month, or the latest."""
    return await _render_items(conn, await store.list_daily(conn, query))


@router.get(_PAPER_PATH)
async def get_paper(conn: ReadConn, paper: _PaperToRead) -> Paper:
    """Get a paper; its comments have an address of their own."""
    return (await _render(conn, [paper]))[0]


@router.post(f"{_PAPER_PATH}/links")
async def update_paper_links(
    conn: Conn, caller: AccountOwner, paper: _PaperToChange, body: UpdatePaperLinks
) -> PaperLinksUpdated:
    """Change the project page, the code and the organization of a paper.

    Its submitter, its authors and hub administrators can; what is left out stays.
    """
    changed: dict[str, str | None] = {}
    if body.projectPage is not MISSING:
        changed["project_page"] = body.projectPage
    if body.githubRepo is not MISSING:
        changed["github_repo"] = body.githubRepo
    if body.organizationId is not MISSING:
        changed["organization_id"] = body.organizationId
    await service.set_links(conn, caller, paper, changed=changed)
    return PaperLinksUpdated()


@router.post(
    "/api/settings/papers/claim",
    responses={
        404: {"description": "There is no such paper."},
        409: {"description": "Another account is this author."},
    },
)
async def claim_paper(conn: Conn, caller: AccountOwner, body: ClaimPaper) -> ClaimedPaper:
    """Say that the caller is one of the authors of a paper; it takes effect at once.

    Hub administrators say so for others, and set a wrong claim right.
    """
    paper = await service.get(conn, body.paperId)
    user_id = None if body.targetUserId is MISSING else body.targetUserId
    await service.claim(conn, caller, paper, body.claimAuthorId, user_id=user_id)
    return ClaimedPaper(ok=True, claimedPaperId=paper.id)


@router.delete(_PAPER_PATH)
async def delete_paper(conn: Conn, caller: Administrator, paper: _PaperToChange) -> Done:
    """Delete a paper with its comments; only hub administrators can."""
    await service.delete(conn, caller, paper)
    return Done()


@router.get(
    "/papers/{paper_id}.md",
    response_class=Response,
    responses={200: {"content": {"text/markdown": {"schema": {"type": "string"}}}}},
)
async def read_paper(paper: _PaperToRead) -> Response:
    """Read a paper as Markdown: its title, authors and abstract."""
    return Response(service.render_markdown(paper), media_type="text/markdown")


@router.post(f"{_PAPER_PATH}/upvote")
async def upvote_paper(conn: Conn, caller: DiscussionWriter, paper: _PaperToChange) -> Upvotes:
    """Vote for a paper; doing it again changes nothing."""
    voted = await service.vote(conn, caller, paper, voted=True)
    return Upvotes(upvotes=voted.upvotes, isUpvotedByUser=True)


@router.delete(f"{_PAPER_PATH}/upvote")
async def take_back_paper_upvote(
    conn: Conn, caller: DiscussionWriter, paper: _PaperToChange
) -> Upvotes:
    """Take back one's vote for a paper; doing it again changes nothing."""
    voted = await service.vote(conn, caller, paper, voted=False)
    return Upvotes(upvotes=voted.upvotes, isUpvotedByUser=False)


async def _render(conn: Reader, papers: Sequence[PaperRecord]) -> list[Paper]:
    accounts = await _accounts_of(conn, papers)
    return [Paper.of(paper, accounts, base_url=conn.hub.settings.base_url) for paper in papers]


async def _render_items(conn: Reader, papers: Sequence[PaperRecord]) -> list[PaperItem]:
    accounts = await _accounts_of(conn, papers)
    base_url = conn.hub.settings.base_url
    return [PaperItem.of(paper, accounts, base_url=base_url) for paper in papers]


async def _accounts_of(conn: Reader, papers: Sequence[PaperRecord]) -> Accounts:
    """Return who submitted and wrote papers, and the organizations behind them."""
    return await find_accounts(
        conn,
        [
            account_id
            for paper in papers
            for account_id in (
                paper.submitter_id,
                paper.links.organization_id,
                *paper.claims.values(),
            )
        ],
    )


async def _thread_to_read(paper: _PaperToRead) -> Thread:
    return paper.thread


async def _thread_to_change(paper: _PaperToChange) -> Thread:
    return paper.thread


async def _owns(_conn: Reader, _caller: Caller, _thread: Thread) -> bool:
    # A paper was published elsewhere: no account owns its thread.
    return False


comments_router = create_comments_router(
    CommentedKind(
        name="paper",
        phrase="a paper",
        path=_PAPER_PATH,
        tag="papers",
        thread_to_read=_thread_to_read,
        thread_to_change=_thread_to_change,
        owns=_owns,
        hideable="any for hub administrators",
    )
)
