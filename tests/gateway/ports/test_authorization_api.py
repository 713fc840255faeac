"""Who is let in to the ports of a job, and what everybody else hears."""

import asyncio
from collections.abc import AsyncIterator

import httpx2
import pytest
from fastapi import FastAPI

from gateway.ports.job_ports import DOMAIN, Job, PortClient, Script, a_port_client, a_running_job
from hublet.accounts.records import Role
from hublet.core.database import Database
from hublet.tokens.records import TokenRole
from jobs.jobs_api import an_attempt, run, set_row
from people import Headers, an_organization, sign_in


def hello(job: Job) -> Script:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await job.read_head(reader)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")

    return script


@pytest.fixture
async def port(
    app: FastAPI, client: httpx2.AsyncClient, database: Database, ada: Headers
) -> AsyncIterator[PortClient]:
    async with a_port_client(app, client, database, ada, hello) as port:
        yield port


async def ask(port: PortClient, host: str, headers: Headers | None = None) -> httpx2.Response:
    async with httpx2.AsyncClient() as visitor:
        address = f"http://127.0.0.1:{port.hub_port}/some/path?a=b"
        return await visitor.get(address, headers={"Host": host, **(headers or {})})


async def error_of(
    port: PortClient, host: str, headers: Headers | None = None
) -> tuple[int, object]:
    answer = await ask(port, host, headers)
    return answer.status_code, answer.json()["error"]


async def test_a_token_that_reads_the_jobs_is_let_in(port: PortClient, ada: Headers) -> None:
    answer = await ask(port, port.host(), ada)

    assert (answer.status_code, answer.text) == (200, "hello")
    assert "x-error-message" not in answer.headers


async def test_a_public_port_lets_everybody_in(port: PortClient) -> None:
    assert (await ask(port, port.host(9000))).text == "hello"


async def test_without_a_token_nobody_learns_whether_there_is_a_job(port: PortClient) -> None:
    sentence = "This port of the job needs a token that reads what its owner has."
    unknown = f"{'0' * 24}--8080.{DOMAIN}"

    for host in (port.host(), unknown, port.host(7)):
        answer = await ask(port, host)
        assert (answer.status_code, answer.json()) == (401, {"error": sentence})
        assert answer.headers["www-authenticate"] == "Bearer"
    wrong = {"Authorization": "Bearer hf_wrong"}
    assert await error_of(port, port.host(), wrong) == (401, sentence)


async def test_a_stranger_hears_that_there_is_none(port: PortClient, database: Database) -> None:
    bob = await sign_in(database, "bob")
    sentence = f"There is no job {port.job_id}, or you cannot see it."

    assert await error_of(port, port.host(), bob) == (404, sentence)
    assert await error_of(port, port.host(7), bob) == (404, sentence)
    assert (await ask(port, port.host(9000), bob)).text == "hello"
    assert b"authorization" not in port.job.heads[0]


async def test_a_token_that_reads_the_namespace_is_enough(
    port: PortClient, database: Database
) -> None:
    reading = await sign_in(database, "ada", role=TokenRole.read)
    good = [await sign_in(database, "ada", scopes=[scope]) for scope in ("jobs", "read-repos")]
    other = await sign_in(database, "ada", scopes=["webhooks"])

    for token in (reading, *good):
        assert (await ask(port, port.host(), token)).text == "hello"
    assert (await error_of(port, port.host(), other))[0] == 404


async def test_members_reach_the_jobs_of_their_organization(
    port: PortClient, client: httpx2.AsyncClient, database: Database
) -> None:
    await an_organization(
        database, "engines", members={"eve": Role.write, "max": Role.read, "out": Role.admin}
    )
    eve, member, stranger = [await sign_in(database, name) for name in ("eve", "max", "bob")]
    body = {
        "dockerImage": "x",
        "flavor": "cpu-basic",
        "command": ["true"],
        "expose": {"ports": [80]},
    }
    job = (await client.post("/api/jobs/engines", headers=eve, json=body)).json()
    await an_attempt(database, job["id"], runner="process", handle="somewhere")
    await set_row(database, job["id"], stage="RUNNING", due_at=None)
    host = f"{job['id']}--80.{DOMAIN}"

    assert (await ask(port, host, eve)).text == "hello"
    assert (await ask(port, host, member)).text == "hello"
    assert (await ask(port, host, stranger)).status_code == 404


async def test_a_port_that_is_not_exposed_is_not_found(port: PortClient, ada: Headers) -> None:
    sentence = f"The job {port.job_id} does not expose port 8081."

    assert await error_of(port, port.host(8081), ada) == (404, sentence)


