"""Creating and deleting repositories."""

import httpx2
import pytest

from hublet.core.database import Database
from hublet.events import RepoCreated, RepoDeleted
from people import Headers
from published import published

TYPES = ["model", "dataset", "space", "kernel", "bucket", "container"]


@pytest.mark.parametrize("type_", TYPES)
async def test_a_repository_of_each_type_is_created_and_deleted(
    client: httpx2.AsyncClient, database: Database, ada: Headers, type_: str
) -> None:
    body = {"name": "engine", "type": type_}

    created = await client.post("/api/repos/create", headers=ada, json=body)
    again = await client.post("/api/repos/create", headers=ada, json=body)
    deleted = await client.request("DELETE", "/api/repos/delete", headers=ada, json=body)
    missing = await client.request("DELETE", "/api/repos/delete", headers=ada, json=body)

    prefix = "" if type_ == "model" else f"{type_}s/"
    url = f"http://hub.test/{prefix}ada/engine"
    assert created.json() == {"url": url, "name": "ada/engine", "id": created.json()["id"]}
    assert (again.status_code, again.json()) == (
        409,
        {"error": "There is a repository ada/engine already.", "url": url},
    )
    assert (deleted.status_code, deleted.json()) == (200, {})
    assert (missing.status_code, missing.headers["x-error-code"]) == (404, "RepoNotFound")
    [fact, gone] = await published(database, RepoCreated, RepoDeleted)
    assert fact == gone
    assert (fact["repo"]["name"], fact["repo"]["type"]) == ("ada/engine", type_)
