"""Two machines with data folders of their own on one PostgreSQL: no job runs twice, all are reached."""

import asyncio
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncssh
import httpx2
import pytest
from benchmarks.processes import free_port

from faults.content_events import with_database
from gateway.ssh.guests import Key, register
from hublet.core.database import Database
from patience import SOON_SECONDS
from people import Headers, sign_in
from processes import Place, Server, run_hublet, serving, wait_until
from runtime.supervisor.supervised_jobs import a_job, cancel

LEASE_SECONDS = "6"
PORT_SERVER = """
import http.server, hashlib, base64, sys, time
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        if self.headers.get("upgrade"):
            self.wfile.write(b"HTTP/1.1 101 Switching Protocols\\r\\nupgrade: echo\\r\\nconnection: upgrade\\r\\n\\r\\n")
            while data := self.rfile.readline():
                self.wfile.write(data.upper())
            self.close_connection = True
            return
        body = f"seen {self.path}".encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        body = hashlib.sha256(body).hexdigest().encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A machine of the hub."""

    name: str
    place: Place
    ssh_port: int
    storage: Path

    @property
    def variables(self) -> dict[str, str]:
        return {
            "HUBLET_TEST_MODE": "true",
            "HUBLET_JOBS_RUNNER": "process",
            "HUBLET_JOBS_CORES": "100",
            "HUBLET_JOBS_MEMORY_BYTES": str(2**40),
            "HUBLET_JOBS_SSH_PORT": str(self.ssh_port),
            "HUBLET_SERVER_NODE_NAME": self.name,
            "HUBLET_STORAGE_URL": f"file://{self.storage}",
            "HUBLET_WORKER_LEASE_SECONDS": "2",
            "HUBLET_WORKER_POLL_SECONDS": "0.2",
        }

    @contextmanager
    def serving(self, lease_seconds: str = "600") -> Iterator[Server]:
        lease = {"HUBLET_WORKER_MACHINE_LEASE_SECONDS": lease_seconds}
        with serving(self.place, variables=self.variables | lease) as server:
            yield server


@pytest.fixture
def nodes(fresh_url: Callable[[], str], tmp_path: Path) -> tuple[Node, Node]:
    """Return two machines with the same keys; the first has been started once."""
    url = fresh_url()

    def node(name: str) -> Node:
        folder = tmp_path / name
        (folder / "data").mkdir(parents=True, mode=0o700)
        place = Place(folder=folder, database_url=url)
        return Node(name=name, place=place, ssh_port=free_port(), storage=tmp_path / "store")

    first, second = node("first"), node("second")
    with first.serving():
        pass
    keys = first.place.data_dir / "secret.keys"
    shutil.copy2(keys, second.place.data_dir / keys.name)
    return first, second


