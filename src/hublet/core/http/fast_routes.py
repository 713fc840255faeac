"""Fast routes: described like any other route, dispatched by the edge without the framework."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from fastapi.routing import iter_route_contexts
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from hublet.core.http.routers import DeferredRoute

FastHandler = Callable[[Request], Coroutine[Any, Any, bytes | Response]]


class FastRoute(DeferredRoute):
    """A route whose function takes the bare request and returns the JSON of a 200.

    The edge calls it; the framework only describes it. Its path has no parameters. Declare what
    it answers with `response_model`, and what token it needs with `dependencies`: both are shown
    in the description, and the function itself must keep that promise, because nothing else runs
    for it. One that has headers or another status of its own returns a response instead.
    """


def fast_handlers(routes: Sequence[BaseRoute]) -> dict[tuple[str, str], FastHandler]:
    """Return the handlers of hot routes by method and path."""
    return {
        (method, context.original_route.path): context.original_route.endpoint
        for context in iter_route_contexts(routes)
        if isinstance(context.original_route, FastRoute)
        for method in context.original_route.methods or ()
    }
