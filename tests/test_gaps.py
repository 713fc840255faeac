"""What this hub does not have says so."""

import re
from collections.abc import AsyncIterator

import httpx2
import pytest
from fastapi import APIRouter

from hublet.description import describe
from hublet.description.tags import TAGS
from hublet.gaps import GAPS, Gap, find_gap
from hublet.gaps import router as gaps
from small_hub import BASE_URL, small_hub

built = APIRouter()


@built.get("/api/collections", tags=["collections"])
async def list_collections() -> list[str]:
    return ["built"]


@pytest.fixture
async def caller() -> AsyncIterator[httpx2.AsyncClient]:
    """Speaks to a hub that has built one operation of the table, and none of the others."""
    transport = httpx2.ASGITransport(app=small_hub(built, gaps))
    async with httpx2.AsyncClient(transport=transport, base_url=BASE_URL) as caller:
        yield caller


def filled(gap: Gap) -> str:
    """An address of the gap: parameters get a name, and those with slashes get two."""
    return re.sub(r"{\w+}", "ada", re.sub(r"{\w+:path}", "ada/engine", gap.path))


async def test_a_gap_answers_501_with_a_sentence(caller: httpx2.AsyncClient) -> None:
    response = await caller.get("/api/trending")

    assert response.status_code == 501
    assert response.json() == {
        "error": "This hub has no trending lists yet: GET /api/trending is not available here. "
        "See http://hub.test/docs for what is."
    }


async def test_what_is_built_wins(caller: httpx2.AsyncClient) -> None:
    response = await caller.get("/api/collections")

    assert (response.status_code, response.json()) == (200, ["built"])


async def test_another_method_of_what_is_built_is_still_a_gap(caller: httpx2.AsyncClient) -> None:
    response = await caller.post("/api/collections")

    assert response.status_code == 501


async def test_a_method_that_nobody_has_is_405(caller: httpx2.AsyncClient) -> None:
    response = await caller.delete("/api/collections")

    assert response.status_code == 405


async def test_an_address_that_nobody_has_is_404(caller: httpx2.AsyncClient) -> None:
    response = await caller.get("/api/nothing/here")

    assert response.status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "what"),
    [
        pytest.param(
            "GET", "/api/models/ada/engine/scan", "security scans", id="a repo id has a slash"
        ),
        pytest.param(
            "GET", "/api/models/gpt2/scan", "security scans", id="a repo id without a slash"
        ),
        pytest.param(
            "GET",
            "/api/datasets/ada/engine/compare/refs%2Fpr%2F1..main",
            "commits",
            id="a revision with encoded slashes",
        ),
        pytest.param(
            "GET", "/ada/engine/user-access-report", "access requests", id="a page of a model"
        ),
        pytest.param(
            "PATCH",
            "/api/collections/ada/slug-64f/items/1",
            "collections",
            id="a slug with a slash",
        ),
    ],
)
async def test_parts_with_slashes_match(
    caller: httpx2.AsyncClient, method: str, path: str, what: str
) -> None:
    response = await caller.request(method, path)

    assert response.status_code == 501
    assert response.json()["error"].startswith(f"This hub has no {what} yet: {method} /")


def test_no_line_of_the_table_hides_behind_another() -> None:
    assert [gap for gap in GAPS if find_gap(gap.method, filled(gap)) != gap] == []


def test_no_address_is_listed_twice() -> None:
    addresses = [(gap.method, gap.path) for gap in GAPS]

    assert len(set(addresses)) == len(addresses)


def test_every_gap_belongs_to_a_group_of_the_interface() -> None:
    assert {gap.tag for gap in GAPS} <= TAGS.keys()


def test_a_gap_is_not_described() -> None:
    description = describe(small_hub(built, gaps), base_url=BASE_URL)

    assert list(description["paths"]) == ["/api/collections"]