def rows(node: Node, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    async def read(database: Database) -> list[tuple[Any, ...]]:
        async with database.read() as conn:
            return [tuple(row) for row in await conn.fetch_all(sql, *values)]

    return with_database(node.place, read)


def start_job(node: Node, *command: str, **body: Any) -> str:
    async def start(database: Database) -> str:
        return await a_job(database, command=list(command), **body)

    return with_database(node.place, start)


def wait_for_stage(node: Node, job_id: str, *, stage: str, attempt: int = 1) -> None:
    sql = "SELECT stage, attempt FROM jobs WHERE id = $1"
    wait_until(lambda: rows(node, sql, job_id) == [(stage, attempt)], seconds=SOON_SECONDS * 2)


def test_a_job_whose_worker_was_killed_runs_once_until_the_lease_of_its_machine_ends(
    nodes: tuple[Node, Node], tmp_path: Path
) -> None:
    first, second = nodes
    begun = tmp_path / "begun"
    script = f"echo $$ >> {begun}; while true; do sleep 0.1; done"
    with first.serving(LEASE_SECONDS) as server:
        job_id = start_job(first, "sh", "-c", script, attempts=2)
        wait_for_stage(first, job_id, stage="RUNNING")
        with second.serving(LEASE_SECONDS):
            server.process.kill()
            killed_at = time.monotonic()
            wait_for_stage(second, job_id, stage="RUNNING", attempt=2)
            assert time.monotonic() - killed_at > float(LEASE_SECONDS) * 0.6
            [(reason,)] = rows(second, "SELECT reason FROM job_attempts WHERE number = 1")
            assert reason == "its machine first gives no sign of life"
            pids = begun.read_text().split()
            assert len(pids) == 2
            assert Path(f"/proc/{pids[0]}").exists()
            with first.serving():
                # It comes back, and ends the attempt that its job went on without.
                wait_until(lambda: not Path(f"/proc/{pids[0]}").exists(), seconds=SOON_SECONDS * 2)
                assert Path(f"/proc/{pids[1]}").exists()
                with_database(second.place, lambda database: cancel(database, job_id))
                wait_for_stage(second, job_id, stage="CANCELED", attempt=2)


def test_a_worker_that_comes_back_in_time_goes_on_with_its_job(
    nodes: tuple[Node, Node], tmp_path: Path
) -> None:
    first, second = nodes
    go_on = tmp_path / "go-on"
    with first.serving() as server:
        job_id = start_job(first, "sh", "-c", f"until [ -e {go_on} ]; do sleep 0.1; done")
        wait_for_stage(first, job_id, stage="RUNNING")
        with second.serving():
            server.process.kill()
            with first.serving():
                go_on.touch()
                wait_for_stage(first, job_id, stage="COMPLETED")

    assert rows(first, "SELECT count(*) FROM job_attempts") == [(1,)]


def test_a_cancellation_on_one_machine_ends_the_job_on_the_other(nodes: tuple[Node, Node]) -> None:
    first, second = nodes
    with first.serving():
        job_id = start_job(first, "sleep", "1000")
        wait_for_stage(first, job_id, stage="RUNNING")
        with second.serving() as other:
            headers = headers_of(second)
            with other.client() as client:
                path = f"/api/jobs/ada/{job_id}/cancel"
                assert client.post(path, headers=headers).status_code == 200
            wait_for_stage(second, job_id, stage="CANCELED")

    assert rows(first, "SELECT message FROM jobs") == [(None,)]


def headers_of(node: Node) -> Headers:
    return with_database(node.place, lambda database: sign_in(database, "ada"))


def test_a_node_with_a_folder_of_its_own_is_refused_without_a_shared_store(
    nodes: tuple[Node, Node], tmp_path: Path
) -> None:
    first, second = nodes
    with serving(first.place, variables={"HUBLET_TEST_MODE": "true"}):
        pass

    ended = run_hublet("serve", "--port", "0", *second.place.flags, folder=tmp_path)

    assert ended.returncode != 0
    known = (first.place.data_dir / "machine.id").read_text().strip()
    assert ended.stderr.strip() == (
        f"hublet: The data folder {second.place.data_dir} is not the one that this database belongs "
        "to, so it lacks repositories and files: give all nodes the same folder, or set storage.url; "
        f"if this is a copy of that folder, write {known} into its file machine.id."
    )


def test_a_port_of_a_job_is_reached_over_the_other_machine(nodes: tuple[Node, Node]) -> None:
    first, second = nodes
    port = free_port()
    with first.serving() as server:
        expose = {"ports": [port], "portsPublic": []}
        job_id = start_job(first, "python3", "-c", PORT_SERVER, str(port), expose=expose)
        wait_for_stage(first, job_id, stage="RUNNING")
        with second.serving() as other:
            host = f"{job_id}--{port}.jobs.localhost"
            headers = headers_of(second) | {"Host": host}

            def get(path: str) -> httpx2.Response:
                with other.client() as client:
                    return client.get(path, headers=headers)

            wait_until(lambda: get("/").status_code == 200, seconds=SOON_SECONDS)
            assert get("/a/page?b=c").text == "seen /a/page?b=c"
            with other.client() as client:
                assert client.get("/", headers={"Host": host}).status_code == 401
                large = client.post("/", headers=headers, content=b"x" * 5_000_000)
            assert len(large.text) == 64
            assert echo_over(other, host, headers["Authorization"]) == b"HELLO\n"
            server.process.kill()
            away = get("/")
            assert away.status_code == 503
            assert away.json()["error"] == (
                f"The job {job_id} runs on the machine first, which does not answer: try again."
            )
        with first.serving():
            with_database(first.place, lambda database: cancel(database, job_id))
            wait_for_stage(first, job_id, stage="CANCELED")


def echo_over(server: Server, host: str, authorization: str) -> bytes:
    """Upgrade a connection through a server, and return what comes back for a line."""
    address = httpx2.URL(server.address)
    with socket.create_connection((address.host, address.port), SOON_SECONDS) as made:
        made.sendall(
            f"GET / HTTP/1.1\r\nHost: {host}\r\nAuthorization: {authorization}\r\n"
            "Connection: upgrade\r\nUpgrade: echo\r\n\r\n".encode()
        )
        file = made.makefile("rb")
        assert b" 101 " in file.readline()
        while file.readline() != b"\r\n":
            pass
        made.sendall(b"hello\n")
        return file.readline()


def test_a_shell_of_a_job_is_reached_over_the_other_machine(nodes: tuple[Node, Node]) -> None:
    first, second = nodes
    port = free_port()
    with first.serving():
        key: Key = with_database(first.place, lambda database: register(database, "ada"))
        job_id = start_job(first, "python3", "-c", PORT_SERVER, str(port), ssh={"enabled": True})
        wait_for_stage(first, job_id, stage="RUNNING")
        with second.serving():
            asyncio.run(visit_over(first, second, job_id, key, port))
        with_database(first.place, lambda database: cancel(database, job_id))
        wait_for_stage(first, job_id, stage="CANCELED")


async def visit_over(first: Node, second: Node, job_id: str, key: Key, port: int) -> None:
    """Come to the second machine, and use everything that SSH offers in the job of the first."""
    keys = [
        await asyncssh.get_server_host_key("127.0.0.1", node.ssh_port, config=None)
        for node in (first, second)
    ]
    assert keys[0] is not None
    assert keys[1] is not None
    assert keys[0].public_data == keys[1].public_data
    async with (
        asyncio.timeout(SOON_SECONDS * 3),
        asyncssh.connect(
            "127.0.0.1",
            second.ssh_port,
            username=job_id,
            client_keys=[key.private],
            known_hosts=None,
            agent_path=None,
            config=None,
        ) as conn,
    ):
        ended = await conn.run("echo out; echo err >&2; echo $JOB_ID; exit 7")
        assert (ended.stdout, ended.stderr, ended.exit_status) == (f"out\n{job_id}\n", "err\n", 7)
        ended = await conn.run("sha256sum; kill -TERM $$", input="x" * 3_000_000)
        assert str(ended.stdout).startswith("e55b8bdf")
        assert ended.exit_signal is not None
        shell = await conn.run(None, input="tty; stty size; exit\n", term_type="xterm")
        assert "/dev/pts/" in str(shell.stdout)
        async with conn.start_sftp_client() as sftp:
            home = await sftp.realpath(".")
            async with sftp.open(f"{home}/note", "w") as file:
                await file.write("kept")
            assert await sftp.getsize(f"{home}/note") == 4
        reader, writer = await conn.open_connection("localhost", port)
        writer.write(b"GET /there HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        assert (await reader.read()).endswith(b"seen /there")
        with pytest.raises(asyncssh.ChannelOpenError):
            await conn.open_connection("localhost", 1)
