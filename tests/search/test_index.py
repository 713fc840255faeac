"""The index stays in step with events, late, twice and after kills, and fills itself on an old hub."""

import asyncio
from typing import Any

import httpx2
import pytest

from hublet import first_start
from hublet.accounts.records import OrganizationPlan, Role
from hublet.accounts.users import service as accounts
from hublet.core.database import Database
from hublet.core.queue import tasks
from hublet.repos import cards
from hublet.search import index, index_store, text_index, text_store
from hublet.search.records import IndexSource
from people import Headers, a_user, an_organization, sign_in
from repos.commits import file, header, ndjson
from repositories import a_push, a_repo, a_resource_group
from scratch_database import wait_until
from search.quick_searches import in_step, names
from workers import drain, running_workers

MODEL = "/api/models/ada/engine"
NDJSON = {"content-type": "application/x-ndjson"}


async def rows(database: Database, table: str) -> set[tuple[Any, ...]]:
    async with database.read() as conn:
        return {tuple(row) for row in await conn.fetch_all(f"SELECT * FROM {table}")}


async def test_renames_moves_and_deletions_are_followed(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(database, "acme", members={"ada": Role.admin})
    empty = await rows(database, "search_words")
    await a_repo(client, ada, "ada/engine")
    await in_step(database)
    assert await names(client, "engine") == ["ada/engine"]

    move = {"fromRepo": "ada/engine", "toRepo": "acme/motor", "type": "model"}
    assert (await client.post("/api/repos/move", headers=ada, json=move)).status_code == 200
    await in_step(database)
    assert await names(client, "engine") == []
    assert await names(client, "acme motor") == ["acme/motor"]

    body = {"name": "motor", "organization": "acme", "type": "model"}
    deleted = await client.request("DELETE", "/api/repos/delete", headers=ada, json=body)
    assert deleted.status_code == 200
    await in_step(database)
    assert await names(client, "motor") == []
    assert {row for row in await rows(database, "search_words") if row[0][0] == "m"} == empty
    assert {row for row in await rows(database, "search_spellings") if row[0][0] == "m"} == set()


async def test_visibility_and_resource_groups_are_followed(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    members = {"ada": Role.admin, "reader": Role.read}
    acme = await an_organization(database, "acme", plan=OrganizationPlan.team, members=members)
    group = await a_resource_group(database, acme)
    reader = await sign_in(database, "reader")
    await a_repo(client, ada, "acme/engine")
    settings = "/api/models/acme/engine/settings"

    await client.put(settings, headers=ada, json={"private": True})
    await in_step(database)
    assert await names(client, "engine") == []
    assert await names(client, "engine", reader) == ["acme/engine"]

    path = "/api/models/acme/engine/resource-group"
    await client.post(path, headers=ada, json={"resourceGroupId": group.id})
    await in_step(database)
    assert await names(client, "engine", reader) == []
    assert await names(client, "engine", ada) == ["acme/engine"]

    await client.post(path, headers=ada, json={"resourceGroupId": None})
    await client.put(settings, headers=ada, json={"private": False})
    await in_step(database)
    assert await names(client, "engine") == ["acme/engine"]


async def test_a_push_changes_the_text_and_the_tags(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo = await a_repo(client, ada, "ada/engine")
    await a_push(database, repo, {"README.md": b"steam"}, tags=["coal"])
    await in_step(database)
    assert await names(client, "steam") == await names(client, "coal") == ["ada/engine"]

    await a_push(database, repo, {"README.md": b"diesel"}, tags=["oil"])
    await in_step(database)

    assert await names(client, "steam") == await names(client, "coal") == []
    assert await names(client, "diesel") == await names(client, "oil") == ["ada/engine"]


async def test_an_opened_gate_lets_the_text_be_found(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo = await a_repo(client, ada, "ada/engine")
    await client.put(f"{MODEL}/settings", headers=ada, json={"gated": "auto"})
    await a_push(database, repo, {"README.md": b"steam"})
    await in_step(database)
    assert await names(client, "steam") == []

    await client.put(f"{MODEL}/settings", headers=ada, json={"gated": False})
    await in_step(database)

    assert await names(client, "steam") == ["ada/engine"]


async def test_full_names_and_switched_accounts_are_followed(
    client: httpx2.AsyncClient, database: Database
) -> None:
    user = await a_user(database, "grace")
    async with database.transaction() as conn:
        await accounts.set_fullname(conn, user, "Amazing Hopper")
    await in_step(database)
    assert await names(client, "hopper", kind="users") == ["grace"]

    async with database.transaction() as conn:
        await accounts.disable_user(conn, user)
    await in_step(database)
    assert await names(client, "hopper", kind="users") == []

    async with database.transaction() as conn:
        await accounts.enable_user(conn, user)
    await in_step(database)
    assert await names(client, "hopper", kind="users") == ["grace"]


async def test_a_change_is_found_soon_after_its_commit(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    async with running_workers(database):
        await a_repo(client, ada, "ada/engine")

        async def is_found() -> bool:
            return await names(client, "engine") == ["ada/engine"]

        await wait_until(is_found)


async def test_a_refresh_that_fails_is_done_again(
    client: httpx2.AsyncClient, database: Database, ada: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_words, failures = index_store.add_words, [OSError("the disk is full")]

    async def fail_once(*arguments: Any) -> None:
        await add_words(*arguments)
        if failures:
            raise failures.pop()

    monkeypatch.setattr(index_store, "add_words", fail_once)
    await a_repo(client, ada, "ada/engine")
    async with running_workers(database):

        async def is_found() -> bool:
            return await names(client, "engine") == ["ada/engine"]

        await wait_until(is_found)
    assert not failures


async def test_a_refresh_writes_what_is_true_when_it_writes(
    client: httpx2.AsyncClient, database: Database, ada: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What changes while a README is read must not be undone by who read before."""
    repo = await a_repo(client, ada, "ada/engine")
    await a_push(database, repo, {"README.md": b"steam"})
    loop, read_text = asyncio.get_running_loop(), cards.read_text

    async def change() -> None:
        await client.put(f"{MODEL}/settings", headers=ada, json={"private": True})
        monkeypatch.setattr(cards, "read_text", read_text)
        await index.refresh(database, IndexSource.repo, [repo])

    def read_slowly(*arguments: Any) -> str:
        asyncio.run_coroutine_threadsafe(change(), loop).result()
        return read_text(*arguments)

    monkeypatch.setattr(cards, "read_text", read_slowly)
    await index.refresh(database, IndexSource.repo, [repo])

    async with database.read() as conn:
        _, document = (await index_store.find(conn, [repo]))[repo]
    assert document.scope.startswith("mo")
    assert document.text == ("steam",)
    assert await names(client, "steam", ada) == ["ada/engine"]


async def test_a_commit_that_comes_while_a_readme_is_read_does_not_hide_its_text(
    client: httpx2.AsyncClient, database: Database, ada: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit that leaves README.md as it is has no refresh of its own."""
    repo = await a_repo(client, ada, "ada/engine")
    await a_push(database, repo, {"README.md": b"steam"})
    loop, read_text, commits = asyncio.get_running_loop(), cards.read_text, []

    async def commit() -> None:
        body = ndjson(header(), file(f"{len(commits)}.txt", "more"))
        made = await client.post(f"{MODEL}/commit/main", headers=ada | NDJSON, content=body)
        assert made.status_code == 200, made.text

    def read_slowly(*arguments: Any) -> str:
        text = read_text(*arguments)
        if len(commits) < 2:
            commits.append(asyncio.run_coroutine_threadsafe(commit(), loop).result())
        return text

    monkeypatch.setattr(cards, "read_text", read_slowly)
    await index.refresh(database, IndexSource.repo, [repo])
    commits.clear()
    await text_index.refresh(database, IndexSource.repo, [repo])

    async with database.read() as conn:
        _, document = (await index_store.find(conn, [repo]))[repo]
        texts = [text for _, text in await text_store.find(conn, [repo])]
    assert document.text == ("steam",)
    assert [set(text.words) for text in texts] == [{"steam"}]


async def test_a_second_refresh_changes_nothing(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo = await a_repo(client, ada, "ada/engine")
    await in_step(database)
    before = await rows(database, "search_words")

    for _ in range(2):
        await index.refresh(database, IndexSource.repo, [repo])

    assert await rows(database, "search_words") == before


async def test_an_old_hub_fills_its_index_and_goes_on_where_it_was_stopped(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(index, "BATCH", 2)
    monkeypatch.setattr(tasks, "_BATCHES_OF_TASK", 2)
    for number in range(5):
        await a_repo(client, ada, f"ada/engine-{number}")
    await client.post("/api/posts", headers=ada, json={"content": "About engines."})
    async with database.transaction() as conn:
        # As if the hub were of a version without an index.
        await conn.execute("DELETE FROM tasks")
        await index.FILLING.schedule(conn)
        await index.FILLING.schedule(conn)
    for _ in range(4):
        await index.FILLING.run(database)
        async with database.transaction() as conn:
            # The process is killed, and starts again.
            await conn.execute("DELETE FROM tasks")
            await index.FILLING.schedule(conn)
    await drain(database)

    async with database.read() as conn:
        assert await index.FILLING.find_part(conn) is None
    assert len(await names(client, "engine")) == 5
    assert await names(client, "ada", kind="users") == ["ada"]
    assert len({row[2] for row in await rows(database, "search_documents")}) == 7


async def test_a_start_schedules_the_filling_once(database: Database) -> None:
    await first_start.prepare(database)
    await first_start.prepare(database)

    async with database.read() as conn:
        count = await conn.fetch_value("SELECT count(*) FROM tasks WHERE kind = $1", index.FILL)
    assert count == 1
