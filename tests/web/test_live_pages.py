"""Live pages: the stream of a page says how much is unread, and its content's changes beside."""

import asyncio

import httpx2
import pytest
from fastapi import FastAPI

from community.discussions import PATH
from hublet.core.database import Database
from hublet.login import sessions
from login.login_pages import a_person, log_in
from patience import SOON_SECONDS
from people import Headers, sign_in
from repositories import a_repo
from web.parsed_pages import HTML
from web.thread_scenes import PAGES, a_thread
from webhooks.event_streams import StreamClient, open_stream
from workers import drain


async def next_event(listener: StreamClient, name: str) -> str:
    """Return the data of the next event of this name."""
    async with asyncio.timeout(SOON_SECONDS):
        while True:
            block = await listener.block()
            assert block is not None, "The stream has ended."
            if block.get("event") == name:
                return block["data"]


@pytest.fixture
async def bob(database: Database) -> Headers:
    return await sign_in(database, "bob")


@pytest.fixture
async def cookies(client: httpx2.AsyncClient, database: Database) -> Headers:
    """The cookies of ada's browser, as a stream sends them."""
    await a_person(database)
    await a_repo(client, await sign_in(database, "ada"), "ada/engine")
    await log_in(client)
    return {"Cookie": "; ".join(f"{name}={value}" for name, value in client.cookies.items())}


async def test_a_page_hears_how_much_is_unread_at_once_and_with_every_change(
    client: httpx2.AsyncClient, app: FastAPI, database: Database, cookies: Headers, bob: Headers
) -> None:
    async with open_stream(app, "/live", cookies) as listener:
        assert await next_event(listener, "unread") == "0"
        await a_thread(client, bob)
        await drain(database)
        assert await next_event(listener, "unread") == "1"


async def test_a_page_with_content_hears_both(
    client: httpx2.AsyncClient, app: FastAPI, database: Database, cookies: Headers, bob: Headers
) -> None:
    await a_thread(client, bob)
    await drain(database)
    async with open_stream(app, f"{PAGES}/1/events", cookies, since="7") as listener:
        assert await next_event(listener, "changed") == ""
        assert await next_event(listener, "unread") == "1"
        await client.post(f"{PATH}/1/comment", headers=bob, json={"comment": "More."})
        assert await next_event(listener, "changed") == ""


async def test_every_page_of_who_is_signed_in_has_a_stream(
    client: httpx2.AsyncClient, cookies: Headers
) -> None:
    page = await client.get("/models", headers=HTML)
    assert 'data-live="/live"' in page.text
    client.cookies.clear()
    page = await client.get("/models", headers=HTML)
    assert "data-live" not in page.text


async def test_who_is_not_signed_in_has_nothing_unread(client: httpx2.AsyncClient) -> None:
    response = await client.get("/live", headers=HTML)
    assert response.status_code == 303
    assert response.headers["location"].startswith("/login")


async def test_a_stream_ends_with_its_session(
    client: httpx2.AsyncClient, app: FastAPI, database: Database, cookies: Headers, bob: Headers
) -> None:
    async with open_stream(app, "/live", cookies) as listener:
        await next_event(listener, "unread")
        async with database.transaction() as conn:
            (session,) = await sessions.list_of(conn, await user_id_of(client, bob, "ada"))
            await sessions.drop(conn, session)
        await a_thread(client, bob)
        await drain(database)
        async with asyncio.timeout(SOON_SECONDS):
            while (block := await listener.block()) is not None:
                assert "event" not in block


async def user_id_of(client: httpx2.AsyncClient, headers: Headers, name: str) -> str:
    response = await client.get(f"/api/users/{name}/overview", headers=headers)
    return str(response.json()["_id"])
