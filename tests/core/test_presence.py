"""A worker's file is locked while its process lives, however that ends."""

import fcntl
import signal
import subprocess
import sys
from pathlib import Path
from typing import TextIO

import pytest

from hublet.core.leases import WorkerPresence

STAY = """
import sys, time
from pathlib import Path
from hublet.core.leases import WorkerPresence

presence = WorkerPresence(Path(sys.argv[1]), "other")
print("here", flush=True)
time.sleep(60)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "workers"


def a_worker_elsewhere(folder: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", STAY, str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "here\n"
    return process


def test_living_workers_are_not_dead(folder: Path) -> None:
    ada, bob = WorkerPresence(folder, "ada"), WorkerPresence(folder, "bob")

    assert ada.dead_workers() == []
    assert bob.dead_workers() == []
    ada.leave()
    bob.leave()


def test_a_killed_process_leaves_a_dead_worker(folder: Path) -> None:
    ada = WorkerPresence(folder, "ada")
    with a_worker_elsewhere(folder) as process:
        assert ada.dead_workers() == []
        process.send_signal(signal.SIGKILL)

    assert ada.dead_workers() == ["other"]
    assert ada.dead_workers() == ["other"]
    ada.forget("other")
    assert ada.dead_workers() == []
    ada.forget("other")
    ada.leave()


def test_a_worker_that_leaves_is_gone_without_a_trace(folder: Path) -> None:
    ada, bob = WorkerPresence(folder, "ada"), WorkerPresence(folder, "bob")

    bob.leave()

    assert ada.dead_workers() == []
    assert [path.name for path in folder.iterdir()] == ["ada"]
    ada.leave()


def test_a_worker_that_vanishes_looks_dead(folder: Path) -> None:
    ada, bob = WorkerPresence(folder, "ada"), WorkerPresence(folder, "bob")

    bob.vanish()

    assert ada.dead_workers() == ["bob"]
    ada.leave()


def test_a_worker_that_is_just_arriving_does_not_look_dead(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = WorkerPresence(folder, "ada")
    seen: list[list[str]] = []
    flock = fcntl.flock

    def look_and_lock(file: TextIO, operation: int) -> None:
        if operation == fcntl.LOCK_EX:
            seen.append(ada.dead_workers())
        flock(file, operation)

    monkeypatch.setattr(fcntl, "flock", look_and_lock)
    bob = WorkerPresence(folder, "bob")

    assert seen == [[]]
    assert ada.dead_workers() == []
    ada.leave()
    bob.leave()
