"""A streaming replica answers public lists while it follows; otherwise the primary does."""

import asyncio
import json
import os
import pwd
import shutil
import subprocess
import tempfile
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import asyncpg
import httpx2
import pytest

from hublet.core.config import Settings
from hublet.core.database import open_database
from hublet.core.database.postgresql import PostgresDatabase
from patience import SOON_SECONDS
from postgresql_server import PostgresqlServer
from processes import Place, serving
from processes import wait_until as wait_for
from scratch_database import hub_of, notes_of, notes_table, wait_until, write_note

pytestmark = pytest.mark.full

LAG = 1.0


class Standby:
    """A replica of a server, made by its own programs."""

    def __init__(self, primary: PostgresqlServer, folder: Path) -> None:
        self._server: Any = primary._server  # noqa: SLF001 - its programs and its user
        self._folder = folder
        self._data = folder / "data"
        self.url = f"postgresql://postgres:@/postgres?host={folder}"
        [host] = parse_qs(urlsplit(primary.url).query)["host"]
        if self._server.system_user is not None:
            owner = pwd.getpwnam(self._server.system_user)
            os.chown(folder, owner.pw_uid, owner.pw_gid)
        self._run("pg_basebackup", "-h", host, "-U", "postgres", "-D", str(self._data), "-R")

    def start(self) -> None:
        options = f'-h "" -k {self._folder}'
        log = str(self._folder / "log")
        self._run("pg_ctl", "-w", "-D", str(self._data), "-o", options, "-l", log, "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-w", "-m", "immediate", "-D", str(self._data), "stop")

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(Path(self._server.bin_path) / program), *arguments]
        subprocess.run(
            command,
            check=True,
            user=self._server.system_user,
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
        )


@pytest.fixture
def server() -> Iterator[PostgresqlServer]:
    with tempfile.TemporaryDirectory(prefix="hublet-pg-", ignore_cleanup_errors=True) as folder:
        server = PostgresqlServer(Path(folder))
        yield server
        server.remove()


@pytest.fixture
def standby(server: PostgresqlServer) -> Iterator[Standby]:
    folder = Path(tempfile.mkdtemp(prefix="hublet-replica-"))
    standby = Standby(server, folder)
    standby.start()
    try:
        yield standby
    finally:
        # A test may have stopped it.
        if (folder / "data" / "postmaster.pid").exists():
            standby.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
async def database(server: PostgresqlServer, standby: Standby) -> AsyncIterator[PostgresDatabase]:
    hub = hub_of(Settings(), url=server.url, replica_url=standby.url, replica_lag_seconds=LAG)
    async with open_database(hub) as database, notes_table(database):
        assert isinstance(database, PostgresDatabase)
        yield database


async def is_from_replica(database: PostgresDatabase) -> bool:
    async with database.read_replica() as conn:
        return bool(await conn.fetch_value("SELECT pg_is_in_recovery()"))


async def is_from_primary(database: PostgresDatabase) -> bool:
    return not await is_from_replica(database)


async def run_on(standby: Standby, statement: str) -> None:
    raw = await asyncpg.connect(standby.url)
    try:
        await raw.execute(statement)
    finally:
        await raw.close()


async def test_it_is_asked_while_it_follows_and_left_alone_while_it_is_late(
    database: PostgresDatabase, standby: Standby
) -> None:
    await wait_until(lambda: is_from_replica(database))
    async with database.read() as conn:
        assert await conn.fetch_value("SELECT pg_is_in_recovery()") is False

    await run_on(standby, "SELECT pg_wal_replay_pause()")
    await write_note(database, "a")
    await wait_until(lambda: is_from_primary(database))
    async with database.read_replica() as conn:
        assert await conn.fetch_value("SELECT count(*) FROM notes") == 1

    await run_on(standby, "SELECT pg_wal_replay_resume()")
    await wait_until(lambda: is_from_replica(database))
    assert await notes_of(database) == ["a"]


async def test_what_fails_on_it_is_asked_of_the_primary(
    database: PostgresDatabase, standby: Standby
) -> None:
    await wait_until(lambda: is_from_replica(database))

    standby.stop()
    # No request fails, however soon it comes.
    for _ in range(3):
        assert await is_from_primary(database)

    standby.start()
    await wait_until(lambda: is_from_replica(database))


