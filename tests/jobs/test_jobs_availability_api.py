"""A hub that cannot run a job says so before it takes one."""

from dataclasses import replace
from datetime import timedelta

import httpx2
import pytest
from fastapi import FastAPI

from hublet.core.config import Settings
from hublet.core.config.kinds import ImageSource
from hublet.runtime.records import RunnerCapabilities
from hublet.runtime.sandbox.runner import sandbox_runner
from hublet.runtime.sandbox.shim_runner import process_runner
from hublet.runtime.supervisor import runner_selection
from hublet.runtime.supervisor.runner_selection import RunnerChoice
from jobs.jobs_api import PATH, Capable, refusal, run
from people import Headers

WHY = "The sandbox runner needs bubblewrap; install the package bubblewrap."


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """A hub that takes the best runner there is, and knows images of Debian."""
    images = (ImageSource(pattern="debian:*", target="host"),)
    return replace(settings, jobs=replace(settings.jobs, runner="auto", images=images))


class Chosen:
    """Takes the place of the choice of a runner."""

    def __init__(self, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
        self._data_dir = settings.database.data_dir
        self.usable = False
        self.looks = 0
        monkeypatch.setattr(runner_selection, "choose_runner", self._choose)

    async def _choose(self, settings: Settings) -> RunnerChoice:
        self.looks += 1
        if settings.jobs.runner == "docker":
            return RunnerChoice(
                runner=None, capabilities=RunnerCapabilities(usable=False, sentence="No Docker.")
            )
        if settings.jobs.runner == "process":
            runner = process_runner(self._data_dir)
        else:
            runner = sandbox_runner(self._data_dir, image_map=(), network=False)
        sentence = "It works." if self.usable else WHY
        return RunnerChoice(
            runner=runner, capabilities=RunnerCapabilities(usable=self.usable, sentence=sentence)
        )


@pytest.fixture
def chosen(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Chosen:
    return Chosen(settings, monkeypatch)


async def test_without_a_runner_the_reason_is_said(
    client: httpx2.AsyncClient, ada: Headers, chosen: Chosen
) -> None:
    response = await client.post(
        PATH, headers=ada, json={"dockerImage": "debian:12", "flavor": "cpu-basic"}
    )

    assert response.status_code == 503
    assert response.json() == {"error": f"This hub cannot run jobs now. {WHY}"}
    assert response.headers["retry-after"] == "30"
    assert (await client.get(PATH, headers=ada)).json() == []


async def test_a_runner_that_works_is_remembered_and_one_that_does_not_looked_at_again(
    client: httpx2.AsyncClient, ada: Headers, chosen: Chosen, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = 1000.0
    monkeypatch.setattr(runner_selection, "monotonic", lambda: seconds)
    for _ in range(2):
        assert (await refusal(client, ada, dockerImage="debian:12"))[0] == 503
    assert chosen.looks == 1

    chosen.usable = True
    seconds += timedelta(minutes=1).total_seconds()
    await run(client, ada, dockerImage="debian:12")
    seconds += timedelta(days=1).total_seconds()
    await run(client, ada, dockerImage="debian:12")
    assert chosen.looks == 2


@pytest.mark.parametrize("allowed", [True, False])
async def test_without_a_map_every_image_is_this_machine_unless_that_is_forbidden(
    client: httpx2.AsyncClient,
    ada: Headers,
    settings: Settings,
    chosen: Chosen,
    app: FastAPI,
    *,
    allowed: bool,
) -> None:
    chosen.usable = True
    jobs = replace(settings.jobs, runner="auto", images=(), host_programs=allowed)
    app.state.jobs = runner_selection.RunnerAvailability(replace(settings, jobs=jobs))

    status, sentence = await refusal(client, ada, dockerImage="ubuntu:24")

    assert status == (200 if allowed else 400)
    assert allowed or sentence.startswith("dockerImage: this hub has no image ubuntu:24; ")


async def test_an_image_that_is_not_on_this_machine_is_refused(
    client: httpx2.AsyncClient, ada: Headers, chosen: Chosen
) -> None:
    chosen.usable = True
    job = await run(client, ada, dockerImage="debian:12")

    sentence = (
        "dockerImage: this hub has no image ubuntu:24; its operator maps names of images to what "
        "they are here, in the setting jobs.images: *=host makes every name a view of "
        "the hub's own machine."
    )
    assert await refusal(client, ada, dockerImage="ubuntu:24") == (400, sentence)
    copy = await client.post(f"{PATH}/{job['id']}/duplicate", headers=ada)
    assert copy.status_code == 200


async def test_a_runner_that_the_settings_name_may_work_where_the_workers_are(
    client: httpx2.AsyncClient, ada: Headers, settings: Settings, chosen: Chosen, app: FastAPI
) -> None:
    for runner, status in (("sandbox", 200), ("process", 200), ("docker", 503)):
        named = replace(settings, jobs=replace(settings.jobs, runner=runner))
        app.state.jobs = runner_selection.RunnerAvailability(named)
        assert (await refusal(client, ada, dockerImage="debian:12"))[0] == status


async def test_a_node_that_only_serves_takes_jobs_for_the_workers_elsewhere(
    client: httpx2.AsyncClient, ada: Headers, settings: Settings, chosen: Chosen, app: FastAPI
) -> None:
    assert not chosen.usable
    for role, status in (("all", 503), ("api", 200)):
        server, jobs = replace(settings.server, role=role), replace(settings.jobs, runner="auto")
        node = replace(settings, server=server, jobs=jobs)
        app.state.jobs = runner_selection.RunnerAvailability(node)
        assert (await refusal(client, ada, dockerImage="debian:12"))[0] == status


GROUP = {"group": "train", "aliases": ["leader"]}


async def test_a_network_group_is_refused_where_there_are_none_and_the_reason_is_said(
    client: httpx2.AsyncClient, ada: Headers, chosen: Chosen
) -> None:
    chosen.usable = True

    status, sentence = await refusal(client, ada, dockerImage="debian:12", network=GROUP)

    assert status == 400
    assert sentence == (
        "network: this hub has no network groups. "
        "Its runner cannot give jobs addresses of their own."
    )
    assert (await client.get(PATH, headers=ada)).json() == []
    await run(client, ada, dockerImage="debian:12")


async def test_a_copy_of_a_job_in_a_group_is_refused_like_the_job(
    client: httpx2.AsyncClient, ada: Headers, settings: Settings, app: FastAPI
) -> None:
    app.state.jobs = Capable(settings)
    job = await run(client, ada, dockerImage="debian:12", network=GROUP)
    plain = replace(settings, jobs=replace(settings.jobs, runner="process"))
    app.state.jobs = runner_selection.RunnerAvailability(plain)

    copy = await client.post(f"{PATH}/{job['id']}/duplicate", headers=ada)

    assert copy.status_code == 400
    assert copy.json() == {
        "error": "network: this hub has no network groups. Jobs are plain processes here, which "
        "share the network of the machine."
    }


async def test_groups_may_be_where_the_workers_are(
    client: httpx2.AsyncClient, ada: Headers, settings: Settings, chosen: Chosen, app: FastAPI
) -> None:
    named = replace(settings, jobs=replace(settings.jobs, runner="sandbox"))
    app.state.jobs = runner_selection.RunnerAvailability(named)

    assert not chosen.usable
    await run(client, ada, dockerImage="debian:12", network=GROUP)
