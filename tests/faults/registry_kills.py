"""Pushes and collections of the registry in forked processes, each killed at another step.

Run as a program with a folder and `push` or `collect`; it prints how many were killed.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx2

from faults.step_killer import StepKiller, run_killed
from hublet.app import create_application, with_edge
from hublet.core.config import Settings
from hublet.core.database import Database, open_database
from hublet.core.database.migrations import migrate
from hublet.core.hub import Hub
from hublet.core.sealing import KeyRing
from hublet.registry import collection
from hublet.repos import pruning
from people import Headers, sign_in
from registry.images import (
    an_index,
    begin,
    digest_of,
    push_blob,
    push_image,
    put_manifest,
)
from repositories import a_repo

# Spread evenly over the steps; `HUBLET_REGISTRY_KILLS=100` makes it a hundred.
KILLS = int(os.environ.get("HUBLET_REGISTRY_KILLS", "40"))
_WATCHED = (
    "/hublet/registry/",
    "/hublet/storage/",
    "/database/sqlite",
    "/repos/files/",
    "/repos/pruning",
)
_RING = KeyRing.new()
_TWO_DAYS = 2 * 86_400_000_000


def hub_of(folder: Path) -> Hub:
    settings = Settings()
    database = replace(settings.database, data_dir=folder, url=f"sqlite:///{folder}/hub.db")
    return Hub(settings=replace(settings, database=database), keys=_RING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    database: Database
    client: httpx2.AsyncClient
    who: Headers


@asynccontextmanager
async def a_scene(folder: Path, who: Headers) -> AsyncIterator[Scene]:
    async with open_database(hub_of(folder)) as database:
        transport = httpx2.ASGITransport(app=with_edge(create_application(database)))
        async with httpx2.AsyncClient(transport=transport, base_url="http://hub.test") as client:
            yield Scene(database=database, client=client, who=who)


async def push(scene: Scene, number: int) -> None:
    """Push an image by chunks, another one, and an index of both; move and delete tags."""
    client, who = scene.client, scene.who
    layer = os.urandom(4000)
    location = await begin(client, who)
    for part in (layer[:1500], layer[1500:]):
        sent = await client.patch(location, headers=who, content=part)
        location = sent.headers["Location"]
    done = await client.put(location, headers=who, params={"digest": digest_of(layer)})
    assert done.status_code == 201, done.text
    first = await push_image(client, who, layer, tag=f"v{number}")
    second = await push_image(client, who, layer, b"%d" % number, tag="latest")
    index = await put_manifest(client, who, an_index(first, second), "all")
    assert index.status_code == 201, index.text
    if number % 3 == 0:
        await client.delete(f"/v2/ada/tool/manifests/v{number}", headers=who)


async def litter(scene: Scene, number: int) -> None:
    """Leave what a collection removes: old tags, an untagged image, a blob, an upload."""
    client, who = scene.client, scene.who
    for name in ("old", "new"):
        await push_image(client, who, b"%s %d" % (name.encode(), number), tag=f"{name}{number}")
    await push_image(client, who, b"untagged %d" % number, tag=None)
    await push_blob(client, who, b"lonely %d" % number)
    await client.patch(await begin(client, who), headers=who, content=b"given up %d" % number)
    await grow_old(scene.database)
    await push_image(client, who, b"fresh %d" % number, tag=f"fresh{number}")


async def grow_old(database: Database) -> None:
    """Let everything be two days older, in the database and in the store."""
    async with database.transaction() as conn:
        for table, column in (
            ("registry_blobs", "touched_at"),
            ("registry_manifests", "touched_at"),
            ("registry_uploads", "changed_at"),
            ("blobs", "created_at"),
            ("repo_blobs", "pushed_at"),
        ):
            await conn.execute(f"UPDATE {table} SET {column} = {column} - $1", _TWO_DAYS)
    for kind in ("blobs", "parts", "incoming"):
        for path in (database.hub.settings.database.data_dir / kind).rglob("*"):
            if path.is_file():
                os.utime(path, (1_000_000_000, 1_000_000_000))


async def collect(scene: Scene, _number: int) -> None:
    await collection.collect(scene.database)
    await pruning.prune(scene.database)


async def nothing(_scene: Scene, _number: int) -> None:
    pass


Step = Callable[[Scene, int], Awaitable[None]]


def in_child(
    folder: Path, who: Headers, number: int, steps: tuple[Step, Step], at: int | None
) -> tuple[bool, int]:
    """Run both steps in a forked process, and kill it at a step of the second."""

    async def run(killer: StepKiller) -> None:
        async with a_scene(folder, who) as scene:
            before, killed = steps
            await before(scene, number)
            killer.start()
            await killed(scene, number)
            sys.setprofile(None)

    return run_killed(run, watched=_WATCHED, at=at)


async def prepare(folder: Path) -> Headers:
    async with open_database(hub_of(folder)) as database:
        await migrate(database)
        who = await sign_in(database, "ada")
        transport = httpx2.ASGITransport(app=with_edge(create_application(database)))
        async with httpx2.AsyncClient(transport=transport, base_url="http://hub.test") as client:
            await a_repo(client, who, "ada/tool", type="container")
            rule = {"keepTags": 20, "untaggedDays": 1}
            await client.put("/api/containers/ada/tool/retention", headers=who, json=rule)
    return who


def main(folder: Path, what: str) -> None:
    folder.mkdir()
    who = asyncio.run(prepare(folder))
    steps: tuple[Step, Step] = (nothing, push) if what == "push" else (litter, collect)
    _, most = in_child(folder, who, KILLS, steps, None)
    killed = sum(
        in_child(folder, who, number, steps, 1 + number * most // (KILLS + 5))[0]
        for number in range(KILLS)
    )
    # What comes after is not hindered by what was left.
    in_child(folder, who, KILLS + 1, steps, None)
    sys.stdout.write(f"{killed}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
