"""What is wrong with a job is said in a sentence that names the field and the rule."""

from dataclasses import replace
from typing import Any

import httpx2
import pytest

from hublet.core.config import Settings
from hublet.core.config.kinds import FlavorSize
from hublet.jobs.requests import machine_arch
from jobs.jobs_api import PATH, refusal, run
from people import Headers

BOTH = "A job has exactly one of spaceId and dockerImage."
LONGEST = 131_071


@pytest.fixture
def settings(settings: Settings) -> Settings:
    """A hub that offers two flavors, and names that are none."""
    sizes = tuple(
        FlavorSize(name=name, cores=cores, memory_bytes=gigabytes * 2**30)
        for name, cores, gigabytes in (("cpu-basic", 0.5, 1), ("none-such", 1, 1), ("h200", 8, 64))
    )
    jobs = replace(settings.jobs, flavors=sizes, max_timeout_seconds=3600)
    return replace(settings, jobs=jobs)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        pytest.param({"spaceId": "ada/app"}, BOTH, id="a space and an image"),
        pytest.param({"dockerImage": "", "spaceId": ""}, "dockerImage", id="neither"),
        pytest.param({"command": []}, "command must have at least 1 item", id="no command"),
        pytest.param({"command": [""]}, "command[0] must have at least 1 character", id="no word"),
        pytest.param(
            {"flavor": "huge"}, "flavor must be one of 'cpu-basic',", id="an unknown flavor"
        ),
        pytest.param(
            {"flavor": "t4-small"},
            "flavor: this hub does not offer t4-small; it offers cpu-basic, h200.",
            id="a flavor that is not offered",
        ),
        pytest.param(
            {"timeoutSeconds": 3601},
            "timeoutSeconds must be at most 3600 on this hub.",
            id="too long",
        ),
        pytest.param({"timeoutSeconds": 0}, "timeoutSeconds must be greater than 0", id="no time"),
        pytest.param({"attempts": 0}, "attempts must be at least 1", id="no attempt"),
        pytest.param(
            {"expose": {"ports": [80, 81, 80]}},
            "expose: each of ports must stand there once",
            id="a port twice",
        ),
        pytest.param(
            {"expose": {"ports": [80], "portsPublic": [80, 80]}},
            "expose: each of portsPublic must stand there once",
            id="a public port twice",
        ),
        pytest.param(
            {"expose": {"ports": [80], "portsPublic": [81]}},
            "expose: each of portsPublic must also be one of ports",
            id="a public port that is not exposed",
        ),
        pytest.param({"expose": {"ports": [0]}}, "expose.ports[0] must be at least 1", id="port 0"),
        pytest.param(
            {"expose": {"ports": list(range(1, 22))}},
            "expose.ports must have at most 20 items",
            id="21 ports",
        ),
        pytest.param({"labels": {"a b": "x"}}, "labels: each name must match", id="a label's name"),
        pytest.param({"labels": {"a": "ü"}}, "labels.a must match", id="a label's value"),
        pytest.param({"network": {"group": "A"}}, "network.group must match", id="a group's name"),
        pytest.param({"resourceGroupId": "x"}, "resourceGroupId must match", id="no group's id"),
        pytest.param({"extra": 1}, "extra is not a known field", id="another field"),
        pytest.param(
            {"environment": {"AB": "é" * 65_536}},
            f"environment.AB must have at most {LONGEST} bytes.",
            id="a variable longer than the kernel takes",
        ),
        pytest.param(
            {"secrets": {"K": "é" * 65_536}},
            f"secrets.K must have at most {LONGEST} bytes.",
            id="a secret longer than the kernel takes",
        ),
        pytest.param(
            {"command": ["x", "é" * 65_536]},
            f"command[1] must have at most {LONGEST} bytes.",
            id="a word longer than the kernel takes",
        ),
        pytest.param(
            {"arguments": ["é" * 65_536]},
            f"arguments[0] must have at most {LONGEST} bytes.",
            id="an argument longer than the kernel takes",
        ),
    ],
)
async def test_a_job_that_breaks_a_rule_is_refused(
    client: httpx2.AsyncClient, ada: Headers, body: dict[str, Any], sentence: str
) -> None:
    status, error = await refusal(client, ada, **body)

    assert status == 400
    assert error.startswith(sentence)
    assert (await client.get(PATH, headers=ada)).json() == []


async def test_neither_a_space_nor_an_image_is_refused(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    response = await client.post(PATH, headers=ada, json={"flavor": "cpu-basic"})

    assert response.status_code == 400
    assert "a job needs spaceId or dockerImage" in response.json()["error"]


async def test_the_most_that_is_allowed_is_taken(client: httpx2.AsyncClient, ada: Headers) -> None:
    job = await run(
        client,
        ada,
        flavor="h200",
        timeoutSeconds=3600,
        environment={"AB": "é" * 65_534},
        expose={"ports": list(range(1, 21)), "portsPublic": []},
    )
    assert (job["timeout"], len(job["status"]["exposeUrls"])) == (3600, 20)


async def test_the_hardware_is_what_the_settings_offer(client: httpx2.AsyncClient) -> None:
    listed = (await client.get("/api/jobs/hardware")).json()
    assert [(each["name"], each["cpu"], each["ram"]) for each in listed] == [
        ("cpu-basic", "0.5 vCPU", "1 GB"),
        ("h200", "8 vCPU", "64 GB"),
    ]


async def test_only_the_arch_of_this_machine_is_run(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    mine = machine_arch()
    assert mine is not None
    other = {"amd64": "arm64", "arm64": "amd64"}[mine]

    assert (await run(client, ada, arch=mine))["arch"] == mine
    sentence = f"arch: this hub does not run {other}; it runs {mine}."
    assert await refusal(client, ada, arch=other) == (400, sentence)


@pytest.mark.parametrize(
    ("what", "body", "sentence"),
    [
        ("labels", {"labels": {"a b": ""}}, "labels: each name must match"),
        ("labels", {}, "labels is required"),
        ("expose", {"ports": [80, 80]}, "The body: each of ports must stand there once"),
        ("expose", {"portsPublic": []}, "ports is required"),
    ],
)
async def test_a_change_that_breaks_a_rule_is_refused(
    client: httpx2.AsyncClient, ada: Headers, what: str, body: Any, sentence: str
) -> None:
    job = await run(client, ada)

    response = await client.put(f"{PATH}/{job['id']}/{what}", headers=ada, json=body)

    assert response.status_code == 400
    assert response.json()["error"].startswith(sentence)
