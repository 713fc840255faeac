"""Commits on a node of its own in forked processes, each killed at another step of the write.

Run as a program with a folder; it prints how many were killed, and how many had been answered.
"""

import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path

import httpx2

from faults.step_killer import StepKiller, run_killed
from hublet.app import create_application, with_edge
from hublet.core.config import Settings
from hublet.core.database import open_database
from hublet.core.database.migrations import migrate
from hublet.core.hub import Hub
from hublet.core.sealing import KeyRing
from hublet.repos.packs import compaction, workspaces
from people import Headers, sign_in
from repos.commits import file, header, ndjson

# Spread evenly over the steps; `HUBLET_PACK_KILLS=100` makes it a hundred.
KILLS = int(os.environ.get("HUBLET_PACK_KILLS", "40"))
_WATCHED = ("/repos/packs/", "/repos/refs/", "/storage/object_store.py", "/database/sqlite")
_TRIES = 3
_RING = KeyRing.new()


def hub_of(folder: Path, node: str) -> Hub:
    settings = Settings()
    return Hub(
        settings=replace(
            settings,
            database=replace(
                settings.database, data_dir=folder / node, url=f"sqlite:///{folder}/hub.db"
            ),
            storage=replace(settings.storage, url=f"file://{folder}/store"),
        ),
        keys=_RING,
    )


async def change(folder: Path, node: str, number: int, headers: Headers) -> None:
    """Make a commit; every fifth time, repack afterwards."""
    async with open_database(hub_of(folder, node)) as database:
        transport = httpx2.ASGITransport(app=with_edge(create_application(database)))
        async with httpx2.AsyncClient(transport=transport, base_url="http://hub.test") as client:
            # Half of the packs go to the store, half of them into rows.
            content = os.urandom(workspaces.SMALLEST_STORED if number % 2 else 8).hex()
            response = await client.post(
                "/api/models/ada/engine/commit/main",
                headers=headers | {"content-type": "application/x-ndjson"},
                content=ndjson(header("Change"), file(f"{number}.txt", content)),
            )
            response.raise_for_status()
            with (folder / "answered").open("a") as answered:
                answered.write(f"{response.json()['commitOid']}\n")
            if number % 5 == 0:
                repo = (await client.get("/api/models/ada/engine")).json()["_id"]
                await compaction.repack(database, repo)


def in_child(folder: Path, number: int, headers: Headers, at: int | None) -> tuple[bool, int]:
    """Make a change in a forked process; return whether it was killed, and its steps if not."""

    async def run(killer: StepKiller) -> None:
        killer.start()
        await change(folder, f"node-{number % 2}", number, headers)

    return run_killed(run, watched=_WATCHED, at=at)


async def prepare(folder: Path) -> Headers:
    async with open_database(hub_of(folder, "node-0")) as database:
        await migrate(database)
        headers = await sign_in(database, "ada")
        transport = httpx2.ASGITransport(app=with_edge(create_application(database)))
        async with httpx2.AsyncClient(transport=transport, base_url="http://hub.test") as client:
            body = {"name": "engine", "type": "model"}
            created = await client.post("/api/repos/create", headers=headers, json=body)
            created.raise_for_status()
            (folder / "repo").write_text(created.json()["id"])
    return headers


def main(folder: Path) -> None:
    (folder / "node-0").mkdir()
    (folder / "node-1").mkdir()
    headers = asyncio.run(prepare(folder))
    killed = 0
    # A change with a repack has more steps than one without.
    steps = {number % 5 == 0: in_child(folder, number, headers, None)[1] for number in (4, 5)}
    for number in range(KILLS):
        repacks = number % 5 == 0
        for _ in range(_TRIES):
            at = 1 + number * steps[repacks] // (KILLS + 5)
            is_killed, found = in_child(folder, number, headers, at)
            killed += is_killed
            if is_killed:
                break
            # It came to its end: how many steps there are depends on what the node has already.
            steps[repacks] = found
    is_killed, _ = in_child(folder, KILLS + 1, headers, None)
    sys.stdout.write(f"{killed} {is_killed}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
