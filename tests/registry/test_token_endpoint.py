"""The token protocol of Docker, as the tools speak it."""

from base64 import b64encode
from urllib.parse import urlencode

import httpx2
import pytest

from hublet.core.database import Database
from people import Headers, a_token, sign_in

PATH = "/api/registry/token"
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def basic(user: str, password: str) -> Headers:
    value = b64encode(f"{user}:{password}".encode()).decode()
    return {"Authorization": f"Basic {value}"}


async def test_a_user_gets_a_token_with_a_token_of_the_hub_as_the_password(
    client: httpx2.AsyncClient, database: Database
) -> None:
    value = await a_token(database, "ada")
    query = {"account": "ada", "service": "hub.test", "scope": "repository:ada/tool:pull,push"}

    response = await client.get(PATH, params=query, headers=basic("ada", value))

    assert response.status_code == 200
    answer = response.json()
    assert set(answer) == {"token", "access_token", "expires_in", "issued_at"}
    assert answer["token"] == answer["access_token"]
    assert answer["expires_in"] == 3600
    assert value not in answer["token"]


async def test_login_of_docker_gets_no_refresh_token(
    client: httpx2.AsyncClient, database: Database
) -> None:
    value = await a_token(database, "ada")
    query = {
        "account": "ada",
        "client_id": "docker",
        "offline_token": "true",
        "service": "hub.test",
    }

    response = await client.get(PATH, params=query, headers=basic("ada", value))

    assert response.status_code == 200
    assert "refresh_token" not in response.json()


@pytest.mark.parametrize("password", ["", "hf_unknown", "a password", "ä" * 3000])
async def test_wrong_credentials_are_refused(client: httpx2.AsyncClient, password: str) -> None:
    response = await client.get(PATH, headers=basic("ada", password))

    assert response.status_code == 401
    assert response.json()["errors"][0]["code"] == "UNAUTHORIZED"
    assert "not a token of this hub" in response.json()["error"]


@pytest.mark.parametrize("header", ["Basic ?", "Basic", "Digest x", "Bearer", "Basic /w=="])
async def test_a_header_that_is_no_credential_is_refused(
    client: httpx2.AsyncClient, header: str
) -> None:
    response = await client.get(PATH, headers={"Authorization": header})

    assert response.status_code == 401


async def test_nobody_gets_a_token_for_what_is_public(client: httpx2.AsyncClient) -> None:
    response = await client.get(PATH, params={"scope": "repository:ada/tool:pull"})

    assert response.status_code == 200


@pytest.mark.parametrize(
    "scope",
    [
        "",
        "registry:catalog:*",
        "repository:ada/tool:*",
        "repository:Ada:pull",
        "repository",
        "::::",
    ],
)
async def test_what_the_hub_does_not_know_is_no_error(
    client: httpx2.AsyncClient, ada: Headers, scope: str
) -> None:
    response = await client.get(PATH, params={"scope": scope}, headers=ada)

    assert response.status_code == 200


async def test_a_token_is_for_few_repositories(client: httpx2.AsyncClient) -> None:
    scope = " ".join(f"repository:ada/tool-{number}:pull" for number in range(51))

    response = await client.get(PATH, params={"scope": scope})

    assert response.status_code == 400
    assert response.json() == {"error": "scope names at most 50 repositories."}


async def test_containerd_sends_a_form(client: httpx2.AsyncClient, database: Database) -> None:
    form = {
        "grant_type": "password",
        "username": "ada",
        "password": await a_token(database, "ada"),
        "client_id": "containerd-client",
        "scope": "repository:ada/new:pull,push repository:ada/old:pull",
    }

    response = await client.post(PATH, content=urlencode(form), headers=FORM)

    assert response.status_code == 200


async def test_a_form_may_come_in_chunks_without_a_length(
    client: httpx2.AsyncClient, database: Database
) -> None:
    form = urlencode({"grant_type": "password", "password": await a_token(database, "ada")})

    async def pieces():  # noqa: ANN202 - a body
        for letter in form:
            yield letter.encode()

    response = await client.post(PATH, content=pieces(), headers=FORM)

    assert response.status_code == 200


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        (b"", "grant_type must be password."),
        (b"grant_type=code", "grant_type must be password."),
        (b"grant_type=refresh_token&refresh_token=x", "this hub gives no refresh tokens"),
        (b"\xff", "The body must be a form in UTF-8 with at most 100 fields."),
        (b"a=b&" * 101, "The body must be a form in UTF-8 with at most 100 fields."),
    ],
)
async def test_a_form_that_makes_no_sense_is_refused(
    client: httpx2.AsyncClient, form: bytes, sentence: str
) -> None:
    response = await client.post(PATH, content=form, headers=FORM)

    assert response.status_code == 400
    assert sentence in response.json()["error"]


async def test_a_form_with_a_wrong_password_is_refused(client: httpx2.AsyncClient) -> None:
    response = await client.post(
        PATH, content=b"grant_type=password&username=ada&password=x", headers=FORM
    )

    assert response.status_code == 401


async def test_a_revoked_token_of_the_hub_gives_none(
    client: httpx2.AsyncClient, database: Database
) -> None:
    headers = await sign_in(database, "ada")
    own = (await client.get("/api/settings/tokens", headers=headers)).json()
    await client.delete(f"/api/settings/tokens/{own[0]['id']}", headers=headers)

    response = await client.get(PATH, headers=headers)

    assert response.status_code == 401
