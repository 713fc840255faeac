"""The process runner keeps the contract, and what only it does."""

from pathlib import Path

import pytest

from hublet.jobs.records import Phase
from hublet.runtime.errors import CannotRun
from hublet.runtime.records import BindMount, Runner
from hublet.runtime.sandbox.shim_runner import process_runner
from runtime.attempts import launch
from runtime.runner_contract import RunnerContract, shell


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def runner(data_dir: Path) -> Runner:
    return process_runner(data_dir)


class TestProcessRunner(RunnerContract):
    """See runner_contract.py."""


async def test_volumes_are_refused_with_a_way_out(runner: Runner, data_dir: Path) -> None:
    bind = BindMount(source=data_dir, target="/data", read_only=True)
    with pytest.raises(CannotRun) as refusal:
        await launch(runner, data_dir, "true", binds=(bind,))
    assert str(refusal.value) == (
        "The process runner cannot mount volumes; the sandbox runner can."
    )
    assert await runner.handles() == []


async def test_without_a_command_there_is_nothing_to_run(runner: Runner, data_dir: Path) -> None:
    with pytest.raises(CannotRun, match=r"^The image does not say what to run: give the job a c"):
        await launch(runner, data_dir)
    assert await runner.handles() == []


async def test_it_begins_in_the_content_that_it_is_given(runner: Runner, data_dir: Path) -> None:
    content = data_dir / "content"
    content.mkdir()
    (content / "app.sh").write_text("echo from the space\n")
    run = await launch(runner, data_dir, "sh", "app.sh", content=content)
    assert (await run.ended()).phase is Phase.exited
    assert run.lines() == ["from the space"]


async def test_it_is_at_home_in_its_own_folder(runner: Runner, data_dir: Path) -> None:
    run = await launch(runner, data_dir, *shell("pwd; echo $HOME"))
    await run.ended()
    assert run.lines() == [str(run.order.folder / "home")] * 2
