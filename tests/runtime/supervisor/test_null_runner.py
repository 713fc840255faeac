"""A hub that cannot run jobs says so, and begins as soon as it can."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hublet.core.config import Settings
from hublet.core.database import Database
from hublet.core.ids import new_object_id
from hublet.runtime.records import RunnerCapabilities
from hublet.runtime.supervisor import lifecycle
from hublet.runtime.supervisor.lifecycle import SupervisorLifecycle
from hublet.runtime.supervisor.runner_selection import RunnerChoice, choose_runner
from runtime.supervisor.scripted_runner import ScriptedRunner
from runtime.supervisor.supervised_jobs import a_job, cancel, set_jobs, status
from scratch_database import wait_until

SENTENCE = "There is no bubblewrap: install it."


class Chooser:
    """What `choose` finds, as the test says."""

    def __init__(self) -> None:
        self.choice = RunnerChoice(
            runner=None, capabilities=RunnerCapabilities(usable=False, sentence=SENTENCE)
        )
        self.times = 0

    async def __call__(self, settings: Settings) -> RunnerChoice:
        assert settings is not None
        self.times += 1
        return self.choice


@pytest.fixture
def chooser(monkeypatch: pytest.MonkeyPatch) -> Chooser:
    chooser = Chooser()
    monkeypatch.setattr(lifecycle, "choose_runner", chooser)
    monkeypatch.setattr(lifecycle, "_RETRY_SECONDS", 0.05)
    return chooser


@asynccontextmanager
async def at_work(database: Database) -> AsyncIterator[None]:
    jobs = SupervisorLifecycle(database, new_object_id())
    jobs.start()
    try:
        yield
    finally:
        await jobs.finish()
        await jobs.abandon()


async def says(database: Database, job_id: str, expected: tuple[str, str | None]) -> None:
    async def is_so() -> bool:
        return await status(database, job_id) == expected

    await wait_until(is_so)


async def test_a_job_waits_and_says_why(database: Database, chooser: Chooser) -> None:
    job_id = await a_job(database)
    async with at_work(database):
        await says(database, job_id, ("SCHEDULING", SENTENCE))

        await cancel(database, job_id)
        await says(database, job_id, ("CANCELED", None))


async def test_a_runner_that_can_be_used_by_now_is_used(
    database: Database, chooser: Chooser
) -> None:
    job_id = await a_job(database)
    runner = ScriptedRunner()
    async with at_work(database):
        await says(database, job_id, ("SCHEDULING", SENTENCE))
        chooser.choice = RunnerChoice(runner=runner, capabilities=await runner.probe())

        async def is_launched() -> bool:
            return (job_id, 1) in runner.attempts

        await wait_until(is_launched)
        runner.end(job_id)
        await says(database, job_id, ("COMPLETED", None))
    assert runner.removed


async def test_a_hub_without_jobs_looks_for_no_runner(database: Database, chooser: Chooser) -> None:
    async with at_work(database):
        await asyncio.sleep(0.2)
        assert chooser.times == 0
        await a_job(database)

        async def is_asked() -> bool:
            return chooser.times > 0

        await wait_until(is_asked)


async def test_an_engine_that_does_not_answer_says_what_to_do(
    database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nobody.sock")
    set_jobs(database, runner="docker")

    choice = await choose_runner(database.hub.settings)

    assert choice.runner is not None
    assert not choice.capabilities.usable
    assert choice.capabilities.sentence.startswith("The Docker engine does not answer: ")
    assert choice.capabilities.sentence.endswith(" Start it, or set DOCKER_HOST.")
    await choice.runner.close()  # type: ignore[attr-defined]


async def test_an_engine_that_is_nowhere_says_so(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "gopher://engine")
    set_jobs(database, runner="docker")

    choice = await choose_runner(database.hub.settings)

    assert choice.runner is None
    assert not choice.capabilities.usable
    assert choice.capabilities.sentence.startswith("The Docker engine cannot be reached: ")


async def test_the_process_runner_is_used_where_the_settings_name_it(database: Database) -> None:
    set_jobs(database, runner="process")

    choice = await choose_runner(database.hub.settings)

    assert choice.capabilities.usable
    assert choice.runner is not None
    assert choice.runner.name == "process"
