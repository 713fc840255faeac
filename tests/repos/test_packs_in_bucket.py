"""The same nodes with a bucket: packs come from SeaweedFS."""

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from hublet.core.config import Settings
from hublet.core.database import Database
from hublet.repos.packs import compaction, migration, workspaces
from people import Headers
from repos.test_packs_store import Node, a_node, listed, objects_of

pytestmark = pytest.mark.full


@pytest.fixture
def settings(settings: Settings, bucket_url: str) -> Settings:
    return replace(settings, storage=replace(settings.storage, url=bucket_url))


@pytest.fixture
async def nodes(database: Database, ada: Headers, tmp_path: Path) -> AsyncIterator[list[Node]]:
    async with (
        a_node(database, tmp_path / "a", ada) as first,
        a_node(database, tmp_path / "b", ada) as second,
        a_node(database, tmp_path / "c", ada) as third,
    ):
        yield [first, second, third]


async def test_three_nodes_write_in_turn_and_one_of_them_repacks(
    nodes: list[Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspaces, "SMALLEST_STORED", 1)
    repo_id = await nodes[0].create()
    content = os.urandom(1000).hex()

    async def write() -> None:
        for number in range(9):
            response = await nodes[number % 3].commit(f"{number}.txt", f"{number}{content}")
            assert response.status_code == 200, response.text

    async def repack() -> None:
        for _ in range(3):
            await compaction.repack(nodes[2].database, repo_id)

    async with asyncio.TaskGroup() as group:
        group.create_task(write())
        group.create_task(repack())
    assert await compaction.repack(nodes[2].database, repo_id)

    [pack] = await listed(nodes[0], repo_id)
    assert f"{repo_id}/{pack.name}.pack" in objects_of(nodes[0], repo_id)
    for node in nodes:
        for number in range(9):
            assert await node.read(f"{number}.txt") == f"{number}{content}".encode()
        await node.check(repo_id)
    assert await migration.withdraw(nodes[0].database, repo_id)
    await nodes[0].check(repo_id)
