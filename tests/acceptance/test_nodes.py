"""Several nodes and several processes on one PostgreSQL, as operators run them."""

import itertools
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

import httpx2
import pytest

from cluster import cluster
from processes import READY_SECONDS, Place, Server, clean_environment, serving, started, wait_until

# Longer than the balancer needs to see that a node is not ready any more, also on a busy machine.
DRAIN = {"HUBLET_SERVER_DRAIN_SECONDS": "3"}


@pytest.fixture
def postgresql_place(fresh_url: Callable[[], str], tmp_path: Path) -> Place:
    return Place(folder=tmp_path, database_url=fresh_url())


def test_the_balancer_alternates_and_each_node_reads_what_another_wrote(
    postgresql_place: Place,
) -> None:
    with (
        cluster(postgresql_place, nodes=2) as running,
        running.server.client(running.server.token) as client,
    ):
        for number in range(6):
            name = f"model-{number}"
            created = client.post("/api/repos/create", json={"type": "model", "name": name})
            assert created.status_code == 200
            assert client.get(f"/api/models/admin/{name}").status_code == 200
            assert client.get("/api/whoami-v2").json()["name"] == "admin"

        assert sorted(running.balancer.served.values()) == [9, 9]
        assert running.balancer.failures == []


class Load:
    """Clients that read and write all the time, and note each request that fails."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._stopped = threading.Event()
        self.failures: list[str] = []
        self.done: Counter[str] = Counter()
        self._threads = [
            threading.Thread(target=self._repeat, args=[work], name=work.__name__)
            for work in (self._read, self._read, self._write, self._upload)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()

    def has_done(self, count: int) -> bool:
        kinds = ("_read", "_write", "_upload")
        return bool(self.failures) or all(self.done[kind] >= count for kind in kinds)

    def _repeat(self, work: Callable[[httpx2.Client, int], None]) -> None:
        number = 0
        # With kept connections, as clients have them.
        with httpx2.Client(
            base_url=self._server.address,
            headers={"Authorization": f"Bearer {self._server.token}"},
            timeout=READY_SECONDS,
            trust_env=False,
        ) as client:
            while not self._stopped.is_set():
                number += 1
                try:
                    work(client, number)
                except Exception as error:  # noqa: BLE001 - whatever it is, it is a failed request
                    self.failures.append(f"{work.__name__}: {error!r}")
                self.done[work.__name__] += 1

    def _read(self, client: httpx2.Client, _number: int) -> None:
        for path in ("/api/whoami-v2", "/api/models/admin/load", "/admin/load/resolve/main/a.txt"):
            client.get(path).raise_for_status()

    def _write(self, client: httpx2.Client, number: int) -> None:
        body = {"type": "dataset", "name": f"written-{number}"}
        client.post("/api/repos/create", json=body).raise_for_status()
        client.get(f"/api/datasets/admin/written-{number}").raise_for_status()

    def _upload(self, _client: httpx2.Client, number: int) -> None:
        hf(self._server, "upload", "admin/load", ".", "many", text=f"upload {number}")


def hf(server: Server, *arguments: str, text: str) -> None:
    """Upload a folder with one file by the public command, which does not retry what failed."""
    folder = Path(str(server.process.stdout.parent)) / "upload"
    folder.mkdir(exist_ok=True)
    (folder / "a.txt").write_text(text)
    (folder / "large.bin").write_bytes(os.urandom(1 << 20))
    variables = {
        "HF_ENDPOINT": server.address,
        "HF_TOKEN": server.token or "",
        "HF_HOME": str(folder.parent / "client"),
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_HUB_DISABLE_UPDATE_CHECK": "1",
    }
    ended = subprocess.run(
        [sys.executable, "-c", "from huggingface_hub.cli.hf import main; main()", *arguments],
        cwd=folder,
        env=clean_environment(variables),
        capture_output=True,
        text=True,
        timeout=READY_SECONDS,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr


def test_a_rolling_restart_under_load_fails_no_request(postgresql_place: Place) -> None:
    with cluster(postgresql_place, nodes=2, variables=DRAIN, retries=False) as running:
        server = running.server
        with server.client(server.token) as client:
            created = client.post("/api/repos/create", json={"type": "model", "name": "load"})
            assert created.status_code == 200
        hf(server, "upload", "admin/load", ".", text="first")
        with Load(server) as load:
            wait_until(lambda: load.has_done(1), seconds=READY_SECONDS)
            running.restart_each()
            done = max(load.done.values())
            wait_until(lambda: load.has_done(2), seconds=READY_SECONDS)

        assert load.failures == []
        assert running.balancer.failures == []
        assert done > 0


def test_a_node_that_stops_says_so_serves_on_and_ends_its_streams(
    postgresql_place: Place,
) -> None:
    variables = {"HUBLET_SERVER_DRAIN_SECONDS": "3600"}
    with serving(postgresql_place, variables=variables, alone=True) as server:
        stream = "/api/notifications/stream"
        with server.client(server.token) as client, client.stream("GET", stream) as events:
            assert events.status_code == 200
            server.process.popen.send_signal(signal.SIGTERM)
            wait_until(lambda: client.get("/readyz").status_code == 503, seconds=READY_SECONDS)
            assert client.get("/healthz").status_code == 200
            served = client.get("/api/whoami-v2", headers={"Connection": "keep-alive"})
            assert (served.status_code, served.headers["connection"]) == (200, "close")
            # A second signal ends the wait, and the stream with it.
            server.process.popen.send_signal(signal.SIGTERM)
            events.read()
        assert server.process.popen.wait(READY_SECONDS) == 0


def test_an_api_leaves_the_work_to_a_worker_that_shows_its_health(place: Place) -> None:
    with (
        serving(place, "--role", "api", alone=True) as server,
        server.client(server.token) as client,
    ):
        body = {"type": "model", "name": "engine"}
        assert client.post("/api/repos/create", json=body).status_code == 200
        assert level(client, "hublet_outbox_waiting") > 0
        with started(place, "serve", "--json", "--port", "0", "--role", "worker") as worker:
            address = f"http://{worker.told()['address']}"
            with httpx2.Client(base_url=address, trust_env=False) as health:
                assert health.get("/healthz").json() == {"status": "ok"}
                assert health.get("/readyz").json() == {"status": "ok"}
                assert health.get("/api/whoami-v2").status_code == 404
                wait_until(
                    lambda: level(health, "hublet_outbox_waiting") == 0, seconds=READY_SECONDS
                )


def test_each_node_shows_what_a_job_uses_that_one_of_them_runs(
    postgresql_place: Place, bucket_url: str
) -> None:
    variables = {"HUBLET_JOBS_RUNNER": "process"}
    with (
        cluster(postgresql_place, nodes=2, store=bucket_url, variables=variables) as running,
        running.server.client(running.server.token) as client,
    ):
        body = {"dockerImage": "ubuntu", "flavor": "cpu-basic", "command": ["sleep", "600"]}
        job = f"/api/jobs/admin/{client.post('/api/jobs/admin', json=body).json()['id']}"

        def is_running() -> bool:
            stage: str = client.get(job).json()["status"]["stage"]
            return stage == "RUNNING"

        wait_until(is_running, seconds=READY_SECONDS)
        used = [measured_memory(f"{node.address}{job}", client) for node in running.nodes]
        client.post(f"{job}/cancel").raise_for_status()
        wait_until(lambda: not is_running(), seconds=READY_SECONDS)

    assert all(used)


def measured_memory(url: str, client: httpx2.Client) -> int:
    """Return the memory of the first measurement that is not empty, or of the tenth."""
    memory = 0
    with client.stream("GET", f"{url}/metrics") as stream:
        metrics = (line for line in stream.iter_lines() if line.startswith("data: "))
        for line in itertools.islice(metrics, 10):
            memory = json.loads(line.removeprefix("data: "))["memory_used_bytes"]
            if memory:
                break
    return int(memory)


def level(client: httpx2.Client, name: str) -> float:
    found = re.search(rf"^{name} (\S+)$", client.get("/metrics").text, re.MULTILINE)
    assert found is not None
    return float(found[1])


def processes_in(text: str) -> set[str]:
    return set(re.findall(r'process="([a-z0-9-]+)"', text))


def children_of(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(each) for each in text.split()]


def test_processes_behind_one_port_are_restarted_and_told_apart(postgresql_place: Place) -> None:
    with (
        serving(postgresql_place, "--processes", "2", alone=True) as server,
        server.client() as client,
    ):
        expected = {"api-1", "api-2", "worker"}
        popen = server.process.popen
        before = children_of(popen.pid)
        assert len(before) == 3

        def every_process_has_answered() -> bool:
            client.get("/api/models").raise_for_status()
            return processes_in(client.get("/metrics").text) == expected

        wait_until(every_process_has_answered, seconds=READY_SECONDS)
        os.kill(before[0], signal.SIGKILL)
        server.process.wait_for("process has ended, and starts again")
        assert client.get("/api/models").status_code == 200
        server.process.wait_for("process is back")
        assert len(children_of(popen.pid)) == 3
        wait_until(every_process_has_answered, seconds=READY_SECONDS)
        server.process.stop()
        assert '"process": "worker"' in server.process.stderr.read_text()


@pytest.fixture
def two_cores() -> Iterator[None]:
    """Let what a test starts have two cores, however many the machine has."""
    allowed = os.sched_getaffinity(0)
    if len(allowed) == 1:
        pytest.skip("The machine has one core, so `auto` is one process.")
    os.sched_setaffinity(0, sorted(allowed)[:2])
    yield
    os.sched_setaffinity(0, allowed)


@pytest.mark.usefixtures("two_cores")
def test_processes_for_all_cores_stop_when_their_parent_was_killed(
    postgresql_place: Place,
) -> None:
    with serving(postgresql_place, "--processes", "auto", alone=True) as server:
        children = children_of(server.process.popen.pid)
        # And the worker.
        assert len(children) == 3
        server.process.kill()
        wait_until(
            lambda: not any(Path(f"/proc/{pid}").exists() for pid in children),
            seconds=READY_SECONDS,
        )


def test_two_nodes_allow_at_most_twice_a_limit(postgresql_place: Place) -> None:
    quota = 30
    variables = {"HUBLET_LIMITS_ANONYMOUS_REQUESTS": str(quota)}
    with cluster(postgresql_place, nodes=2, variables=variables) as running:
        with httpx2.Client(trust_env=False) as client:
            addresses = [node.address for node in running.nodes]
            statuses = [
                client.get(f"{address}/api/models").status_code
                for _ in range(2 * quota)
                for address in addresses
            ]
            allowed = Counter(statuses)[200]

        assert set(statuses) == {200, 429}
        assert allowed == 2 * (2 * quota // 3)