@pytest.mark.parametrize(
    ("stage", "status", "sentence"),
    [
        ("SCHEDULING", 503, "The job {} has not begun yet: try again."),
        ("COMPLETED", 410, "The job {} is over."),
        ("ERROR", 410, "The job {} is over."),
        ("CANCELED", 410, "The job {} is over."),
    ],
)
async def test_a_job_that_does_not_run_says_so(
    port: PortClient, database: Database, ada: Headers, stage: str, status: int, sentence: str
) -> None:
    await set_row(database, port.job_id, stage=stage)

    answer = await ask(port, port.host(), ada)

    assert answer.status_code == status
    assert answer.json() == {"error": sentence.format(port.job_id)}
    assert answer.headers.get("retry-after") == ("1" if status == 503 else None)
    assert (await ask(port, port.host(9000))).status_code == status


@pytest.mark.parametrize(
    "host",
    [
        pytest.param("jobs.localhost", id="the domain itself"),
        pytest.param("other.jobs.localhost", id="another name under it"),
        pytest.param("{id}.jobs.localhost", id="a job without a port"),
        pytest.param("{id}--08080.jobs.localhost", id="a port with a zero before it"),
        pytest.param("{id}--0.jobs.localhost", id="port zero"),
        pytest.param("{id}--65536.jobs.localhost", id="a port that there cannot be"),
        pytest.param("x{id}--8080.jobs.localhost", id="something before it"),
        pytest.param("a.{id}--8080.jobs.localhost", id="a name below it"),
        pytest.param("{id}--8080.jobs.localhost.", id="a dot behind it"),
    ],
)
async def test_other_hosts_under_the_domain_are_nothing_and_never_the_hub(
    port: PortClient, ada: Headers, host: str
) -> None:
    sentence = "There is nothing at this host: ports of jobs are at <job>--<port>."

    assert await error_of(port, host.format(id=port.job_id), ada) == (404, sentence)
    assert port.job.heads == []


@pytest.mark.parametrize("host", ["{id}--8080.JOBS.localhost:1", "{id}--8080.jobs.LOCALHOST"])
async def test_a_host_is_read_without_its_port_and_in_any_case(
    port: PortClient, ada: Headers, host: str
) -> None:
    assert (await ask(port, host.format(id=port.job_id), ada)).text == "hello"


@pytest.mark.parametrize(
    "host", ["hub.test", "127.0.0.1", "{id}--8080.jobs.localhost.example", "{id}--8080.other"]
)
async def test_the_hubs_own_host_never_serves_a_job(
    port: PortClient, ada: Headers, host: str
) -> None:
    answer = await ask(port, host.format(id=port.job_id), ada)

    assert answer.status_code == 404
    assert answer.json() == {"error": "Repository not found"}
    assert port.job.heads == []


async def test_nothing_below_the_hubs_own_path_reaches_the_job(
    port: PortClient, ada: Headers
) -> None:
    async with httpx2.AsyncClient() as visitor:
        for path in ("/.hublet/enter", "/.hublet/other"):
            address = f"http://127.0.0.1:{port.hub_port}{path}"
            answer = await visitor.get(address, headers={"Host": port.host(), **ada})
            assert answer.status_code == 404

    assert port.job.heads == []


async def test_a_runner_of_another_machine_is_a_502(
    app: FastAPI, client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    job_id = await a_running_job(client, database, ada)
    host = {"Host": f"{job_id}--8080.{DOMAIN}"}
    transport = client._transport  # noqa: SLF001 - without the description, which has no hosts.
    async with httpx2.AsyncClient(transport=transport, base_url="http://hub.test") as visitor:
        answer = await visitor.get("/", headers=ada | host)

    assert answer.status_code == 502
    assert answer.json() == {
        "error": f"The job {job_id} is not running on the machine that answers here, or it has "
        "just ended: ports are reached through the hub's process on the machine of the job."
    }
    await app.state.ports.stop()


async def test_addresses_of_ports_come_with_the_job_in_the_order_of_its_ports(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    exposing = await run(client, ada, expose={"ports": [9000, 80]})
    closed = await run(client, ada)

    job_id = exposing["id"]
    assert exposing["status"]["exposeUrls"] == [
        f"http://{job_id}--9000.{DOMAIN}",
        f"http://{job_id}--80.{DOMAIN}",
    ]
    assert "exposeUrls" not in closed["status"]
