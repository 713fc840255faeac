"""HTTP for the pages of search and of full text, and for suggestions while somebody types."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Query, Response
from starlette.responses import JSONResponse

from hublet.community.threads.records import Thread
from hublet.core.database import Reader
from hublet.core.pages import PageRouter
from hublet.core.paging import read_cursor, write_cursor
from hublet.search import full_text
from hublet.search import service as search
from hublet.search.records import (
    SearchHit,
    SearchKind,
    SearchPage,
    SearchQuery,
    TextKind,
    TextQuery,
)
from hublet.web.auth import Visit
from hublet.web.discovery.views import (
    FoundRow,
    ResultPage,
    TextResultPage,
    found_row,
    full_text_url,
    result_tabs,
    search_url,
    text_row,
)
from hublet.web.pages import frame_for, render
from hublet.web.publications import accounts_of

router = PageRouter()

_PAGE_SIZE = 20
_MOST_SUGGESTIONS = 8
_Text = Annotated[str, Query(max_length=200)]


@router.get("/search")
async def get_search_page(
    visit: Visit,
    q: _Text = "",
    type_: Annotated[SearchKind | None, Query(alias="type")] = None,
    cursor: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    text = q.strip()
    kinds = (type_,) if type_ else tuple(SearchKind)
    query = SearchQuery(text=text, kinds=kinds, limit=_PAGE_SIZE, cursor=cursor)
    async with visit.database.read() as conn:
        frame = await frame_for(visit, conn)
        found = await search.search(conn, visit.caller, query) if text else SearchPage(counts={})
        rows = await _rows(conn, found.hits)
    page = ResultPage(
        text=text,
        kind=type_,
        rows=rows,
        tabs=result_tabs(text, type_, found.counts),
        next_url=search_url(text, type_, found.next_cursor) if found.next_cursor else None,
        suggestion=found.suggestion,
        is_corrected=found.is_corrected,
    )
    return await render(visit, "discovery/search.html", frame=frame, page=page)


@router.get("/search/full-text")
async def get_full_text_page(
    visit: Visit,
    q: _Text = "",
    type_: Annotated[TextKind | None, Query(alias="type")] = None,
    cursor: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    text = q.strip()
    query = TextQuery(
        text=text,
        kinds=(type_,) if type_ else tuple(TextKind),
        limit=_PAGE_SIZE,
        after=read_cursor(cursor) if cursor else "",
    )
    async with visit.database.read() as conn:
        frame = await frame_for(visit, conn)
    found = await full_text.search_texts(visit.database, visit.caller, query)
    position = write_cursor(full_text.write_position(found.end)) if found.end else ""
    page = TextResultPage(
        text=text,
        kind=type_,
        rows=[text_row(hit) for hit in found.hits],
        next_url=full_text_url(text, type_, position) if position else None,
    )
    return await render(visit, "discovery/full_text.html", frame=frame, page=page)


@router.get("/search/suggestions")
async def list_suggestions(visit: Visit, q: _Text = "") -> Response:
    """Answer the script of the search box: titles and addresses, the best first."""
    text = q.strip()
    async with visit.database.read() as conn:
        hits = (
            await search.suggest(conn, visit.caller, text, limit=_MOST_SUGGESTIONS) if text else []
        )
        rows = await _rows(conn, hits)
    body = [{"kind": row.kind, "title": row.title, "path": row.path} for row in rows]
    return JSONResponse(body, headers={"Cache-Control": "private, no-store", "Vary": "Cookie"})


async def _rows(conn: Reader, hits: Sequence[SearchHit]) -> list[FoundRow]:
    threads = [hit.target for hit in hits if isinstance(hit.target, Thread)]
    accounts = await accounts_of(conn, threads)
    return [found_row(hit, accounts) for hit in hits]