def test_public_lists_come_from_it_and_nothing_else(
    server: PostgresqlServer, standby: Standby, tmp_path: Path
) -> None:
    place = Place(folder=tmp_path, database_url=server.url)
    variables = {
        "HUBLET_DATABASE_REPLICA_URL": standby.url,
        # However late: this test holds it back to tell the two apart.
        "HUBLET_DATABASE_REPLICA_LAG_SECONDS": "3600",
    }
    with serving(place, variables=variables) as hub, hub.client() as anonymous:
        hub.process.wait_for("the replica is used")
        with hub.client(hub.token) as admin:
            asyncio.run(run_on(standby, "SELECT pg_wal_replay_pause()"))
            created = admin.post("/api/repos/create", json={"name": "engine"})
            assert created.status_code == 200, created.text
            space = {"name": "demo", "type": "space", "sdk": "static"}
            admin.post("/api/repos/create", json=space).raise_for_status()
            # Who just wrote reads what he wrote, with and without a token.
            assert _names(anonymous) == _names(admin) == ["admin/engine"]
            wait_for(lambda: _names(anonymous) == [], seconds=SOON_SECONDS)
            assert _names(admin) == ["admin/engine"]
            assert [_trending(anonymous), _trending(admin)] == [[], ["admin/demo", "admin/engine"]]
            assert [_featured(anonymous), _featured(admin)] == [[], ["admin/demo"]]
            asyncio.run(run_on(standby, "SELECT pg_wal_replay_resume()"))
            wait_for(lambda: _names(anonymous) == ["admin/engine"], seconds=SOON_SECONDS)


def test_metadata_may_be_old_but_content_and_what_is_new_come_from_the_primary(
    server: PostgresqlServer, standby: Standby, tmp_path: Path
) -> None:
    place = Place(folder=tmp_path, database_url=server.url)
    variables = {
        "HUBLET_DATABASE_REPLICA_URL": standby.url,
        "HUBLET_DATABASE_REPLICA_LAG_SECONDS": "3600",
    }
    with serving(place, variables=variables) as hub, hub.client() as anonymous:
        hub.process.wait_for("the replica is used")
        with hub.client(hub.token) as admin:
            admin.post("/api/repos/create", json={"name": "engine"})
            old = _commit(admin, {"a.txt": "one"})
            wait_for(lambda: _list_models(anonymous, "sha") == [old], seconds=SOON_SECONDS)
            asyncio.run(run_on(standby, "SELECT pg_wal_replay_pause()"))
            new = _commit(admin, {"a.txt": "two", "b.txt": "new"})
            # Who just wrote finds it; others may be told of the commit before.
            assert _commit_of(anonymous.head(_FILE)) == new
            wait_for(lambda: _commit_of(anonymous.head(_FILE)) == old, seconds=SOON_SECONDS)
            assert anonymous.get("/api/models/admin/engine").json()["sha"] == old
            content = anonymous.get(_FILE)
            assert (content.text, _commit_of(content)) == ("two", new)
            assert _commit_of(admin.head(_FILE)) == new
            assert _commit_of(anonymous.head(_FILE.replace("a.txt", "b.txt"))) == new
            admin.put("/api/models/admin/engine/settings", json={"private": True})
            wait_for(lambda: anonymous.head(_FILE).status_code == 200, seconds=SOON_SECONDS)
            assert anonymous.get(_FILE).status_code == 404
            asyncio.run(run_on(standby, "SELECT pg_wal_replay_resume()"))
            wait_for(lambda: anonymous.head(_FILE).status_code == 404, seconds=SOON_SECONDS)


_FILE = "/admin/engine/resolve/main/a.txt"


def _commit(client: httpx2.Client, files: dict[str, str]) -> str:
    """Commit files, and return the id of the commit."""
    lines = [{"key": "header", "value": {"summary": "Change."}}]
    for path, text in files.items():
        content = b64encode(text.encode()).decode()
        lines.append(
            {"key": "file", "value": {"path": path, "content": content, "encoding": "base64"}}
        )
    done = client.post(
        "/api/models/admin/engine/commit/main",
        content="\n".join(json.dumps(line) for line in lines),
        headers={"Content-Type": "application/x-ndjson"},
    )
    assert done.status_code == 200, done.text
    commit: str = done.json()["commitOid"]
    return commit


def _commit_of(response: httpx2.Response) -> str:
    assert response.status_code == 200, response.text
    return response.headers["X-Repo-Commit"]


def _list_models(client: httpx2.Client, field: str) -> list[str]:
    return [each[field] for each in client.get("/api/models?full=true").json()]


def _names(client: httpx2.Client) -> list[str]:
    return [each["id"] for each in client.get("/api/models").json()]


def _trending(client: httpx2.Client) -> list[str]:
    found = client.get("/api/trending").json()["recentlyTrending"]
    return sorted(each["repoData"]["id"] for each in found)


def _featured(client: httpx2.Client) -> list[str]:
    return [each["id"] for each in client.get("/api/spaces/featured").json()]
