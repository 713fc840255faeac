"""HTTP for saved queries of datasets, the `sql-console` operations of the interface."""

from typing import Annotated

from fastapi import Path
from starlette.responses import Response

from hublet.core.http import Conn, ReadConn, Router
from hublet.core.http.paging import PAGED_RESPONSES, PageQuery
from hublet.core.ids import is_object_id
from hublet.core.paging import InvalidCursor
from hublet.repos.auth import GIT_REPO, MOVED, GitRepo
from hublet.sql import saved_queries
from hublet.sql.schemas import SavedQuery, SaveQuery, UpdateQuery
from hublet.tokens.auth import AnyCaller, MaybeCaller

router = Router(
    prefix=f"{GIT_REPO}/sql-console/embed",
    tags=["sql-console"],
    responses=MOVED | {404: {"description": "There is no such dataset or saved query."}},
)

_Name = Annotated[str, Path(max_length=100, description="The id or the slug of the query.")]


@router.get("", responses=PAGED_RESPONSES)
async def list_saved_queries(
    conn: ReadConn, caller: MaybeCaller, address: GitRepo, page: PageQuery
) -> list[SavedQuery]:
    """List the saved queries of a dataset, the newest first: public ones and the caller's own."""
    repo = await saved_queries.get_dataset(conn, caller, address)
    if page.after and not is_object_id(page.after):
        raise InvalidCursor
    listed = await saved_queries.list_of(conn, caller, repo, before=page.after, limit=page.reach)
    return [SavedQuery.of(each) for each in page.cut(listed, position=lambda query: query.id)]


@router.post("", responses={409: {"description": "There are as many as there can be."}})
async def save_query(
    conn: Conn, caller: AnyCaller, address: GitRepo, body: SaveQuery
) -> SavedQuery:
    """Save a query over a dataset that the caller may read, with the scope write-discussions."""
    repo = await saved_queries.get_dataset(conn, caller, address)
    return SavedQuery.of(await saved_queries.save(conn, caller, repo, body.new()))


@router.get("/{query}")
async def get_saved_query(
    conn: ReadConn, caller: MaybeCaller, address: GitRepo, query: _Name
) -> SavedQuery:
    """Get one saved query; a private one is found by its author alone."""
    repo = await saved_queries.get_dataset(conn, caller, address)
    return SavedQuery.of(await saved_queries.get(conn, caller, repo, query))


@router.patch("/{query}")
async def update_saved_query(
    conn: Conn, caller: AnyCaller, address: GitRepo, query: _Name, body: UpdateQuery
) -> SavedQuery:
    """Change a saved query, as its author or as somebody who manages the dataset."""
    repo = await saved_queries.get_dataset(conn, caller, address)
    return SavedQuery.of(await saved_queries.change(conn, caller, repo, query, body.change()))


@router.delete("/{query}", status_code=204)
async def delete_saved_query(
    conn: Conn, caller: AnyCaller, address: GitRepo, query: _Name
) -> Response:
    """Delete a saved query, as its author or as somebody who manages the dataset."""
    repo = await saved_queries.get_dataset(conn, caller, address)
    await saved_queries.delete(conn, caller, repo, query)
    return Response(status_code=204)


ROUTERS: tuple[Router, ...] = (router,)
