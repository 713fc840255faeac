"""The inbox as it changes."""

import asyncio
import json
import socket
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any

import httpx2
import pytest
import uvicorn
from fastapi import FastAPI

from contract.checker import Contract
from hublet.app import with_edge
from hublet.core.database import Database, Reader, open_database
from hublet.core.http.server_protocol import ZeroCopyProtocol
from hublet.notifications.inbox import service as inbox
from hublet.notifications.inbox import store, stream
from hublet.notifications.inbox.paging import read_page
from hublet.notifications.messages.service import notify_in_inbox
from hublet.notifications.records import InboxItem, Involvement, MessageText, Selection
from hublet.tokens.records import TokenRole
from patience import SOON_SECONDS
from people import Headers, a_user, sign_in
from repositories import a_repo
from scratch_database import wait_until
from webhooks.event_streams import StreamClient, open_stream
from workers import drain

PATH = "/api/notifications/stream"


async def say(database: Database, name: str, *titles: str) -> None:
    """Put messages into an inbox, each in a commit of its own."""
    user = await a_user(database, name)
    for title in titles:
        async with database.transaction() as conn:
            await notify_in_inbox(conn, [user.id], MessageText(kind="test", title=title, body=""))


async def next_event(listener: StreamClient) -> tuple[str, Any, int]:
    """Return the next event: its name, its data, its id."""
    async with asyncio.timeout(SOON_SECONDS):
        while True:
            block = await listener.block()
            assert block is not None, "The stream has ended."
            if "event" in block:
                return block["event"], json.loads(block["data"]), int(block["id"])


async def events(listener: StreamClient, count: int) -> list[tuple[str, Any]]:
    """Return the next events; of an item only its title."""
    received = [await next_event(listener) for _ in range(count)]
    return [(name, data["post"]["title"] if "post" in data else data) for name, data, _ in received]


async def receives_nothing(listener: StreamClient) -> bool:
    try:
        return "event" not in (await listener.block(within=0.6) or {})
    except TimeoutError:
        return True


def count(unread: int, everything: int) -> tuple[str, Any]:
    return "count", {"unread": unread, "all": everything}


def items(*titles: str) -> list[tuple[str, Any]]:
    return [("notification", title) for title in titles]


async def test_at_the_start_the_counts_are_sent_and_nothing_of_before(
    app: FastAPI, database: Database, ada: Headers
) -> None:
    await say(database, "ada", "one", "two")
    async with open_stream(app, PATH, ada) as listener:
        first = await listener.block()
        second = await next_event(listener)
        assert await receives_nothing(listener)

    assert first == {"": "listening", "retry": "1000"}
    assert second[:2] == count(2, 2)
    assert listener.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert (listener.headers["cache-control"], listener.headers["x-accel-buffering"]) == (
        "no-store",
        "no",
    )


async def test_the_description_tells_of_the_stream(
    app: FastAPI, client: httpx2.AsyncClient, ada: Headers, contracts: dict[str, Contract]
) -> None:
    async with open_stream(app, PATH, ada) as listener:
        pass

    contracts["hub"].check(
        method="GET",
        path=PATH,
        status=listener.status,
        headers=listener.headers,
        body=b": listening",
    )


