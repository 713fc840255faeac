"""Downloads by the session of a browser: the pictures of a private README, and nothing else."""

import httpx2
import pytest

from hublet.core.database import Database
from login.login_pages import a_person, log_in
from people import Headers, sign_in
from repositories import a_push, a_repo

FILE = "/ada/secret/resolve/main/picture.png"


@pytest.fixture
async def private(client: httpx2.AsyncClient, database: Database) -> Headers:
    await a_person(database, "ada")
    headers = await sign_in(database, "ada")
    repo_id = await a_repo(client, headers, "ada/secret", private=True)
    await a_push(database, repo_id, {"picture.png": b"PNG"})
    return headers


@pytest.mark.usefixtures("private")
@pytest.mark.parametrize("path", [FILE, FILE.replace("resolve", "raw")])
async def test_the_owner_sees_a_private_picture_in_the_browser(
    client: httpx2.AsyncClient, path: str
) -> None:
    assert (await client.get(path)).status_code == 404
    await log_in(client, "ada")

    response = await client.get(path)
    head = await client.head(path)

    assert (response.status_code, response.content) == (200, b"PNG")
    assert head.status_code == 200
    assert response.headers["content-security-policy"].startswith("default-src 'none'")
    assert response.headers["cache-control"] == "private, no-cache"


@pytest.mark.usefixtures("private")
async def test_a_stranger_with_a_session_sees_nothing(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await a_person(database, "grace")
    await log_in(client, "grace")

    assert (await client.get(FILE)).status_code == 404


async def test_a_token_counts_more_than_the_session(
    client: httpx2.AsyncClient, database: Database, private: Headers
) -> None:
    await a_person(database, "grace")
    await log_in(client, "grace")

    assert (await client.get(FILE, headers=private)).status_code == 200


@pytest.mark.usefixtures("private")
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/models/ada/secret"),
        ("GET", "/api/resolve-cache/models/ada/secret/main/picture.png"),
        ("GET", "/api/whoami-v2"),
        ("POST", "/ada/secret/git-upload-pack"),
        ("GET", "/ada/secret/info/refs?service=git-upload-pack"),
    ],
)
async def test_nothing_else_takes_the_cookie(
    client: httpx2.AsyncClient, method: str, path: str
) -> None:
    await log_in(client, "ada")

    assert (await client.request(method, path)).status_code in {401, 404}
