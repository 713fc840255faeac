"""A hub behind PgBouncer in transaction mode: server, worker and commands share two sessions."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from huggingface_hub import CommitOperationAdd, HfApi

from patience import SOON_SECONDS
from postgresql_server import PostgresqlServer
from processes import Place, run_hublet, serving, wait_until, working

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")

pytestmark = pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed")


@pytest.fixture
def server() -> Iterator[PostgresqlServer]:
    with tempfile.TemporaryDirectory(prefix="hublet-pg-", ignore_cleanup_errors=True) as folder:
        server = PostgresqlServer(Path(folder))
        yield server
        server.remove()


@pytest.fixture
def bouncer(server: PostgresqlServer) -> Iterator[str]:
    """The address of a PgBouncer that has two sessions for everybody."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    [host] = parse_qs(urlsplit(server.url).query)["host"]
    with tempfile.TemporaryDirectory(prefix="hublet-bouncer-") as folder:
        Path(folder).chmod(0o755)
        config = Path(folder) / "pgbouncer.ini"
        config.write_text(
            f"[databases]\n* = host={host} user=postgres\n[pgbouncer]\n"
            f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
            "pool_mode = transaction\ndefault_pool_size = 2\nmax_client_conn = 100\n"
        )
        # It refuses to run as root.
        user = ["-u", "pgserver"] if os.getuid() == 0 else []
        process = subprocess.Popen([str(PGBOUNCER), "-q", *user, str(config)])
        try:
            wait_until(lambda: _is_open(port), seconds=SOON_SECONDS)
            yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def _is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Inbox:
    """What a receiver of webhooks was sent."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._socket.settimeout(SOON_SECONDS)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/"

    def receive(self) -> bytes:
        connection, _ = self._socket.accept()
        with connection:
            head = connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        return head

    def close(self) -> None:
        self._socket.close()


def test_the_core_of_a_hub_works_through_transaction_pooling(
    server: PostgresqlServer, bouncer: str, tmp_path: Path
) -> None:
    place = Place(folder=tmp_path, database_url=bouncer)
    variables = {
        "HUBLET_DATABASE_PGBOUNCER": "true",
        "HUBLET_DATABASE_LISTEN_URL": server.url,
        "HUBLET_TEST_MODE": "true",
        # What is not announced would be found too late for this test.
        "HUBLET_WORKER_POLL_SECONDS": "60",
    }
    with (
        closing(Inbox()) as receiver,
        serving(place, variables=variables) as hub,
        working(place, variables=variables),
    ):
        tokens = [_token(place, name, variables) for name in ("ada", "grace")]
        ada, grace = (HfApi(endpoint=hub.address, token=token) for token in tokens)
        ada.create_repo("ada/engine")
        with hub.client(tokens[0]) as client:
            created = client.post(
                "/api/settings/webhooks",
                json={
                    "url": receiver.url,
                    "watched": [{"type": "model", "name": "ada/engine"}],
                    "domains": ["repo"],
                },
            )
            assert created.status_code == 200, created.text
            added = CommitOperationAdd("a.txt", b"coal")
            ada.create_commit("ada/engine", operations=[added], commit_message="Add a")
            assert b"webhook-id" in receiver.receive().lower()
            grace.create_discussion("ada/engine", title="It does not turn")
            wait_until(lambda: _unread(client) == 1, seconds=SOON_SECONDS)
        assert ada.hf_hub_download("ada/engine", "a.txt", cache_dir=tmp_path / "cache")


def _token(place: Place, name: str, variables: dict[str, str]) -> str:
    for command in (
        ("user", "add", name, "--email", f"{name}@hub.test"),
        ("token", "create", name),
    ):
        done = run_hublet(*command, *place.flags, folder=place.folder, variables=variables)
        assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def _unread(client: httpx2.Client) -> int:
    count: int = client.get("/api/notifications").json()["count"]["unread"]
    return count


def test_a_hub_behind_pgbouncer_needs_a_way_past_it(tmp_path: Path) -> None:
    done = run_hublet(
        *("migrate", "--data-dir", str(tmp_path), "--database-url", "postgresql://h@127.0.0.1:1/h"),
        folder=tmp_path,
        variables={"HUBLET_DATABASE_PGBOUNCER": "true"},
    )

    assert done.returncode == 1
    assert "database.listen_url is missing" in done.stderr
