"""Launches that take long hold up launches, and nothing else."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hublet.runtime.launch_threads import run_in_launch_thread
from patience import SOON_SECONDS
from runtime.attempts import a_runner, launch


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    gate = threading.Event()
    yield gate
    gate.set()


async def test_others_find_a_thread_however_many_launches_there_are(gate: threading.Event) -> None:
    launches = [
        asyncio.create_task(run_in_launch_thread(gate.wait, SOON_SECONDS)) for _ in range(50)
    ]
    await asyncio.sleep(0)

    async with asyncio.timeout(SOON_SECONDS):
        assert await asyncio.to_thread(lambda: "done") == "done"
    gate.set()

    assert await asyncio.gather(*launches) == [True] * 50


async def test_who_is_cancelled_leaves_when_the_work_is_done(gate: threading.Event) -> None:
    begun = threading.Event()

    def work() -> None:
        begun.set()
        gate.wait(SOON_SECONDS)

    working = asyncio.create_task(run_in_launch_thread(work))
    await asyncio.to_thread(begun.wait, SOON_SECONDS)

    working.cancel()
    await asyncio.wait([working], timeout=0.1)
    assert not working.done()
    gate.set()
    await asyncio.wait([working], timeout=SOON_SECONDS)

    assert working.cancelled()


async def test_a_runner_starts_attempts_in_these_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner, names = a_runner("process", tmp_path), list[str]()
    build = runner.build_spec  # type: ignore[attr-defined]

    def noted(*args: object) -> object:
        names.append(threading.current_thread().name)
        return build(*args)

    monkeypatch.setattr(runner, "build_spec", noted)
    await (await launch(runner, tmp_path, "true")).ended()

    assert [name.split("_")[0] for name in names] == ["launch"]
