"""Two nodes without a common folder: packs in a shared store, and their list in the database."""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest

from hublet.app import create_application, with_edge
from hublet.core import clock
from hublet.core.config import Settings
from hublet.core.database import Database, open_database
from hublet.core.startup import CannotStart
from hublet.first_start import prepare
from hublet.repos import maintenance
from hublet.repos.errors import StorageUnavailable
from hublet.repos.git import process
from hublet.repos.packs import cache, compaction, migration, store, workspaces
from hublet.repos.packs.store import PackKind
from hublet.storage.object_store import open_store
from people import Headers
from repos.commits import file, header, ndjson
from workers import drain

PATH = "/api/models/ada/engine"


@dataclass(frozen=True)
class Node:
    database: Database
    client: httpx2.AsyncClient
    headers: Headers

    async def create(self, name: str = "engine") -> str:
        body = {"name": name, "type": "model"}
        created = await self.client.post("/api/repos/create", headers=self.headers, json=body)
        assert created.status_code == 200, created.text
        return str(created.json()["id"])

    async def commit(self, path: str, content: bytes | str, **more: str) -> httpx2.Response:
        kind = {"content-type": "application/x-ndjson"}
        body = ndjson(header("Change", **more), file(path, content))
        return await self.client.post(
            f"{PATH}/commit/main", headers=self.headers | kind, content=body
        )

    async def read(self, path: str) -> bytes:
        found = await self.client.get(f"/ada/engine/resolve/main/{path}")
        assert found.status_code == 200, found.text
        return found.content

    async def check(self, repo_id: str) -> None:
        """Let git look at everything that refs reach, as this node has it."""
        folder = await maintenance.sync_packed_refs(self.database, repo_id)
        command = process.command(folder, "fsck", "--full", "--strict", "--connectivity-only")
        await asyncio.to_thread(
            subprocess.run, command, check=True, capture_output=True, cwd=folder
        )
        await process.run_git(folder, "rev-list", "--objects", "--quiet", "--all")


@asynccontextmanager
async def a_node(first: Database, folder: Path, headers: Headers) -> AsyncIterator[Node]:
    """Start a node with a folder of its own on the database of another."""
    settings = first.hub.settings
    own = replace(
        settings,
        database=replace(settings.database, data_dir=folder, url=settings.database_url),
    )
    async with open_database(replace(first.hub, settings=own)) as database:
        app = create_application(database)
        transport = httpx2.ASGITransport(app=with_edge(app))
        async with httpx2.AsyncClient(transport=transport, base_url="http://hub.test") as client:
            yield Node(database, client, headers)


@pytest.fixture
def settings(settings: Settings, tmp_path: Path) -> Settings:
    shared = replace(settings.storage, url=f"file://{tmp_path}/store")
    return replace(settings, storage=shared)


@pytest.fixture
async def nodes(database: Database, ada: Headers, tmp_path: Path) -> AsyncIterator[list[Node]]:
    async with (
        a_node(database, tmp_path / "a", ada) as first,
        a_node(database, tmp_path / "b", ada) as second,
    ):
        yield [first, second]


async def listed(node: Node, repo_id: str) -> list[store.ListedPack]:
    async with node.database.read() as conn:
        return await store.list_of(conn, repo_id)


def objects_of(node: Node, repo_id: str) -> set[str]:
    found = open_store(node.database.hub.settings).list("packs", f"{repo_id}/")
    return {each.key.name for each in found}


async def test_what_one_node_writes_the_other_reads_at_once(nodes: list[Node]) -> None:
    repo_id = await nodes[0].create()
    for number in range(4):
        written, read = nodes[number % 2], nodes[1 - number % 2]
        assert (await written.commit(f"{number}.txt", f"{number}")).status_code == 200
        assert await read.read(f"{number}.txt") == f"{number}".encode()

    for node in nodes:
        await node.check(repo_id)
    assert [pack.is_inline for pack in await listed(nodes[0], repo_id)] == [True] * 5
    assert objects_of(nodes[0], repo_id) == set()


async def test_a_large_pack_lies_in_the_store(nodes: list[Node]) -> None:
    repo_id = await nodes[0].create()
    content = os.urandom(workspaces.SMALLEST_STORED)
    await nodes[0].commit("noise.txt", content.hex())

    assert await nodes[1].read("noise.txt") == content.hex().encode()
    [_, pack] = await listed(nodes[0], repo_id)
    names = {f"{repo_id}/{pack.name}.pack", f"{repo_id}/{pack.name}.idx"}
    assert objects_of(nodes[0], repo_id) == names


