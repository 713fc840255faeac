"""Routing of pages: their errors are shown on a page too."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError

from hublet.core.errors import HubError, InvalidRequest
from hublet.core.http.routers import DeferredRoute, Router
from hublet.core.http.validation import describe_problems
from hublet.core.pages.documents import page_response
from hublet.core.pages.rendering import Templates

_templates = Templates(__package__ or "")


class PageRoute(DeferredRoute):
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await handle(request)
            except HubError as error:
                return error_page(error)
            except RequestValidationError as error:
                return error_page(InvalidRequest(describe_problems(error.errors())))

        return answer


class PageRouter(Router):
    """Routes for people: the description of the API does not list them."""

    def __init__(self, **options: Any) -> None:
        super().__init__(route_class=PageRoute, include_in_schema=False, **options)


def error_page(error: HubError) -> Response:
    """Tell an error on a page; one that leads elsewhere, such as to the login, has no page."""
    if "Location" in error.headers:
        return Response(status_code=error.status, headers=error.headers)
    body = _templates.render("error.html", message=error.message, frame=None)
    return page_response(body, status=error.status, headers=error.headers)
