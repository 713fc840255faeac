"""Routes that are looked at only when they are needed."""

from typing import Annotated

import httpx2
import pytest
from fastapi import FastAPI, Query

from hublet.core.http.routers import DeferredRoute, Router, add_routes

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


def test_what_no_route_has_is_an_attribute_error() -> None:
    route = DeferredRoute("/", get_engine)

    with pytest.raises(AttributeError, match="A route has no wheels"):
        _ = route.wheels
    assert route.name == "get_engine"
