"""Index of routes: the few that a path may mean, by its first names, their number and its last name.

The framework tries all routes in turn, which took up to 0.8 ms of each request.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from fastapi import APIRouter
from starlette.convertors import CONVERTOR_TYPES
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

# So many names of a path are looked at, and its last one; behind these the routes are few.
_MOST_NAMES = 5
_MOST_ROUTERS = 2048
_PARAMETER = re.compile(r"\{\w+(?::(\w+))?\}")
# Of convertors: words that a parameter is one of, and a name with some that it is not.
_WORDS = re.compile(r"[\w-]+(?:\|[\w-]+)*")
_ONE_NAME = re.compile(r"(?:\(\?!.*\))?\[\^/\]\+|\[0-9\]\+")


class _Shape(NamedTuple):
    """What a path must look like to be one of a route; every such path does, and some others."""

    # What may stand in each place; None: any name.
    names: tuple[frozenset[str] | None, ...] = ()
    # Whether more names may follow.
    is_open: bool = True
    # None: any.
    last: str | None = None

    def fits(self, names: tuple[str, ...], last: str) -> bool:
        count = len(self.names)
        if len(names) < count or (len(names) > count and not self.is_open):
            return False
        if self.last is not None and self.last != last:
            return False
        # There may be more names than are looked at.
        pairs = zip(self.names, names, strict=False)
        return all(options is None or name in options for options, name in pairs)


class RouteIndex:
    """ASGI application that passes a request on to a router of the few routes that its path may mean."""

    def __init__(self, router: APIRouter) -> None:
        self._whole = router
        self._read_routes()

    def _read_routes(self) -> None:
        self._routes: list[tuple[_Shape, BaseRoute]] = [
            (_shape_of(route.path) if isinstance(route, Route) else _Shape(), route)
            for route in self._whole.routes
        ]
        # Whatever else stands in a path is all the same.
        self._names = _known_names(shape for shape, _ in self._routes)
        self._router_of = lru_cache(maxsize=_MOST_ROUTERS)(self._make_router)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["router"] = self._whole
        is_whole = scope["type"] != "http" or scope.get("root_path")
        router = self._whole if is_whole else self.find(scope["path"])
        await router.app(scope, receive, send)

    def find(self, path: str) -> APIRouter:
        """Return a router with all routes that may have this path, in their order."""
        if len(self._routes) != len(self._whole.routes):
            self._read_routes()
        known = self._names
        # The last of them is all that is left, if there are more than are looked at.
        names = path.split("/", _MOST_NAMES + 1)[1:]
        last = path.rpartition("/")[2]
        key = tuple([name if name in known else "" for name in names])
        return self._router_of(key, last if last in known else "")

    def _make_router(self, names: tuple[str, ...], last: str) -> APIRouter:
        return APIRouter(
            routes=[route for shape, route in self._routes if shape.fits(names, last)],
            redirect_slashes=self._whole.redirect_slashes,
            default=self._whole.default,
        )


def _known_names(shapes: Iterable[_Shape]) -> frozenset[str]:
    known = set[str]()
    for shape in shapes:
        known.update(*filter(None, shape.names), *([] if shape.last is None else [{shape.last}]))
    return frozenset(known)


@lru_cache(maxsize=4096)
def _shape_of(path: str) -> _Shape:
    parts = path.split("/")[1:]
    names: list[frozenset[str] | None] = []
    for part in parts[:_MOST_NAMES]:
        if not _is_one_name(part):
            break
        names.append(_options_of(part))
    last = None if "{" in parts[-1] else parts[-1]
    return _Shape(names=tuple(names), is_open=len(names) < len(parts), last=last)


def _is_one_name(part: str) -> bool:
    """Tell whether what stands in this place has no slash."""
    regexes = [CONVERTOR_TYPES[each or "str"].regex for each in _PARAMETER.findall(part)]
    return all(_WORDS.fullmatch(regex) or _ONE_NAME.fullmatch(regex) for regex in regexes)


def _options_of(part: str) -> frozenset[str] | None:
    """Return the names that may stand in this place of a path; None: any."""
    if "{" not in part:
        return frozenset([part])
    parameter = _PARAMETER.fullmatch(part)
    regex = CONVERTOR_TYPES[parameter[1] or "str"].regex if parameter else ""
    return frozenset(regex.split("|")) if _WORDS.fullmatch(regex) else None
