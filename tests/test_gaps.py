"""What this hub does not have says so."""

import re
from collections.abc import AsyncIterator

import httpx2
import pytest
from fastapi import APIRouter

from hublet.description import describe
from hublet.description.operations import TAGS
from hublet.gaps import GAPS, Gap, find_gap
from hublet.gaps import router as gaps
from small_hub import BASE_URL, small_hub

built = APIRouter()


@built.get("/api/partners/{provider}/models", tags=["inference-providers"])
async def list_partner_models(provider: str) -> list[str]:
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
    response = await caller.get("/api/spaces/zero-gpu/quota")

    assert response.status_code == 501
    assert response.json() == {
        "error": "This hub has no ZeroGPU yet: GET /api/spaces/zero-gpu/quota is not available here. "
        "See http://hub.test/docs for what is."
    }


async def test_what_is_built_wins(caller: httpx2.AsyncClient) -> None:
    response = await caller.get("/api/partners/acme/models")

    assert (response.status_code, response.json()) == (200, ["built"])


async def test_another_method_of_what_is_built_is_still_a_gap(caller: httpx2.AsyncClient) -> None:
    response = await caller.post("/api/partners/acme/models")

    assert response.status_code == 501


async def test_a_method_that_nobody_has_is_405(caller: httpx2.AsyncClient) -> None:
    response = await caller.delete("/api/partners/acme/models")

    assert response.status_code == 405


async def test_an_address_that_nobody_has_is_404(caller: httpx2.AsyncClient) -> None:
    response = await caller.get("/api/nothing/here")

    assert response.status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "what"),
    [
        pytest.param(
            "GET", "/api/spaces/ada/engine/runtime", "space runtime", id="a repo id has a slash"
        ),
        pytest.param(
            "GET", "/api/spaces/engine/runtime", "space runtime", id="a repo id without a slash"
        ),
        pytest.param(
            "POST",
            "/api/inference-endpoints/ada/engine/auth-check/read",
            "inference endpoints",
            id="a name with a slash",
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

    assert list(description["paths"]) == ["/api/partners/{provider}/models"]
