"""Routers and routes: analysed when first needed, or dispatched by the edge (fast routes)."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import field
from functools import wraps
from inspect import signature
from threading import RLock
from typing import Any, Self

from fastapi import APIRouter, FastAPI
from fastapi.routing import APIRoute
from starlette.datastructures import State
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, compile_path
from starlette.types import Scope

from hublet.core.dataclasses import dataclass

FastHandler = Callable[[Request], Coroutine[Any, Any, bytes | Response]]

# A thread describes all routes while requests use some of them.
_analysis = RLock()

# What `compile_path` returns.
_PATTERN = ("path_regex", "path_format", "param_convertors")


class DeferredRoute(APIRoute):
    """A route that knows at once how its path begins and ends, and all the rest when it is first needed.

    To look at a function's parameters and make their checks takes two milliseconds, and there
    are hundreds of routes: together they would be a third of the time in which the hub starts.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        self.path, self.endpoint = path, endpoint
        self._beginning = path.partition("{")[0]
        self._ending = path.rpartition("}")[2]
        self.methods = {method.upper() for method in options.get("methods") or ["GET"]}
        self._options: dict[str, Any] | None = options

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        # Hundreds of routes are tried before the right one, and most begin or end otherwise.
        path: str = scope["path"]
        if not (path.startswith(self._beginning) and path.endswith(self._ending)) and not scope.get(
            "root_path"
        ):
            return Match.NONE, {}
        return super().matches(scope)

    def __getattr__(self, name: str) -> Any:
        # Only what is not set yet is looked for here.
        if name in _PATTERN:
            self.__dict__.update(zip(_PATTERN, compile_path(self.path), strict=True))
            return self.__dict__[name]
        with _analysis:
            options = self.__dict__.pop("_options", None)
            if options is not None:
                super().__init__(self.path, self.endpoint, **options)
        if name not in self.__dict__:
            raise AttributeError(f"A route has no {name}.")
        return self.__dict__[name]

    def twin(self, path: str, endpoint: Callable[..., Any], *, tag: str) -> "DeferredRoute":
        """Return the same route at another address; only for one that was not needed yet."""
        return DeferredRoute(path, endpoint, **self.__dict__["_options"] | {"tags": [tag]})


class FastRoute(DeferredRoute):
    """A route that the edge dispatches, and the framework only describes (decision 0011).

    Its function takes the bare request and returns the JSON of a 200, or, where it has headers or
    another status of its own, a response. Its path has no parameters. Declare its response with
    `response_model`, and the token it needs with `dependencies`: both are in the description, and
    the function itself must keep that promise, because nothing else runs for it.
    """


class ImmediateRoute(FastRoute):
    """A fast route that only reads.

    With a database that is read without waiting, and a caller who is known, it is answered before
    the next request is looked at: it needs no task (decision 0088).
    """


def fast_handlers(
    routes: Sequence[BaseRoute], kind: type[FastRoute] = FastRoute
) -> dict[tuple[str, str], FastHandler]:
    """Return the handlers of fast routes by method and path."""
    return {
        (method, route.path): route.endpoint
        for route in routes
        if isinstance(route, kind)
        for method in route.methods or ()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class FastRoutes:
    """Handlers of fast routes by method and path, and of those that may be answered at once."""

    handlers: Mapping[tuple[str, str], FastHandler] = field(default_factory=dict)
    immediate: Mapping[tuple[str, str], FastHandler] = field(default_factory=dict)

    @classmethod
    def of(cls, routes: Sequence[BaseRoute], *, reads_at_once: bool) -> Self:
        immediate = fast_handlers(routes, ImmediateRoute) if reads_at_once else {}
        return cls(handlers=fast_handlers(routes), immediate=immediate)


class Router(APIRouter):
    """The routes of a feature. What holds for all routes of the hub is said here."""

    def __init__(self, *, route_class: type[APIRoute] = DeferredRoute, **options: Any) -> None:
        # The public client sends bodies without a content type; see client contract 0.2.
        super().__init__(strict_content_type=False, route_class=route_class, **options)


def mirror_routes(
    router: Router,
    *,
    tag: str,
    path: tuple[str, str],
    name: tuple[str, str],
    describe: Callable[[str], str],
    owner: tuple[Any, Any] | None = None,
) -> Router:
    """Return the same routes once more, for the things of another kind of owner.

    In the path, and in the function's name (the operation id), the first of the two strings is
    replaced by the second; `describe` makes the new docstring. `owner` holds two annotated types:
    a parameter of the first one gets the second one, so that another dependency finds the owner.
    """
    mirrors = Router(tags=[tag])
    for route in router.routes:
        if isinstance(route, DeferredRoute):
            endpoint = _mirror_endpoint(route.endpoint, owner)
            endpoint.__name__ = endpoint.__name__.replace(*name, 1)
            endpoint.__doc__ = describe(endpoint.__doc__ or "")
            mirrors.routes.append(route.twin(route.path.replace(*path, 1), endpoint, tag=tag))
    return mirrors


def _mirror_endpoint(
    endpoint: Callable[..., Any], owner: tuple[Any, Any] | None
) -> Callable[..., Any]:
    """Return a function that calls the endpoint but has a name and a signature of its own."""

    @wraps(endpoint)
    async def mirror(*args: Any, **kwargs: Any) -> Any:
        return await endpoint(*args, **kwargs)

    if owner is not None:
        # FastAPI reads the parameters from here; the values are passed on by their names.
        shape = signature(endpoint)
        parameters = [
            each.replace(annotation=owner[1]) if each.annotation == owner[0] else each
            for each in shape.parameters.values()
        ]
        mirror.__dict__["__signature__"] = shape.replace(parameters=parameters)
    return mirror


class ApplicationState(State):
    """What routes reach for. Starlette's looks in vain first, for each of them, at each request."""

    def __setattr__(self, key: str, value: Any) -> None:
        super().__setattr__(key, value)
        self.__dict__[key] = value

    def __delattr__(self, key: str) -> None:
        super().__delattr__(key)
        del self.__dict__[key]


def add_routes(app: FastAPI, router: Router) -> None:
    """Add a feature's routes as they are.

    `include_router` would analyse every one of them a second time, for each application.
    """
    app.router.routes.extend(router.routes)
