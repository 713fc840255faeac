"""The index of routes finds for each path the route that trying all of them finds."""

import re
from collections.abc import Iterator, Sequence

import pytest
from fastapi import APIRouter
from hypothesis import assume, example, given
from hypothesis import strategies as st
from starlette.convertors import CONVERTOR_TYPES
from starlette.responses import PlainTextResponse
from starlette.routing import BaseRoute, Match, Mount, Route

from hublet.app import FEATURES
from hublet.core.http.route_index import RouteIndex

PATHS = [route.path for each in FEATURES for it in each.ROUTERS for route in it.routes]  # type: ignore[attr-defined]
METHODS = ("GET", "POST", "PUT", "DELETE")
# What stands in the place of a parameter, by the name of its convertor.
SAMPLES = {
    **dict.fromkeys(("kind", "any_kind", "prefix"), "datasets"),
    **dict.fromkeys(("repo", "page_repo"), "ada/engine"),
    **dict.fromkeys(("path", "revision"), "some/where"),
    "int": "7",
    "api_end": "tree/main",
    "root_end": "resolve/main/x",
}
PARAMETER = re.compile(r"\{\w+(?::(\w+))?\}")


@pytest.fixture(scope="module")
def whole() -> APIRouter:
    router = APIRouter(redirect_slashes=False)
    router.routes += [route for each in FEATURES for it in each.ROUTERS for route in it.routes]
    return router


@pytest.fixture(scope="module")
def index(whole: APIRouter) -> RouteIndex:
    return RouteIndex(whole)


def matching(
    routes: Sequence[BaseRoute], method: str, path: str
) -> Iterator[tuple[Match, BaseRoute]]:
    scope = {"type": "http", "method": method, "path": path, "root_path": "", "headers": []}
    for route in routes:
        match, _ = route.matches(scope)
        if match is not Match.NONE:
            yield match, route


def sample(path: str) -> str:
    return PARAMETER.sub(lambda found: SAMPLES.get(found[1] or "", "ada"), path)


def test_every_route_is_found_by_its_path(whole: APIRouter, index: RouteIndex) -> None:
    for path in map(sample, PATHS):
        for method in METHODS:
            found = list(matching(index.find(path).routes, method, path))
            assert found == list(matching(whole.routes, method, path)), path


def test_few_routes_are_tried_for_a_path(index: RouteIndex) -> None:
    sizes = [len(index.find(path).routes) for path in map(sample, PATHS)]

    assert max(sizes) < 60


names = st.one_of(
    st.sampled_from(sorted({name for path in PATHS for name in sample(path).split("/")})),
    st.text(min_size=0, max_size=3),
)


@given(st.lists(names, max_size=9).map("/".join).map("/{}".format), st.sampled_from(METHODS))
@example("", "GET")
@example("no/slash", "GET")
@example("/api/models/", "GET")
@example("//", "GET")
def test_any_path_means_the_same(
    whole: APIRouter, index: RouteIndex, path: str, method: str
) -> None:
    # The pattern of a route would overlook it.
    assume(not path.endswith("\n"))
    found = list(matching(index.find(path).routes, method, path))

    assert found == list(matching(whole.routes, method, path))


def test_a_line_break_at_the_end_is_part_of_the_name(index: RouteIndex) -> None:
    assert not list(matching(index.find("/api/models\n").routes, "GET", "/api/models\n"))


def test_routes_that_are_added_later_are_found_and_others_are_always_tried() -> None:
    async def answer(_: object) -> PlainTextResponse:
        return PlainTextResponse("")

    router = APIRouter()
    index = RouteIndex(router)
    assert index.find("/a/b").routes == []

    mounted, added = Mount("/a", routes=[]), Route("/a/{name}.{end}", answer)
    router.routes += [mounted, added]

    assert index.find("/a/b").routes == [mounted, added]
    assert index.find("/b/b").routes == [mounted]


def test_the_samples_name_convertors_that_there_are() -> None:
    assert SAMPLES.keys() <= CONVERTOR_TYPES.keys()
