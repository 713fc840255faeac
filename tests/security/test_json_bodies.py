"""Attacks by JSON in which thousands of things are wrong at once."""

from typing import Any

import httpx2
import pytest

from hublet.core.database import Database
from hublet.core.http import error_responses
from hublet.core.http.validation import describe_problems
from people import Headers
from scim.directories import a_directory

# No request gets as far as the database.
pytestmark = pytest.mark.parametrize("settings", ["sqlite"], indirect=True)

# What fits into the largest body.
MANY = 90_000

WEBHOOK: dict[str, Any] = {
    "url": "https://hooks.example.com",
    "watched": [{"type": "model", "name": "ada/engine"}],
    "domains": ["repo"],
}
JOB: dict[str, Any] = {"dockerImage": "python:3.12", "command": ["true"], "flavor": "cpu-basic"}


def unknown_fields(count: int) -> dict[str, int]:
    return {f"k{number}": 1 for number in range(count)}


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many errors were built for each response."""
    counts: list[int] = []

    def describe(errors: Any) -> str:
        counts.append(len(errors))
        return describe_problems(errors)

    monkeypatch.setattr(error_responses, "describe_problems", describe)
    return counts


@pytest.mark.parametrize(
    ("path", "body", "beginning"),
    [
        pytest.param(
            "/api/settings/webhooks",
            WEBHOOK | unknown_fields(MANY),
            "k0 is not a known field. k1 is not a known field.",
            id="unknown fields",
        ),
        pytest.param(
            "/api/settings/webhooks",
            WEBHOOK | {"watched": [WEBHOOK["watched"][0] | unknown_fields(MANY)]},
            "watched[0].k0 is not a known field.",
            id="unknown fields in an object of an array",
        ),
        pytest.param(
            "/api/settings/webhooks",
            WEBHOOK | {"watched": [{}] * MANY},
            "watched[0].type is required. watched[0].name is required.",
            id="wrong objects in an array",
        ),
        pytest.param(
            "/api/settings/webhooks",
            WEBHOOK | {"domains": [1] * MANY},
            "domains[0] must be",
            id="wrong values in an array",
        ),
        pytest.param(
            "/api/jobs/ada",
            JOB | {"environment": unknown_fields(MANY)},
            "environment.k0 must be a string.",
            id="wrong values in a map",
        ),
    ],
)
async def test_thousands_of_problems_cost_no_more_than_a_few(
    path: str,
    body: dict[str, Any],
    beginning: str,
    built: list[int],
    client: httpx2.AsyncClient,
    ada: Headers,
) -> None:
    response = await client.post(path, json=body, headers=ada)

    assert response.status_code == 400
    assert response.json()["error"].startswith(beginning)
    assert len(response.json()["error"]) < 2000
    assert built[0] < 50


async def test_twenty_problems_are_told_and_that_there_are_more(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    for count, ending in ((20, "k19 is not a known field."), (21, "And more problems.")):
        body = WEBHOOK | unknown_fields(count)
        response = await client.post("/api/settings/webhooks", json=body, headers=ada)

        assert response.status_code == 400
        assert response.json()["error"].count("is not a known field.") == 20
        assert response.json()["error"].endswith(ending)


async def test_thousands_of_wrong_query_parameters_cost_no_more_than_one(
    built: list[int], client: httpx2.AsyncClient, ada: Headers
) -> None:
    query = "&".join(["stage=x"] * 5_000)
    response = await client.get(f"/api/jobs/ada?{query}", headers=ada)

    assert response.status_code == 400
    assert built == [1]


async def test_thousands_of_fields_of_a_directory_are_refused_unread(
    client: httpx2.AsyncClient, database: Database
) -> None:
    directory = await a_directory(client, database)
    user = {"schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"], "userName": "grace"}
    response = await directory.ask("POST", "/Users", json=user | unknown_fields(MANY))

    assert response.status_code == 400
    assert response.json()["detail"] == "An object has at most 200 fields."