async def test_of_two_nodes_that_race_for_a_branch_one_wins(nodes: list[Node]) -> None:
    repo_id = await nodes[0].create()
    head = (await nodes[0].client.get(PATH)).json()["sha"]
    responses = await asyncio.gather(
        *(
            asyncio.create_task(node.commit("a.txt", f"{number}", parentCommit=head))
            for number, node in enumerate(nodes)
        )
    )

    assert sorted(response.status_code for response in responses) == [200, 412]
    winner = [response.status_code for response in responses].index(200)
    for node in nodes:
        assert await node.read("a.txt") == f"{winner}".encode()
        await node.check(repo_id)
    # The pack of the other is on no list.
    assert len(await listed(nodes[0], repo_id)) == 2


async def test_branches_squashes_copies_and_merges_are_found_on_the_other_node(
    nodes: list[Node],
) -> None:
    first, second = nodes
    await first.create()
    query = f"{PATH}/commit/main?create_pr=1"
    kind = {"content-type": "application/x-ndjson"}
    body = ndjson(header("Propose"), file("a.txt", "proposed"))
    opened = await second.client.post(query, headers=second.headers | kind, content=body)
    assert opened.status_code == 200, opened.text
    await second.commit("b.txt", "of main")
    merged = await first.client.post(f"{PATH}/discussions/1/merge", headers=first.headers)
    assert merged.status_code == 200, merged.text
    assert await second.read("a.txt") == b"proposed"
    squash = await second.client.post(
        f"{PATH}/super-squash/main", headers=second.headers, json={"message": "One"}
    )
    assert squash.status_code == 200, squash.text
    assert await first.read("b.txt") == b"of main"
    copied = await first.client.post(
        f"{PATH}/duplicate", headers=first.headers, json={"repository": "ada/copy"}
    )
    assert copied.status_code == 200, copied.text
    found = await second.client.get("/ada/copy/resolve/main/a.txt")
    assert (found.status_code, found.content) == (200, b"proposed")


