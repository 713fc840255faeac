"""Routes that are looked at only when they are needed."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

import httpx2
import pytest
from fastapi import Depends, FastAPI, Query
from fastapi.routing import APIRoute
from starlette.routing import Match

from hublet.core.http.routers import DeferredRoute, Router, add_routes, mirror_routes
from patience import SOON_SECONDS

router = Router(prefix="/api")


@router.get("/engines/{name}")
async def get_engine(name: str, cogs: Annotated[int, Query(ge=1)] = 1) -> dict[str, int]:
    return {name: cogs}


@router.post("/engines")
async def add_engine(body: dict[str, int]) -> dict[str, int]:
    return body


def routes() -> list[DeferredRoute]:
    return [route for route in router.routes if isinstance(route, DeferredRoute)]


def are_known() -> list[bool]:
    return ["dependant" in route.__dict__ for route in routes()]


@pytest.fixture
def app() -> FastAPI:
    app = FastAPI(openapi_url=None)
    add_routes(app, router)
    return app


async def test_a_route_is_looked_at_with_its_first_request_and_answers_like_any_other(
    app: FastAPI,
) -> None:
    assert are_known() == [False, False]
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://hub.test") as client:
        elsewhere = await client.get("/api/elsewhere")
        wrong_method = await client.delete("/api/engines")
        assert are_known() == [False, False]
        found = await client.get("/api/engines/ada", params={"cogs": 3})
        refused = await client.get("/api/engines/ada", params={"cogs": 0})
        assert are_known() == [True, False]
        # Client contract 0.2: a body without a content type is taken for JSON.
        added = await client.post("/api/engines", content=b'{"ada": 2}')

    statuses = [each.status_code for each in (elsewhere, wrong_method, found, refused, added)]
    assert statuses == [404, 405, 200, 422, 200]
    assert (found.json(), added.json()) == ({"ada": 3}, {"ada": 2})


@pytest.mark.parametrize(
    ("path", "is_compiled", "match"),
    [
        ("/api/engines/ada/wheels", True, Match.FULL),
        ("/api/engines/ada/bob/wheels", True, Match.NONE),
        ("/api/engines/ada", False, Match.NONE),
        ("/api/trains/ada/wheels", False, Match.NONE),
    ],
)
def test_only_a_path_that_begins_and_ends_alike_is_compared_as_a_whole(
    path: str, match: Match, *, is_compiled: bool
) -> None:
    route = DeferredRoute("/api/engines/{name}/wheels", get_engine)

    found, _ = route.matches({"type": "http", "method": "GET", "path": path})

    assert (found, "path_regex" in route.__dict__) == (match, is_compiled)


def test_what_no_route_has_is_an_attribute_error() -> None:
    route = DeferredRoute("/", get_engine)

    with pytest.raises(AttributeError, match="A route has no wheels"):
        _ = route.wheels
    assert route.name == "get_engine"


async def _own_workshop() -> str:
    return "mine"


async def _workshop_of_guild(guild: str) -> str:
    return f"that of {guild}"


OwnWorkshop = Annotated[str, Depends(_own_workshop)]
WorkshopOfGuild = Annotated[str, Depends(_workshop_of_guild)]


async def test_mirrored_routes_serve_the_same_for_another_owner() -> None:
    own = Router(tags=["workshops"])

    @own.get("/api/workshop/tools/{tool}", status_code=203)
    async def get_tool(tool: str, owner: OwnWorkshop) -> str:
        """Show a tool."""
        return f"{tool} of the workshop: {owner}"

    mirrored = mirror_routes(
        own,
        tag="guilds",
        path=("/workshop", "/guilds/{guild}/workshop"),
        name=("tool", "guild_tool"),
        describe=lambda text: f"{text} Of a guild.",
        owner=(OwnWorkshop, WorkshopOfGuild),
    )
    app = FastAPI(openapi_url=None)
    add_routes(app, own)
    add_routes(app, mirrored)
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://hub.test") as client:
        of_mine = await client.get("/api/workshop/tools/file")
        of_guild = await client.get("/api/guilds/smiths/workshop/tools/file")

    assert (of_mine.status_code, of_mine.json()) == (203, "file of the workshop: mine")
    assert (of_guild.status_code, of_guild.json()) == (203, "file of the workshop: that of smiths")
    (route,) = mirrored.routes
    assert isinstance(route, DeferredRoute)
    assert (route.name, route.tags, route.description) == (
        "get_guild_tool",
        ["guilds"],
        "Show a tool. Of a guild.",
    )
    assert get_tool.__doc__ == "Show a tool."


def test_a_route_that_another_thread_analyses_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, may_go_on = threading.Event(), threading.Event()
    analyse = APIRoute.__init__

    def slow(*args: Any, **options: Any) -> None:
        begun.set()
        assert may_go_on.wait(SOON_SECONDS)
        analyse(*args, **options)

    monkeypatch.setattr(APIRoute, "__init__", slow)

    async def endpoint() -> None:
        """Do nothing."""

    route = DeferredRoute("/", endpoint, methods=["GET"])
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(lambda: route.dependant)
        assert begun.wait(SOON_SECONDS)
        second = threads.submit(lambda: route.dependant)
        may_go_on.set()
        assert first.result() is second.result()
