"""HTTP for papers."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Query, Response
from pydantic import MISSING

from hublet.community.authors.records import Account
from hublet.community.authors.store import find_accounts
from hublet.community.papers import records, service, store
from hublet.community.papers.auth import PAPER, AskedDaily, AskedPaper
from hublet.community.papers.errors import InvalidPaper
from hublet.community.papers.markdown import to_markdown
from hublet.community.papers.schemas import IndexPaper, Paper, PaperItem, Upvotes
from hublet.core.database import Reader
from hublet.core.http import Conn, ReadConn, Router
from hublet.core.http.paging import LINKED, AskedPage
from hublet.core.schema import Done
from hublet.tokens.auth import AccountOwner, Administrator, DiscussionWriter

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
    paper = await service.submit(conn, caller, _told(body))
    return (await _shown(conn, [paper]))[0]


def _told(body: IndexPaper) -> records.NewPaper:
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


@router.get("/api/papers", responses=LINKED)
async def list_papers(conn: ReadConn, page: AskedPage) -> list[Paper]:
    """List papers, the newest here first, page by page."""
    found = await store.list_newest(conn, after=page.after, limit=page.reach)
    return await _shown(conn, page.cut(found, position=lambda paper: paper.thread.id))


@router.get("/api/papers/search")
async def search_papers(
    conn: ReadConn,
    q: Annotated[str, Query(max_length=200, description="Words that all have to occur.")] = "",
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> list[PaperItem]:
    """Find papers by words of their title, summary and authors, or by their id."""
    return await _items(conn, await store.search(conn, q.split(), limit=limit))


@router.get("/api/daily_papers")
async def list_daily_papers(conn: ReadConn, asked: AskedDaily) -> list[PaperItem]:
    """List the papers that were submitted on a day, in a week or in a month, or the latest."""
    return await _items(conn, await store.list_daily(conn, asked))


@router.get(PAPER)
async def get_paper(conn: ReadConn, paper_id: str) -> Paper:
    """Get a paper; its comments have an address of their own."""
    return (await _shown(conn, [await service.get(conn, paper_id)]))[0]


@router.delete(PAPER)
async def delete_paper(conn: Conn, caller: Administrator, paper: AskedPaper) -> Done:
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
    text = to_markdown(await service.get(conn, paper_id))
    return Response(text, media_type="text/markdown")


@router.post(f"{PAPER}/upvote")
async def upvote_paper(conn: Conn, caller: DiscussionWriter, paper: AskedPaper) -> Upvotes:
    """Vote for a paper; doing it again changes nothing."""
    voted = await service.vote(conn, caller, paper, voted=True)
    return Upvotes(upvotes=voted.upvotes, isUpvotedByUser=True)


@router.delete(f"{PAPER}/upvote")
async def take_back_paper_upvote(
    conn: Conn, caller: DiscussionWriter, paper: AskedPaper
) -> Upvotes:
    """Take back one's vote for a paper; doing it again changes nothing."""
    voted = await service.vote(conn, caller, paper, voted=False)
    return Upvotes(upvotes=voted.upvotes, isUpvotedByUser=False)


async def _shown(conn: Reader, papers: Sequence[records.Paper]) -> list[Paper]:
    accounts = await _submitters(conn, papers)
    return [Paper.of(paper, accounts, base_url=conn.hub.settings.base_url) for paper in papers]


async def _items(conn: Reader, papers: Sequence[records.Paper]) -> list[PaperItem]:
    accounts = await _submitters(conn, papers)
    base_url = conn.hub.settings.base_url
    return [PaperItem.of(paper, accounts, base_url=base_url) for paper in papers]


async def _submitters(conn: Reader, papers: Sequence[records.Paper]) -> dict[str, Account]:
    return await find_accounts(conn, [paper.submitter_id for paper in papers])
