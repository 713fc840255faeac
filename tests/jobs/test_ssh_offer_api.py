"""What the API says of SSH: where a job is entered, and why it cannot be."""

from dataclasses import replace
from typing import Any

import httpx2
import pytest

from hublet.core.config import Settings
from hublet.core.database import Database
from hublet.jobs import addresses
from jobs.jobs_api import refusal, run
from people import Headers
from runtime.supervisor.supervised_jobs import set_jobs

SSH = {"enabled": True}


@pytest.mark.parametrize(
    ("port", "place"),
    [
        pytest.param(2222, "ssh.jobs.localhost:2222", id="as it comes"),
        pytest.param(22, "ssh.jobs.localhost", id="the port that clients take by themselves"),
    ],
)
async def test_a_job_with_ssh_tells_where_it_is_entered(
    client: httpx2.AsyncClient, database: Database, ada: Headers, port: int, place: str
) -> None:
    set_jobs(database, ssh_port=port)

    job = await run(client, ada, ssh=SSH)

    assert job["status"]["sshUrl"] == f"ssh://{job['id']}@{place}"


@pytest.mark.parametrize("body", [{}, {"ssh": {"enabled": False}}])
async def test_a_job_without_ssh_tells_nothing(
    client: httpx2.AsyncClient, ada: Headers, body: dict[str, Any]
) -> None:
    job = await run(client, ada, **body)

    assert "sshUrl" not in job["status"]


async def test_a_hub_without_the_library_says_what_to_install(
    client: httpx2.AsyncClient, ada: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await run(client, ada, ssh=SSH)
    monkeypatch.setattr(addresses, "find_spec", lambda _: None)

    refused = await refusal(client, ada, ssh=SSH)
    shown = (await client.get(f"/api/jobs/ada/{before['id']}", headers=ada)).json()

    assert refused == (
        400,
        "ssh: this hub offers no SSH: its operator has not installed it: pip install 'hublet[ssh]'.",
    )
    assert "sshUrl" not in shown["status"]
    assert (await run(client, ada))["status"]["stage"] == "SCHEDULING"


async def test_a_hub_whose_operator_wants_no_ssh_says_so(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    set_jobs(database, ssh_port=0)

    sentence = "its operator has switched it off with the setting jobs.ssh_port"
    assert await refusal(client, ada, ssh=SSH) == (
        400,
        f"ssh: this hub offers no SSH: {sentence}.",
    )


def test_test_mode_takes_any_free_port() -> None:
    settings = Settings()
    off = replace(settings.jobs, ssh_port=0)
    server = replace(settings.server, test_mode=True)

    assert addresses.why_no_ssh(replace(settings, jobs=off)) == addresses.SSH_SWITCHED_OFF
    assert addresses.why_no_ssh(replace(settings, jobs=off, server=server)) is None
