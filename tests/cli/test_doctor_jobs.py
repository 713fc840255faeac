"""What the doctor says of what runs jobs."""

from dataclasses import replace
from pathlib import Path

import pytest

from hublet.cli.doctor import jobs
from hublet.cli.doctor.findings import Status
from hublet.core.config import Settings, load
from hublet.core.config.kinds import FlavorSize
from hublet.jobs.runners import sandbox
from hublet.jobs.runners.records import CannotRun
from hublet.jobs.runners.sandbox import sandbox_runner


def on(tmp_path: Path, **settings: object) -> Settings:
    hub = load({"database.data_dir": tmp_path}, {})
    return replace(hub, jobs=replace(hub.jobs, **settings))  # type: ignore[arg-type]


async def test_the_runner_is_named_with_what_it_is(tmp_path: Path) -> None:
    finding = await jobs.check(on(tmp_path, runner="process"))

    assert finding.status is Status.ok
    assert finding.found.startswith(
        "The runner is process. Jobs run as plain processes of the hub's own user:"
    )


async def test_without_a_runner_the_reason_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing() -> str:
        raise CannotRun("The sandbox runner needs bubblewrap; install the package bubblewrap.")

    monkeypatch.setattr(sandbox, "_program", nothing)

    finding = await jobs.check(on(tmp_path))

    assert finding.status is Status.warning
    assert finding.found == (
        "No job can be run. The sandbox runner needs bubblewrap; install the package bubblewrap."
    )
    assert finding.advice == "Until then jobs are refused, or wait."


async def test_names_that_are_no_flavors_are_told(tmp_path: Path) -> None:
    sizes = tuple(
        FlavorSize(name=name, cores=1, memory_bytes=2**30) for name in ("cpu-basic", "cpu-huge")
    )
    finding = await jobs.check(on(tmp_path, flavors=sizes, runner="process"))

    assert finding.status is Status.warning
    assert finding.found == "jobs.flavors has names that are no flavors: cpu-huge."


async def test_a_network_that_jobs_share_with_the_machine_is_a_warning(tmp_path: Path) -> None:
    if not sandbox_works():
        pytest.skip("bubblewrap does not work here")

    finding = await jobs.check(on(tmp_path, runner="sandbox", network="shared"))

    assert finding.status is Status.warning
    assert finding.found.endswith(
        "They reach everything that this machine does, its loopback included."
    )
    assert finding.advice == "Set jobs.network to outbound, or to none."


def sandbox_works() -> bool:
    return sandbox_runner(Path(), image_map=(), network=True).look().usable


async def test_why_there_are_no_network_groups_is_said(tmp_path: Path) -> None:
    finding = await jobs.check(on(tmp_path, runner="process"))

    assert finding.found.endswith(
        "There are no network groups. Jobs are plain processes here, which share the network of "
        "the machine."
    )
