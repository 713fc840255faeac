"""The stream of a thread: it says that something changed, and nothing else."""

import asyncio
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from community.discussions import PATH, commit, post_commit
from hublet.community.threads import store
from hublet.core import outbox
from hublet.core.database import Database, Reader
from hublet.web import live
from hublet.web.live import LiveKind
from hublet.web.threads import editor_routes
from patience import SOON_SECONDS
from people import Headers, sign_in
from repositories import a_repo
from web.thread_scenes import PAGES, a_thread, open_page
from webhooks.event_streams import StreamClient, open_stream


@pytest.fixture
async def repo_id(client: httpx2.AsyncClient, ada: Headers) -> str:
    return await a_repo(client, ada, "ada/engine")


async def version_of(client: httpx2.AsyncClient, path: str) -> int:
    page = await open_page(client, path)
    return int(page.one("body").attributes["data-live"].partition("since=")[2])


async def next_version(listener: StreamClient) -> int:
    async with asyncio.timeout(SOON_SECONDS):
        while True:
            block = await listener.block()
            assert block is not None, "The stream has ended."
            if block.get("event") == "changed":
                assert block["data"] == ""
                return int(block["id"])


async def test_every_change_of_a_thread_is_said_once(
    client: httpx2.AsyncClient, app: FastAPI, repo_id: str, ada: Headers
) -> None:
    thread = await a_thread(client, ada)
    since = await version_of(client, thread)
    comment = (await client.get(f"{PATH}/1")).json()["events"][0]["id"]
    changes: list[tuple[str, dict[str, Any]]] = [
        (f"{PATH}/1/comment", {"comment": "More."}),
        (f"{PATH}/1/comment/{comment}/edit", {"content": "Other."}),
        (f"{PATH}/1/comment/{comment}/reactions/heart", {}),
        (f"{PATH}/1/title", {"title": "Another title"}),
        (f"{PATH}/1/comment/{comment}/hide", {}),
    ]
    async with open_stream(app, f"{thread}/events", {}, since=str(since)) as listener:
        for path, body in changes:
            response = await client.post(path, headers=ada, json=body)
            assert response.status_code == 200, response.text
            since, before = await next_version(listener), since
            assert since != before
    assert since == await version_of(client, thread)


async def test_a_push_to_the_base_changes_what_a_pull_request_shows(
    client: httpx2.AsyncClient, app: FastAPI, database: Database, repo_id: str, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    await post_commit(client, bob, {"a.txt": "a"}, summary="Add", create_pr="1")
    since = await version_of(client, f"{PAGES}/1")
    async with open_stream(app, f"{PAGES}/1/events", {}, since=str(since)) as listener:
        await commit(client, ada, {"a.txt": "b"})

        assert await next_version(listener) != since


async def test_a_page_that_is_behind_is_told_at_once_and_another_is_not(
    client: httpx2.AsyncClient, app: FastAPI, repo_id: str, ada: Headers
) -> None:
    thread = await a_thread(client, ada)
    version = await version_of(client, thread)

    async with open_stream(app, f"{thread}/events", {}, since="7") as behind:
        assert await next_version(behind) == version
    async with open_stream(app, f"{thread}/events", {}, since=str(version)) as listener:
        await client.post(f"{PATH}/1/comment", headers=ada, json={"comment": "More."})
        assert await next_version(listener) != version


async def test_all_open_pages_share_one_statement(
    client: httpx2.AsyncClient,
    app: FastAPI,
    repo_id: str,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads = [await a_thread(client, ada) for _ in range(3)]
    since = [await version_of(client, thread) for thread in threads]
    asked: list[int] = []

    async def counted(conn: Reader, keys: Any) -> dict[str, int]:
        asked.append(len(keys))
        return await store.versions_of(conn, keys)

    counting = LiveKind(channel=outbox.CHANNEL, read_versions=counted)
    monkeypatch.setattr(editor_routes, "THREAD_CONTENT", counting)
    streams = [
        open_stream(app, f"{thread}/events", {}, since=str(version))
        for thread, version in zip(threads, since, strict=True)
    ]
    async with streams[0] as first, streams[1], streams[2]:
        await client.post(f"{PATH}/1/comment", headers=ada, json={"comment": "More."})
        await next_version(first)

    assert 3 in asked
    # Each page once when it was opened, then the watcher, then the page that changed.
    assert sum(count == 1 for count in asked) <= 4 + len(threads)


async def test_a_viewer_has_so_many_streams_and_no_more(
    client: httpx2.AsyncClient,
    app: FastAPI,
    repo_id: str,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live, "MOST_STREAMS", 1)
    thread = await a_thread(client, ada)

    async with open_stream(app, f"{thread}/events", {}) as first:
        await next_version(first)
        async with open_stream(app, f"{thread}/events", {}) as second:
            assert second.status == 429
    async with open_stream(app, f"{thread}/events", {}) as again:
        assert again.status == 200


async def test_a_stream_ends_when_its_viewer_may_not_see_the_thread_any_more(
    client: httpx2.AsyncClient, app: FastAPI, repo_id: str, ada: Headers
) -> None:
    thread = await a_thread(client, ada)
    since = await version_of(client, thread)

    async with open_stream(app, f"{thread}/events", {}, since=str(since)) as listener:
        settings = "/api/models/ada/engine/settings"
        await client.put(settings, headers=ada, json={"private": True})
        await client.post(f"{PATH}/1/comment", headers=ada, json={"comment": "A secret."})
        async with asyncio.timeout(SOON_SECONDS):
            while (block := await listener.block()) is not None:
                assert "event" not in block
