"""Kills at a hundred steps of a push, and of a collection: no image breaks, nothing is left over."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from faults.registry_kills import KILLS, grow_old, hub_of
from hublet.core.database import open_database
from hublet.registry import collection
from hublet.repos import pruning
from registry.image_checks import check_complete, check_files, check_no_orphans, rows_of

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("what", ["push", "collect"])
async def test_no_kill_breaks_an_image_or_leaves_anything_over(tmp_path: Path, what: str) -> None:
    folder = tmp_path / "hub"
    done = subprocess.run(  # noqa: ASYNC221 - nothing else runs here
        [sys.executable, str(TESTS / "faults" / "registry_kills.py"), str(folder), what],
        env=os.environ | {"PYTHONPATH": f"{TESTS}:{TESTS.parent / 'src'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[-1]) >= KILLS * 9 // 10

    async with open_database(hub_of(folder)) as database:
        await check_complete(database)
        await check_files(database)
        assert await rows_of(database, "SELECT name FROM registry_tags")
        await grow_old(database)
        await collection.collect(database)
        await pruning.prune(database)
        await check_complete(database)
        await check_files(database)
        await check_no_orphans(database)
