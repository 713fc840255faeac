"""Who calls when git does: the token as a password, as a user name, or as a bearer token."""

from base64 import b64encode
from collections.abc import AsyncIterator

import httpx2
import pytest
from fastapi import FastAPI

from hublet.app import with_edge
from hublet.core.database import Database
from hublet.tokens.auth import GitCaller
from people import a_token

CHALLENGE = 'Basic realm="hublet"'


@pytest.fixture
async def asking(app: FastAPI) -> AsyncIterator[httpx2.AsyncClient]:
    """Speaks to the hub with one more route, which tells who calls."""

    @app.get("/api/who")
    async def tell_who_calls(caller: GitCaller) -> str | None:
        return None if caller is None else caller.user_name

    transport = httpx2.ASGITransport(app=with_edge(app))
    async with httpx2.AsyncClient(transport=transport, base_url="http://hub.test") as client:
        yield client


def basic(user: str, password: str) -> str:
    return f"Basic {b64encode(f'{user}:{password}'.encode()).decode()}"


async def test_a_token_is_taken_in_every_way_that_git_can_send_it(
    asking: httpx2.AsyncClient, database: Database
) -> None:
    token = await a_token(database, "ada")
    ways = {
        "bearer": f"Bearer {token}",
        "as the password of its owner": basic("ada", token),
        "as the password of anybody": basic("git", token),
        "as the password of nobody": basic("", token),
        "as the user, without a password": basic(token, ""),
        "in lower case": basic("ada", token).replace("Basic", "basic"),
    }

    told = {
        way: (await asking.get("/api/who", headers={"Authorization": header})).json()
        for way, header in ways.items()
    }

    assert told == dict.fromkeys(ways, "ada")


async def test_nobody_calls_without_a_token(asking: httpx2.AsyncClient) -> None:
    assert (await asking.get("/api/who")).json() is None


@pytest.mark.parametrize(
    "header",
    [
        pytest.param(basic("ada", "hf_wrong"), id="a password that is no token"),
        pytest.param(basic("", ""), id="neither user nor password"),
        pytest.param("Bearer hf_wrong", id="a bearer that is no token"),
        pytest.param("Basic ***", id="not base64"),
        pytest.param("Basic /w==", id="not UTF-8"),
        pytest.param("Digest username=ada", id="another scheme"),
    ],
)
async def test_a_wrong_token_is_refused_so_that_git_asks_again(
    asking: httpx2.AsyncClient, header: str
) -> None:
    response = await asking.get("/api/who", headers={"Authorization": header})

    assert response.status_code == 401
    assert response.headers["www-authenticate"] == CHALLENGE
    assert response.json() == {"error": "Invalid credentials in Authorization header"}


async def test_a_token_with_a_wrong_password_behind_it_is_refused(
    asking: httpx2.AsyncClient, database: Database
) -> None:
    token = await a_token(database, "ada")

    response = await asking.get("/api/who", headers={"Authorization": basic(token, "wrong")})

    assert response.status_code == 401
