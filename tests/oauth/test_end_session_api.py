"""`/oauth/logout`: an app signs a person out, and gets them back only where it may."""

from datetime import timedelta

import httpx2
import pytest

from hublet.core.clock import now
from hublet.core.database import Database
from hublet.login.records import Session
from hublet.oauth.id_tokens import issue_id_token
from hublet.tokens.records import Scope
from oauth.browser_flows import CALLBACK, an_app, hidden_fields, signed_in

PATH = "/oauth/logout"
GOODBYE = "https://app.example/goodbye"


async def an_id_token(
    database: Database, session: Session, *, client_id: str = "loom", of_session: bool = True
) -> str:
    app = await an_app(database, client_id=client_id, redirect_uris=[CALLBACK, GOODBYE])
    return await issue_id_token(
        database,
        app=app,
        user_id=session.user_id,
        scopes=frozenset({Scope.openid}),
        organization_ids=[],
        nonce=None,
        authenticated_at=now() - timedelta(days=3),
        access_token="hf_oauth_x",
        session_id=session.id if of_session else None,
    )


async def is_signed_in(client: httpx2.AsyncClient) -> bool:
    page = await client.get("/settings/sessions")
    return page.status_code == 200


async def test_who_shows_the_id_token_of_the_session_is_signed_out_at_once(
    client: httpx2.AsyncClient, database: Database
) -> None:
    session = await signed_in(client, database)
    hint = await an_id_token(database, session)

    response = await client.get(
        PATH,
        params={
            "id_token_hint": hint,
            "post_logout_redirect_uri": GOODBYE,
            "state": "s 1",
        },
    )

    assert response.status_code == 303
    assert response.headers["location"] == f"{GOODBYE}?state=s%201"
    assert not await is_signed_in(client)


async def test_without_an_id_token_a_button_asks_first(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await signed_in(client, database)
    await an_app(database, redirect_uris=[GOODBYE])

    asked = {"client_id": "loom", "post_logout_redirect_uri": GOODBYE}
    page = await client.get(PATH, params=asked)
    still = await is_signed_in(client)
    response = await client.post(PATH, data=hidden_fields(page, PATH))

    assert page.status_code == 200
    assert "Sign out ada" in page.text
    assert still
    assert response.status_code == 303
    assert response.headers["location"] == GOODBYE
    assert not await is_signed_in(client)


@pytest.mark.parametrize(
    "target",
    [
        pytest.param("https://evil.example/", id="another host"),
        pytest.param(f"{GOODBYE}/more", id="another path"),
        pytest.param("javascript:alert(1)", id="a script"),
    ],
)
async def test_nobody_is_sent_where_the_app_did_not_register(
    client: httpx2.AsyncClient, database: Database, target: str
) -> None:
    session = await signed_in(client, database)
    hint = await an_id_token(database, session)

    response = await client.get(
        PATH, params={"id_token_hint": hint, "post_logout_redirect_uri": target}
    )

    assert response.status_code == 200
    assert "location" not in response.headers
    assert "You are signed out" in response.text


async def test_the_id_token_of_somebody_else_is_asked_about(
    client: httpx2.AsyncClient, database: Database
) -> None:
    other = await signed_in(client, database, "grace")
    hint = await an_id_token(database, other)
    await signed_in(client, database, "ada")

    response = await client.get(PATH, params={"id_token_hint": hint})

    assert "Sign out ada" in response.text
    assert await is_signed_in(client)


async def test_the_id_token_of_another_session_is_asked_about(
    client: httpx2.AsyncClient, database: Database
) -> None:
    hint = await an_id_token(database, await signed_in(client, database))
    await signed_in(client, database)

    await client.get(PATH, params={"id_token_hint": hint})

    assert await is_signed_in(client)


async def test_an_id_token_that_names_no_session_stands_for_its_user(
    client: httpx2.AsyncClient, database: Database
) -> None:
    session = await signed_in(client, database)
    hint = await an_id_token(database, session, of_session=False)

    await client.get(PATH, params={"id_token_hint": hint})

    assert not await is_signed_in(client)


@pytest.mark.parametrize(
    "hint",
    [
        pytest.param("x", id="no token"),
        pytest.param("e30.e30.e30", id="an empty one"),
        pytest.param("eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZGEifQ.", id="an unsigned one"),
        pytest.param("é" * 10, id="not ASCII"),
        pytest.param("a." * 10_000, id="a long one"),
    ],
)
async def test_a_broken_hint_is_no_hint(
    client: httpx2.AsyncClient, database: Database, hint: str
) -> None:
    await signed_in(client, database)

    response = await client.post(PATH, data={"id_token_hint": hint})

    assert response.status_code == 200
    assert "Sign out ada" in response.text
    assert await is_signed_in(client)


async def test_a_changed_token_is_no_hint(client: httpx2.AsyncClient, database: Database) -> None:
    session = await signed_in(client, database)
    hint = await an_id_token(database, session)
    head, claims, signature = hint.split(".")

    await client.get(PATH, params={"id_token_hint": f"{head}.{claims}.{signature[::-1]}"})

    assert await is_signed_in(client)


async def test_a_client_id_that_is_not_the_tokens_leads_nowhere(
    client: httpx2.AsyncClient, database: Database
) -> None:
    session = await signed_in(client, database)
    hint = await an_id_token(database, session)

    response = await client.get(
        PATH,
        params={
            "id_token_hint": hint,
            "client_id": "another",
            "post_logout_redirect_uri": GOODBYE,
        },
    )

    assert "location" not in response.headers


async def test_a_form_of_another_site_signs_nobody_out(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await signed_in(client, database)

    response = await client.post(PATH, data={"form_token": "x"})

    assert response.status_code == 403
    assert await is_signed_in(client)


async def test_who_is_not_signed_in_is_told_so(client: httpx2.AsyncClient) -> None:
    response = await client.get(PATH)

    assert response.status_code == 200
    assert "You are signed out" in response.text
