"""How buckets and containers are followed: what changes, from where on, and by whom."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from hublet.core import clock
from hublet.core.database import Database
from hublet.core.errors import NotAllowed
from hublet.repos.files import changes
from patience import SOON_SECONDS
from people import Headers, sign_in
from registry.images import digest_of, push_image
from repos.test_packs_store import a_node
from repositories import a_repo, disable

BOX = "/api/buckets/ada/box"


@pytest.fixture
async def box(client: httpx2.AsyncClient, ada: Headers) -> str:
    """The id of an empty private bucket."""
    return await a_repo(client, ada, "ada/box", type="bucket", private=True)


@dataclass
class Listener:
    """The reader of a stream, as the public client reads it."""

    events: AsyncIterator[str]
    stopping: asyncio.Event
    cursor: str | None = None

    async def hear(self) -> tuple[str, Any]:
        """Return the next event, and what it says."""
        async with asyncio.timeout(SOON_SECONDS):
            event, data, *_ = (await anext(self.events)).split("\n")
        told = json.loads(data.removeprefix("data: "))
        self.cursor = told.get("cursor", self.cursor)
        return event.removeprefix("event: "), told

    async def hear_changes(self) -> list[tuple[str, str]]:
        event, told = await self.hear()
        assert event == "changes"
        return [(each["op"], each["path"]) for each in told["changes"]]


async def _allowed() -> None:
    pass


@asynccontextmanager
async def listening(
    database: Database, repo_id: str, position: int | None = None, check: Any = _allowed
) -> AsyncIterator[Listener]:
    stopping = asyncio.Event()
    stream = changes.stream_changes(
        database, repo_id, position, check_access=check, stopping=stopping
    )
    try:
        yield Listener(stream, stopping)
    finally:
        await stream.aclose()


async def put(client: httpx2.AsyncClient, who: Headers, path: str, content: bytes = b"a") -> None:
    response = await client.put(f"{BOX}/files/{path}", headers=who, content=content)
    assert response.status_code == 200, response.text


async def test_files_that_come_change_and_go_are_told(
    client: httpx2.AsyncClient, database: Database, ada: Headers, box: str
) -> None:
    async with listening(database, box) as listener:
        assert (await listener.hear())[0] == "ready"
        await put(client, ada, "a.txt", b"one")
        event, told = await listener.hear()
        assert event == "changes"
        [change] = told["changes"]
        assert change.keys() >= {"path", "op", "size", "uploadedAt", "mtime"}
        assert (change["op"], change["path"], change["size"]) == ("add", "a.txt", 3)
        await put(client, ada, "a.txt", b"three")
        assert await listener.hear_changes() == [("update", "a.txt")]
        await client.delete(f"{BOX}/files/a.txt", headers=ada)
        assert await listener.hear_changes() == [("delete", "a.txt")]


async def test_a_client_that_was_cut_off_goes_on_after_what_it_heard(
    client: httpx2.AsyncClient, database: Database, ada: Headers, box: str
) -> None:
    async with listening(database, box) as listener:
        await listener.hear()
        await put(client, ada, "heard.txt")
        await listener.hear_changes()
    assert listener.cursor is not None
    for number in range(3):
        await put(client, ada, f"{number}.txt")

    async with listening(database, box, int(listener.cursor)) as again:
        assert [await again.hear_changes() for _ in range(3)] == [
            [("add", f"{number}.txt")] for number in range(3)
        ]
        assert (await again.hear())[0] == "ready"


async def test_the_time_of_the_last_change_is_enough_to_begin_and_an_earlier_one_is_not(
    client: httpx2.AsyncClient, database: Database, ada: Headers, box: str
) -> None:
    await put(client, ada, "a.txt")
    shown = (await client.get(BOX, headers=ada)).json()["updatedAt"]
    since = clock.to_micros(clock.datetime.fromisoformat(shown))
    async with listening(database, box, since - 1000) as late:
        assert (await late.hear())[0] == "reset"
    async with listening(database, box, since) as listener:
        assert (await listener.hear())[0] == "ready"


async def test_changes_are_kept_for_a_quarter_of_an_hour(
    client: httpx2.AsyncClient, database: Database, ada: Headers, box: str
) -> None:
    async with listening(database, box) as listener:
        await listener.hear()
    assert listener.cursor is not None
    await put(client, ada, "a.txt")
    clock.move(timedelta(minutes=16))
    try:
        async with listening(database, box, int(listener.cursor)) as late:
            assert (await late.hear())[0] == "reset"
    finally:
        clock.reset()


async def noted(database: Database) -> int:
    async with database.read() as conn:
        count: int = await conn.fetch_value("SELECT count(*) FROM facts WHERE name LIKE '%files %'")
    return count


async def test_nothing_is_noted_where_nobody_listens_and_forgotten_when_nobody_does_any_more(
    client: httpx2.AsyncClient, database: Database, ada: Headers, box: str
) -> None:
    await put(client, ada, "a.txt")
    assert await noted(database) == 0
    async with listening(database, box) as listener:
        await listener.hear()
    await put(client, ada, "b.txt")
    assert await noted(database) == 2
    clock.move(timedelta(minutes=31))
    try:
        async with database.transaction() as conn:
            await changes.forget_changes(conn)
    finally:
        clock.reset()
    assert await noted(database) == 0


async def test_the_hub_says_goodbye_with_the_place_to_go_on_from(
    database: Database, box: str
) -> None:
    async with listening(database, box) as listener:
        _, ready = await listener.hear()
        listener.stopping.set()
        assert await listener.hear() == ("reconnect", ready)


async def test_whoever_may_not_read_any_more_hears_of_no_change(
    client: httpx2.AsyncClient, database: Database, ada: Headers, box: str
) -> None:
    async def refuse() -> None:
        raise NotAllowed("No.")

    async with listening(database, box, check=refuse) as listener:
        await listener.hear()
        await put(client, ada, "a.txt")
        with pytest.raises(NotAllowed):
            await listener.hear()


async def test_a_change_at_one_node_is_heard_at_another(
    database: Database, ada: Headers, box: str, tmp_path: Any
) -> None:
    async with (
        a_node(database, tmp_path / "other", ada) as other,
        listening(other.database, box) as listener,
    ):
        await listener.hear()
        async with a_node(database, tmp_path / "third", ada) as third:
            await put(third.client, ada, "a.txt")
            assert await listener.hear_changes() == [("add", "a.txt")]


async def test_pushes_and_deletions_of_images_are_told(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/tool", type="container")
    async with listening(database, repo_id) as listener:
        await listener.hear()
        manifest = await push_image(client, ada, b"layer", tag="1")
        told = list[tuple[str, str]]()
        while ("add", "manifests/_tags/1") not in told:
            told += await listener.hear_changes()
        assert ("add", f"blobs/{digest_of(b'layer').replace(':', '/')}") in told
        await client.delete(f"/v2/ada/tool/manifests/{digest_of(manifest)}", headers=ada)
        assert ("delete", "manifests/_tags/1") in await listener.hear_changes()


@pytest.mark.parametrize("kind", ["bucket", "container"])
async def test_the_stream_is_for_readers_and_ends_with_the_right_to_read(
    client: httpx2.AsyncClient, database: Database, ada: Headers, kind: str
) -> None:
    await a_repo(client, ada, "ada/hidden", type=kind, private=True)
    path = f"/api/{kind}s/ada/hidden/events"
    bob = await sign_in(database, "bob")
    for stranger in ({}, bob):
        assert (await client.get(path, headers=stranger)).status_code == 404

    async with asyncio.timeout(SOON_SECONDS):
        following = asyncio.create_task(client.get(path, headers=ada))
        while not await noted(database):
            await asyncio.sleep(0.01)
        await disable(database, "ada")
        response = await following

    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.text.startswith("event: ready\n")


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"cursor": "abc"}, "cursor"),
        ({"since": "yesterday"}, "since"),
        ({"cursor": "1", "since": "2026-01-01T00:00:00Z"}, "cursor, since"),
    ],
)
async def test_a_wrong_place_to_begin_is_refused(
    client: httpx2.AsyncClient, ada: Headers, box: str, query: dict[str, str], field: str
) -> None:
    assert box
    response = await client.get(f"{BOX}/events", headers=ada, params=query)
    assert response.status_code == 400
    assert response.json()["error"].startswith(field)
