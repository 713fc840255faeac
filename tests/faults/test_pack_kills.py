"""Kills at a hundred steps of a write to the shared store: nothing is lost and nothing is broken."""

import os
import subprocess
import sys
from pathlib import Path

from faults.pack_kills import KILLS, hub_of
from hublet.core.database import open_database
from hublet.repos import maintenance
from hublet.repos.git import bare_repos, process

TESTS = Path(__file__).parents[1]


async def test_no_kill_loses_an_answered_commit_or_breaks_the_repository(tmp_path: Path) -> None:
    done = subprocess.run(  # noqa: ASYNC221 - nothing else runs here
        [sys.executable, str(TESTS / "faults" / "pack_kills.py"), str(tmp_path)],
        env=os.environ | {"PYTHONPATH": f"{TESTS}:{TESTS.parent / 'src'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    killed, is_last_killed = done.stdout.split()[-2:]
    assert (int(killed) >= KILLS * 9 // 10, is_last_killed) == (True, "False")

    async with open_database(hub_of(tmp_path, "fresh")) as database:
        folder = await maintenance.sync_packed_refs(database, (tmp_path / "repo").read_text())
        await process.run_git(folder, "fsck", "--full", "--connectivity-only")
        await process.run_git(folder, "rev-list", "--objects", "--quiet", "--all")
        repository = bare_repos.open_repository(folder)
        main = repository.walk(repository.revparse_single("refs/heads/main").id)
        reached = {str(commit.id) for commit in main}
    assert set((tmp_path / "answered").read_text().split()) <= reached
