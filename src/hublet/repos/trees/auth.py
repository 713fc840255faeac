"""Which revision a request is about, and which page of it, as types that a route names."""

from dataclasses import replace
from typing import Annotated

from fastapi import Depends, Query, Request, Response

from hublet.core.http import Db
from hublet.core.http.paging import Page
from hublet.core.light_dataclasses import dataclass
from hublet.core.paging import read_cursor
from hublet.repos.auth import GitRepo
from hublet.repos.trees import service
from hublet.repos.trees.addresses import split_rest
from hublet.repos.trees.positions import read_position
from hublet.repos.trees.records import Revision
from hublet.tokens.auth import MaybeCaller

# The end of an address that names a revision and what lies in it, or a revision alone.
IN_REVISION = "/{rest:path}"
REVISION = "/{rev:path}"

LARGEST_PAGE = 1000
# A page whose items each look through the history.
LARGEST_EXPANDED_PAGE = 50
DEFAULT_COMMITS = 50

_Cursor = Annotated[str, Query(description="Where to go on, from the `Link` header.")]
_Limit = Annotated[int, Query(ge=1, le=LARGEST_PAGE)]


async def _tree_page(
    request: Request,
    response: Response,
    *,
    limit: _Limit = LARGEST_PAGE,
    cursor: _Cursor = "",
    expand: bool = False,
) -> Page:
    most = LARGEST_EXPANDED_PAGE if expand else LARGEST_PAGE
    return _page(request, response, limit=min(limit, most), cursor=cursor)


async def _commit_page(
    request: Request, response: Response, limit: _Limit = DEFAULT_COMMITS, cursor: _Cursor = ""
) -> Page:
    return _page(request, response, limit=limit, cursor=cursor)


def _page(request: Request, response: Response, *, limit: int, cursor: str) -> Page:
    after = read_cursor(cursor) if cursor else ""
    return Page(after=after, limit=limit, _request=request, _response=response)


TreePage = Annotated[Page, Depends(_tree_page)]
CommitPage = Annotated[Page, Depends(_commit_page)]


def revision_and_path(request: Request, rest: str) -> tuple[str, str]:
    return split_rest(request.scope["raw_path"].decode("latin-1"), rest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A folder or file in a revision, and what of it was shown on the pages before."""

    at: Revision
    path: str
    after: str = ""

    def behind(self, page: Page) -> "Place":
        """Return the same place for this page: in the commit that the first page showed."""
        if not page.after:
            return self
        commit, after = read_position(page.after)
        return replace(self, at=replace(self.at, commit=commit), after=after)


async def _place(
    request: Request, database: Db, caller: MaybeCaller, address: GitRepo, rest: str
) -> Place:
    revision, path = revision_and_path(request, rest)
    at = await service.get_revision(database, caller, address, revision)
    return Place(at=at, path=path)


AskedPlace = Annotated[Place, Depends(_place)]


async def _revision(database: Db, caller: MaybeCaller, address: GitRepo, rev: str) -> Revision:
    return await service.get_revision(database, caller, address, rev)


AskedRevision = Annotated[Revision, Depends(_revision)]