async def test_packs_become_one_beside_pushes_and_old_ones_go_a_day_later(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ada: Headers
) -> None:
    repo_id = await nodes[0].create()
    content = os.urandom(workspaces.SMALLEST_STORED).hex()
    for number in range(3):
        await nodes[number % 2].commit(f"{number}.txt", f"{number}{content}")
    before = objects_of(nodes[0], repo_id)
    replace_packs = compaction._replace

    async def push_meanwhile(*arguments: object) -> bool:
        monkeypatch.setattr(compaction, "_replace", replace_packs)
        assert (await nodes[1].commit("late.txt", "late")).status_code == 200
        return await replace_packs(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(compaction, "_replace", push_meanwhile)
    assert await compaction.repack(nodes[0].database, repo_id)

    kinds = [pack.kind for pack in await listed(nodes[0], repo_id)]
    assert sorted(kinds) == [PackKind.packed, PackKind.push]
    async with a_node(nodes[0].database, tmp_path / "c", ada) as third:
        assert await third.read("late.txt") == b"late"
        for node in (*nodes, third):
            assert await node.read("0.txt") == f"0{content}".encode()
            await node.check(repo_id)
    await compaction.sweep(nodes[0].database)
    assert before <= objects_of(nodes[0], repo_id)
    clock.move(store.REMOVED_KEPT + timedelta(minutes=1))
    await compaction.sweep(nodes[0].database)
    assert not before & objects_of(nodes[0], repo_id)


async def test_unreachable_objects_are_dropped_after_two_weeks(nodes: list[Node]) -> None:
    first, second = nodes
    repo_id = await first.create()
    old = (await first.commit("old.txt", "old")).json()["commitOid"]
    await first.client.post(
        f"{PATH}/super-squash/main", headers=first.headers, json={"message": "One"}
    )
    for waits in (timedelta(0), timedelta(days=15)):
        clock.move(waits)
        assert await compaction.repack(first.database, repo_id)
        kinds = {pack.kind for pack in await listed(first, repo_id)}
        assert kinds == ({PackKind.packed} if waits else {PackKind.packed, PackKind.cruft})
    assert await second.read("old.txt") == b"old"
    assert (await second.client.get(f"{PATH}/revision/{old}")).status_code == 404


async def test_the_cache_makes_room_except_for_what_is_in_use(nodes: list[Node]) -> None:
    node = nodes[1]
    repo_id = await nodes[0].create()
    folder = cache.path_of(node.database, repo_id)
    data_dir = node.database.hub.settings.database.data_dir
    used, is_read = asyncio.Event(), asyncio.Event()

    async def use() -> None:
        await cache.open_folder(node.database, repo_id)
        used.set()
        await is_read.wait()

    async with asyncio.TaskGroup() as group:
        group.create_task(use())
        await used.wait()
        assert await asyncio.to_thread(cache.evict, data_dir, 0) == 0
        assert folder.exists()
        is_read.set()
    assert await asyncio.to_thread(cache.evict, data_dir, 0) == 1
    assert not folder.exists()
    assert not folder.with_suffix(".lock").exists()
    assert await node.read(".gitattributes")
    await node.check(repo_id)


async def test_uploads_that_were_never_listed_go_after_two_days(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    repo_id = await nodes[0].create()
    noise = os.urandom(workspaces.SMALLEST_STORED).hex()
    await nodes[0].commit("a.txt", noise)
    kept = objects_of(nodes[0], repo_id)

    async def fail(*_arguments: object, **_named: object) -> bool:
        raise StorageUnavailable

    monkeypatch.setattr(store, "add", fail)
    assert (await nodes[0].commit("b.txt", f"{noise}b")).status_code == 503
    assert len(objects_of(nodes[0], repo_id)) == 4
    await compaction.sweep(nodes[0].database)
    assert len(objects_of(nodes[0], repo_id)) == 4

    for path in (Path(f"{nodes[0].database.hub.settings.storage.url}"[7:]) / "packs").rglob("*.*"):
        os.utime(path, (0, 0))
    await compaction.sweep(nodes[0].database)
    assert objects_of(nodes[0], repo_id) == kept


async def test_a_repository_moves_to_the_store_and_back_beside_pushes(nodes: list[Node]) -> None:
    first, second = nodes
    settings = first.database.hub.settings
    alone = replace(settings, storage=replace(settings.storage, url=None))
    hub, first.database.hub = first.database.hub, replace(first.database.hub, settings=alone)
    repo_id = await first.create()
    await first.commit("a.txt", "alone")
    assert await listed(first, repo_id) == []

    first.database.hub = hub
    await first.commit("b.txt", "not yet")
    assert await listed(first, repo_id) == []
    assert await migration.publish(first.database, repo_id)
    assert not await migration.publish(first.database, repo_id)
    assert await second.read("a.txt") == b"alone"
    await second.commit("c.txt", "shared")
    assert await first.read("c.txt") == b"shared"
    assert await migration.withdraw(first.database, repo_id)
    assert not await migration.withdraw(first.database, repo_id)
    await first.commit("d.txt", "back")
    await first.check(repo_id)
    assert await listed(first, repo_id) == []
    assert await migration.publish(first.database, repo_id)
    assert await second.read("d.txt") == b"back"
    await second.check(repo_id)


async def test_a_deleted_repository_leaves_no_rows(nodes: list[Node]) -> None:
    repo_id = await nodes[0].create()
    body = {"name": "engine", "type": "model"}
    await nodes[1].client.request(
        "DELETE", "/api/repos/delete", headers=nodes[1].headers, json=body
    )
    await drain(nodes[1].database)

    assert await listed(nodes[0], repo_id) == []
    assert not cache.path_of(nodes[1].database, repo_id).exists()


async def test_a_hub_without_its_store_does_not_start(nodes: list[Node]) -> None:
    await nodes[0].create()
    hub = nodes[0].database.hub
    alone = replace(hub.settings, storage=replace(hub.settings.storage, url=None))
    nodes[0].database.hub = replace(hub, settings=alone)

    with pytest.raises(CannotStart, match=r"storage\.url is not set"):
        await prepare(nodes[0].database)


async def test_clones_go_on_while_the_cache_is_evicted(nodes: list[Node], tmp_path: Path) -> None:
    repo_id = await nodes[0].create()
    content = os.urandom(workspaces.SMALLEST_STORED).hex()
    await nodes[0].commit("noise.txt", content)
    data_dir = nodes[1].database.hub.settings.database.data_dir

    async def clone(number: int) -> None:
        folder = await maintenance.sync_packed_refs(nodes[1].database, repo_id)
        target = tmp_path / f"clone-{number}"
        command = [process.program(), "clone", "-q", "--no-local", str(folder), str(target)]
        await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True)
        assert (target / "noise.txt").read_text() == content

    async def evict() -> None:
        while not all_cloned.is_set():
            await asyncio.to_thread(cache.evict, data_dir, 0)

    all_cloned = asyncio.Event()
    evicting = asyncio.create_task(evict())
    for number in range(5):
        await asyncio.gather(*(asyncio.create_task(clone(2 * number + each)) for each in range(2)))
    all_cloned.set()
    await evicting
