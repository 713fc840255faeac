"""A server is killed at random points of uploads, commits and pruning: what it acknowledged stays whole."""

import os
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from faults.content import first_person
from faults.forked_hubs import ForkedHub, ForkServer
from faults.xet_uploads import XetLoad
from hublet.core import clock
from hublet.core.database import Database
from hublet.core.startup import open_hub
from hublet.repos.pruning import prune
from hublet.storage.object_store import open_store
from patience import SOON_SECONDS
from processes import Place, run_hublet, serving, wait_until

# Each takes a second or more, so the suite has few; `HUBLET_XET_KILLS=100` makes it a hundred.
KILLS = int(os.environ.get("HUBLET_XET_KILLS", "6"))
LONGEST_PAUSE_SECONDS = 0.1
MOST_ANSWERS = 30
# Those that were killed count for a while as processes that share the limit.
PATIENT = {"HUBLET_LIMITS_AUTHENTICATED_REQUESTS": "1000000000"}
# Longer than anything unused is kept.
MUCH_LATER = timedelta(days=60)


@pytest.mark.timeout(900 + 30 * KILLS)
@pytest.mark.parametrize("seed", [17])
async def test_no_kill_loses_a_file_that_was_acknowledged(tmp_path: Path, seed: int) -> None:
    place, chance = Place(folder=tmp_path), random.Random(seed)
    with serving(place) as server:
        load = XetLoad(first_person(server), seed=seed)
        with load.person.client(server) as client:
            load.prepare(client)
    hubs = ForkServer(place, "--port", "0", variables=PATIENT)
    checked = 0
    try:
        for number in range(KILLS):
            known = list(load.files)
            if number % 4 == 3:
                await _prune_much_later(place)
            with hubs.serving() as hub:
                with load.person.client(hub) as client:
                    again = chance.sample(known[:checked], min(checked, 5))
                    load.check(client, known[checked:] + again)
                _run_and_kill(place, hub, load, chance, prunes=number % 3 == 0)
            assert hubs.was_killed
            checked = len(known)
        await _prune_much_later(place)
        await _insist_on_no_orphans(place)
        with hubs.serving() as hub, load.person.client(hub) as client:
            load.check(client, list(load.files))
    finally:
        hubs.close()
    # Of the uploads before a kill, which are four on average.
    assert len(load.files) >= KILLS


def _run_and_kill(
    place: Place, hub: ForkedHub, load: XetLoad, chance: random.Random, *, prunes: bool
) -> None:
    done = threading.Event()
    thread = load.run_until_killed(hub, done)
    with ThreadPoolExecutor(1) as beside:
        if prunes:
            beside.submit(run_hublet, "storage", "prune", *place.flags, folder=place.folder)
        # An upload takes four requests; the kill comes somewhere after some of them.
        enough = load.answers + chance.randrange(MOST_ANSWERS)
        wait_until(lambda: load.answers >= enough or bool(load.failures), seconds=SOON_SECONDS)
        time.sleep(chance.uniform(0, LONGEST_PAUSE_SECONDS))
        hub.kill()
        done.set()
        thread.join()
    assert load.failures == []


async def _prune_much_later(place: Place) -> None:
    """Prune while no server runs, as if all that is there had been there for long."""
    _age_objects(place)
    clock.move(MUCH_LATER)
    try:
        async with open_hub(place.settings) as database:
            for _ in range(3):
                await prune(database)
                clock.move(MUCH_LATER)
    finally:
        clock.reset()


def _age_objects(place: Place) -> None:
    """Make all objects old: files know the real time, which the clock of the hub does not move."""
    then = time.time() - MUCH_LATER.total_seconds()
    for kind in ("blobs", "xorbs"):
        for path in (place.data_dir / kind).rglob("*"):
            if path.is_file():
                os.utime(path, (then, then))


async def _insist_on_no_orphans(place: Place) -> None:
    async with open_hub(place.settings) as database:
        store = open_store(place.settings)
        for kind, known in (
            ("blobs", await _whole_blobs(database)),
            ("xorbs", await _xorbs(database)),
        ):
            assert {each.key.name for each in store.list(kind)} == known
    assert list((place.data_dir / "blobs" / "incoming").glob("*")) == []


async def _whole_blobs(database: Database) -> set[str]:
    async with database.read() as conn:
        rows = await conn.fetch_all("SELECT sha256 FROM blobs WHERE is_whole")
    return {row["sha256"] for row in rows}


async def _xorbs(database: Database) -> set[str]:
    async with database.read() as conn:
        rows = await conn.fetch_all("SELECT name FROM xorbs")
    return {row["name"] for row in rows}