async def test_a_new_item_is_sent_as_the_list_shows_it(
    app: FastAPI, client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    async with open_stream(app, PATH, ada) as listener:
        assert (await next_event(listener))[:2] == count(0, 0)
        await say(database, "ada", "news")
        name, item, moment = await next_event(listener)
        assert (await next_event(listener))[:2] == count(1, 1)

    listed = (await client.get("/api/notifications", headers=ada)).json()
    assert (name, [item]) == ("notification", listed["notifications"])
    async with database.read() as conn:
        assert moment == await conn.fetch_value("SELECT updated_at FROM notifications")


async def test_an_item_that_comes_back_is_sent_again(
    app: FastAPI, client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    opened = await client.post(
        "/api/models/ada/engine/discussions",
        headers=ada,
        json={"title": "Talk", "description": "D"},
    )
    async with database.read() as conn:
        thread_id = await conn.fetch_value("SELECT id FROM threads")
    assert opened.status_code == 200
    user = await a_user(database, "ada")
    item = InboxItem(thread_id=thread_id, type="model", place_id=repo_id, event_id=None)

    async def deliver() -> None:
        async with database.transaction() as conn:
            await inbox.deliver(conn, item, {user.id: Involvement.watched})

    async with open_stream(app, PATH, ada) as listener:
        assert await events(listener, 1) == [count(0, 0)]
        await deliver()
        first = await next_event(listener)
        assert await events(listener, 1) == [count(1, 1)]
        async with database.transaction() as conn:
            await inbox.mark(conn, user.id, Selection(), read=True)
        assert await events(listener, 1) == [count(0, 1)]
        await deliver()
        second = await next_event(listener)
        assert await events(listener, 1) == [count(1, 1)]

    assert first[1]["discussion"]["title"] == second[1]["discussion"]["title"] == "Talk"
    assert first[2] < second[2]


async def test_marking_and_deleting_change_the_counts_only(
    app: FastAPI, client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await say(database, "ada", "one", "two")
    async with open_stream(app, PATH, ada) as listener:
        assert await events(listener, 1) == [count(2, 2)]
        await client.post("/api/notifications/mark-as-read?applyToAll=true", headers=ada, json={})
        assert await events(listener, 1) == [count(0, 2)]
        await client.delete("/api/notifications?applyToAll=true", headers=ada)
        assert await events(listener, 1) == [count(0, 0)]


async def test_other_inboxes_are_not_sent(app: FastAPI, database: Database, ada: Headers) -> None:
    async with open_stream(app, PATH, ada) as listener:
        assert await events(listener, 1) == [count(0, 0)]
        await say(database, "bob", "news")
        assert await receives_nothing(listener)


async def test_many_items_at_once_are_sent_in_order(
    app: FastAPI, database: Database, ada: Headers
) -> None:
    titles = [f"n{n}" for n in range(60)]
    user = await a_user(database, "ada")
    async with open_stream(app, PATH, ada) as listener:
        assert await events(listener, 1) == [count(0, 0)]
        async with database.transaction() as conn:
            for title in titles:
                await notify_in_inbox(
                    conn, [user.id], MessageText(kind="test", title=title, body="")
                )

        assert await events(listener, 61) == [*items(*titles), count(60, 60)]


async def test_who_comes_back_gets_what_was_missed_and_nothing_twice(
    app: FastAPI, database: Database, ada: Headers
) -> None:
    await say(database, "ada", "zero")
    async with open_stream(app, PATH, ada) as listener:
        await next_event(listener)
        await say(database, "ada", "one")
        last = await next_event(listener)
    missed = [f"n{n}" for n in range(30)]
    await say(database, "ada", *missed)

    async with open_stream(app, PATH, ada, since=str(last[2])) as listener:
        assert await events(listener, 31) == [*items(*missed), count(32, 32)]
        assert await receives_nothing(listener)


async def test_who_was_away_for_long_gets_the_newest(
    app: FastAPI, database: Database, ada: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "MOST_PAGES", 2)
    titles = [f"n{n}" for n in range(60)]
    await say(database, "ada", *titles)

    async with open_stream(app, PATH, ada, since="0") as listener:
        assert await events(listener, 51) == [*items(*titles[10:]), count(60, 60)]


async def test_a_moment_yet_to_come_is_no_reason_to_stay_silent_about_counts(
    app: FastAPI, database: Database, ada: Headers
) -> None:
    await say(database, "ada", "one")
    async with open_stream(app, PATH, ada, since="9" * 16) as listener:
        assert await events(listener, 1) == [count(1, 1)]


@pytest.mark.parametrize("since", ["x", "-1", "1" * 17])
async def test_a_position_of_somebodys_own_is_refused(
    client: httpx2.AsyncClient, ada: Headers, since: str
) -> None:
    response = await client.get(PATH, headers=ada | {"Last-Event-ID": since})

    assert (response.status_code, response.json()) == (
        400,
        {"error": "Last-Event-ID must match ^[0-9]{1,16}$."},
    )


async def test_a_stream_needs_a_full_token(
    app: FastAPI, client: httpx2.AsyncClient, database: Database
) -> None:
    reader = await sign_in(database, "ada", role=TokenRole.read)
    scoped = await sign_in(database, "ada", scopes=["read-repos"])
    async with open_stream(app, PATH, reader) as listener:
        assert listener.status == 200

    assert (await client.get(PATH, headers=scoped)).status_code == 403
    assert (await client.get(PATH)).status_code == 401


async def test_head_does_not_wait_for_an_end(app: FastAPI, ada: Headers) -> None:
    async with open_stream(app, PATH, ada, method="HEAD") as listener:
        assert await listener.block() is None
    assert listener.status == 200


async def test_silence_is_broken_now_and_then(
    app: FastAPI, ada: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "KEEP_ALIVE_SECONDS", 0.2)
    monkeypatch.setattr(stream, "CHECK_SECONDS", 0.1)
    async with open_stream(app, PATH, ada) as listener:
        await next_event(listener)
        assert [await listener.block(), await listener.block()] == [{"": "still listening"}] * 2


async def test_the_stream_ends_when_the_token_is_revoked(
    app: FastAPI,
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream, "CHECK_SECONDS", 0.2)
    token = ada["Authorization"].removeprefix("Bearer ")
    async with open_stream(app, PATH, ada) as listener:
        await next_event(listener)
        await client.post("/api/credentials/revoke", json={"credentials": [token]})
        await drain(database)

        assert await listener.ends()


async def test_nothing_is_sent_to_a_token_that_was_revoked(
    app: FastAPI, client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    token = ada["Authorization"].removeprefix("Bearer ")
    async with open_stream(app, PATH, ada) as listener:
        await next_event(listener)
        # The message about the revocation is the first thing that would be sent.
        await client.post("/api/credentials/revoke", json={"credentials": [token]})
        await drain(database)

        assert await asyncio.wait_for(listener.block(), SOON_SECONDS) is None


async def test_a_user_has_so_many_streams_and_no_more(
    app: FastAPI,
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stream, "MOST_STREAMS", 2)
    bob = await sign_in(database, "bob")
    async with AsyncExitStack() as opened:
        for headers in (ada, ada, bob):
            listener = await opened.enter_async_context(open_stream(app, PATH, headers))
            await next_event(listener)
        refused = await client.get(PATH, headers=ada)
    async with open_stream(app, PATH, ada) as again:
        await next_event(again)

    assert (refused.status_code, refused.json()) == (
        429,
        {
            "error": "You have 2 notification streams open, which is the most there may be: "
            "close one first."
        },
    )
    assert again.status == 200


async def test_all_streams_share_one_read_and_only_those_with_changes_wake(
    app: FastAPI, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"user{n}" for n in range(10)]
    looks: list[int] = []
    reads: list[str] = []
    versions_of = store.versions_of

    async def counted(conn: Reader, user_ids: Sequence[str]) -> dict[str, int]:
        looks.append(len(user_ids))
        return await versions_of(conn, user_ids)

    async def noted(database: Database, user_id: str, *rest: Any, **more: Any) -> Any:
        reads.append(user_id)
        return await read_page(database, user_id, *rest, **more)

    monkeypatch.setattr(store, "versions_of", counted)
    monkeypatch.setattr(stream, "read_page", noted)
    async with AsyncExitStack() as opened:
        listeners = {}
        for name in names:
            await say(database, name, "before")
            headers = await sign_in(database, name)
            listeners[name] = await opened.enter_async_context(open_stream(app, PATH, headers))
            assert await events(listeners[name], 1) == [count(1, 1)]
        # With the first look after they came, everybody is woken once.
        await say(database, "user0", "warm")
        assert await events(listeners["user0"], 2) == [*items("warm"), count(2, 2)]
        await asyncio.sleep(0.3)
        looks.clear()
        reads.clear()
        await say(database, "user3", *(f"n{n}" for n in range(20)))
        for n in range(20):
            received = await next_event(listeners["user3"])
            while received[0] == "count":
                received = await next_event(listeners["user3"])
            assert received[1]["post"]["title"] == f"n{n}"
        user = await a_user(database, "user3")

    assert set(looks) == {10}
    assert len(looks) <= 20
    assert set(reads) == {user.id}


async def test_nobody_looks_when_nobody_listens(
    app: FastAPI, database: Database, ada: Headers
) -> None:
    watching = app.state.inbox_watcher
    async with open_stream(app, PATH, ada) as listener:
        await next_event(listener)
        first = watching._watching  # noqa: SLF001 - nothing else shows it
        assert not first.done()
    await wait_until(lambda: _is_done(first))
    async with open_stream(app, PATH, ada) as listener:
        assert await events(listener, 1) == [count(0, 0)]
        await say(database, "ada", "news")
        assert await events(listener, 2) == [*items("news"), count(1, 1)]


async def _is_done(task: asyncio.Task[None]) -> bool:
    return task.done()


async def test_what_another_process_commits_is_sent(
    app: FastAPI, database: Database, ada: Headers
) -> None:
    async with (
        open_stream(app, PATH, ada) as listener,
        open_database(database.hub) as other,
    ):
        assert await events(listener, 1) == [count(0, 0)]
        await say(other, "ada", "news")

        assert await events(listener, 2) == [*items("news"), count(1, 1)]


async def test_what_may_not_be_seen_any_more_is_not_told(
    app: FastAPI, client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    repo_id = await a_repo(client, bob, "bob/secret", private=True)
    await client.post(
        "/api/models/bob/secret/discussions",
        headers=bob,
        json={"title": "Talk", "description": "D"},
    )
    async with database.read() as conn:
        thread_id = await conn.fetch_value("SELECT id FROM threads")
    user = await a_user(database, "ada")
    async with open_stream(app, PATH, ada) as listener:
        assert await events(listener, 1) == [count(0, 0)]
        async with database.transaction() as conn:
            item = InboxItem(thread_id=thread_id, type="model", place_id=repo_id, event_id=None)
            await inbox.deliver(conn, item, {user.id: Involvement.watched})

        assert await receives_nothing(listener)


async def test_a_hub_that_stops_ends_the_stream_and_needs_not_wait(
    app: FastAPI, database: Database, ada: Headers
) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        config = uvicorn.Config(
            with_edge(app), http=ZeroCopyProtocol, lifespan="off", log_config=None
        )
        server = uvicorn.Server(config)
        running = asyncio.ensure_future(server.serve(sockets=[listener]))
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        try:
            async with (
                asyncio.timeout(SOON_SECONDS),
                httpx2.AsyncClient(base_url=address, trust_env=False) as client,
                client.stream("GET", PATH, headers=ada) as response,
            ):
                lines = response.aiter_lines()
                assert await anext(lines) == ": listening"
                await say(database, "ada", "news")
                while not (await anext(lines)).startswith("event: notification"):
                    pass
                server.should_exit = True
                with suppress(StopAsyncIteration):
                    while True:
                        await anext(lines)
        finally:
            server.should_exit = True
            await asyncio.wait_for(running, SOON_SECONDS)
