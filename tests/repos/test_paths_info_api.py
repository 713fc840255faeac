"""What lies at certain paths of a revision."""

from typing import Any

import httpx2
import pytest

from hublet.core.database import Database
from people import Headers
from repos.content import put
from repos.git_objects import git_sha1
from repositories import a_repo

PATH = "/api/models/ada/engine/paths-info"
FILES = {"a.txt": b"a", "d/b.txt": b"bb"}
A = {"type": "file", "oid": git_sha1(b"a"), "size": 1, "path": "a.txt"}
B = {"type": "file", "oid": git_sha1(b"bb"), "size": 2, "path": "d/b.txt"}


@pytest.fixture
async def commit(client: httpx2.AsyncClient, database: Database, ada: Headers) -> str:
    repo_id = await a_repo(client, ada, "ada/engine")
    return await put(database, repo_id, FILES, ref="refs/heads/feat/x", at=100)


@pytest.mark.parametrize("form", ["data", "json"])
async def test_paths_are_asked_for_as_a_form_or_as_json(
    client: httpx2.AsyncClient, commit: str, form: str
) -> None:
    requested: dict[str, Any] = {form: {"paths": ["d/b.txt", "none", "a.txt", "../x", ""]}}

    response = await client.post(f"{PATH}/feat%2Fx", **requested)

    assert (response.status_code, response.json()) == (200, [B, A])


async def test_expanding_tells_the_last_commit(client: httpx2.AsyncClient, commit: str) -> None:
    response = await client.post(f"{PATH}/{commit}", data={"paths": ["a.txt"], "expand": "true"})

    assert response.json() == [
        A
        | {
            "lastCommit": {
                "id": commit,
                "title": "Add files.",
                "date": "1970-01-01T00:01:40.000Z",
            },
            "securityFileStatus": {
                "status": "unscanned",
                "avScan": None,
                "pickleImportScan": None,
            },
        }
    ]


async def test_a_folder_may_be_written_with_a_slash(
    client: httpx2.AsyncClient, commit: str
) -> None:
    [folder] = (await client.post(f"{PATH}/feat%2Fx", data={"paths": "d/"})).json()

    assert folder == {"type": "directory", "oid": folder["oid"], "size": 0, "path": "d"}


@pytest.mark.parametrize(
    ("requested", "sentence"),
    [
        pytest.param({"data": {}}, "paths must have at least 1 item(s).", id="nothing requested"),
        pytest.param({"json": {}}, "paths is required.", id="an empty object"),
        pytest.param({"json": []}, "The body must be an object.", id="an array"),
        pytest.param(
            {"json": {"paths": ["a"] * 1001}}, "paths must have at most 1000 items.", id="too many"
        ),
        pytest.param(
            {"json": {"paths": [1], "more": 2}},
            "paths[0] must be a string. more is not a known field.",
            id="wrong types and fields",
        ),
        pytest.param(
            {"content": b"{", "headers": {"content-type": "application/json"}},
            "The body must be valid JSON.",
            id="broken JSON",
        ),
        pytest.param(
            {"data": {"paths": "a", "expand": "maybe"}},
            "expand must be true or false.",
            id="no boolean",
        ),
    ],
)
async def test_a_wrong_body_is_told_by_field(
    client: httpx2.AsyncClient, commit: str, requested: dict[str, Any], sentence: str
) -> None:
    response = await client.post(f"{PATH}/main", **requested)

    assert (response.status_code, response.json()) == (400, {"error": sentence})


async def test_an_unknown_revision_is_told_by_its_code(
    client: httpx2.AsyncClient, commit: str
) -> None:
    response = await client.post(f"{PATH}/nowhere", data={"paths": "a.txt"})

    assert (response.status_code, response.headers["x-error-code"]) == (404, "RevisionNotFound")
