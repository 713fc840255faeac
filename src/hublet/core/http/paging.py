"""Paging of a list as a type that a route names: cursor and limit in, `Link` header out."""

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Query, Request
from starlette.responses import Response

from hublet.core.dataclasses import dataclass
from hublet.core.paging import DEFAULT_LIMIT, MAX_LIMIT, next_url, read_cursor, write_cursor

T = TypeVar("T")

# For the `responses` of a route that returns a list page by page.
PAGED_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "headers": {
            "Link": {
                "description": 'The next page, as in `<https://…>; rel="next"`; absent on the last.',
                "schema": {"type": "string"},
            }
        }
    }
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Requested part of a list: the rows after a position, at most `limit`."""

    # Empty for the first page, so that `id > after` holds for every id.
    after: str
    limit: int
    _request: Request = field(repr=False)
    _response: Response = field(repr=False)

    @property
    def reach(self) -> int:
        """How many rows to fetch: one more than are shown tells that there is a next page."""
        return self.limit + 1

    def cut(self, rows: Sequence[T], *, position: Callable[[T], str]) -> list[T]:
        """Return the rows to show; link to the next page when there are more."""
        selected = list(rows[: self.limit])
        if len(rows) > self.limit:
            self.link(position(selected[-1]))
        return selected

    def link(self, position: str) -> None:
        """Link to the page behind a position, also when this page is not full."""
        url = next_url(
            self._request.app.state.settings.base_url,
            path=self._request.scope["raw_path"],
            query=self._request.query_params.multi_items(),
            cursor=write_cursor(position),
        )
        self._response.headers["Link"] = f'<{url}>; rel="next"'


async def _read_page(
    request: Request,
    response: Response,
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT)] = DEFAULT_LIMIT,
    cursor: Annotated[str, Query(description="Where to go on, from the `Link` header.")] = "",
) -> Page:
    after = read_cursor(cursor) if cursor else ""
    return Page(after=after, limit=limit, _request=request, _response=response)


PageQuery = Annotated[Page, Depends(_read_page)]


async def _read_long_page(
    request: Request,
    response: Response,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 500,
    cursor: Annotated[str, Query(description="Where to go on, from the `Link` header.")] = "",
) -> Page:
    return await _read_page(request, response, limit, cursor)


# Of members, of whom the public service shows as many at once.
MemberPage = Annotated[Page, Depends(_read_long_page)]
