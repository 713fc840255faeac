"""A real hub on a real database of each kind, thrown away after every test."""

import asyncio
import fcntl
import io
import itertools
import logging
import os
import pickle
import re
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx2
import hypothesis
import pytest
import structlog
from fastapi import FastAPI

from contract.checker import Contract
from docker_engine import running_engine
from hublet.accounts import passwords
from hublet.app import create_application, with_edge
from hublet.core import clock
from hublet.core.config import LogSettings, Settings
from hublet.core.database import Database, open_database, sqlite
from hublet.core.database.migrations import migrate
from hublet.core.hub import Hub
from hublet.core.ids import new_object_id
from hublet.core.logs import configure
from hublet.core.sealing import KeyRing
from hublet.description import describe
from object_storage import CREDENTIALS, ObjectStorage
from patience import SOON_SECONDS
from people import WEAK_HASHER, Headers, sign_in
from postgresql_server import start_server
from processes import Place
from statements import Statements, note_statements

ENGINES = ["sqlite", "postgresql"]
# What `make test` leaves to `make test-full`: real clients, kills, generated requests, browsers, and
# whatever starts many processes or containers.
_FULL = (
    "acceptance/",
    "cli/test_jobs.py",
    "cli/test_login.py",
    "cli/test_notifications.py",
    "cli/test_processes.py",
    "cli/test_remote_command.py",
    "cli/test_revoke.py",
    "cli/test_webhooks_deliveries.py",
    "cli/test_webhooks_listen.py",
    "cli/test_webhooks_manage.py",
    "contract/test_schemathesis.py",
    "faults/",
    "gateway/ports/test_open_connections.py",
    "gateway/ports/test_upgrades.py",
    "gateway/ssh/",
    "login/test_session_commands.py",
    "receiver/test_scripts.py",
    "runtime/docker/",
    "runtime/kubernetes/test_cluster.py",
    "test_benchmark",
    "test_worker_faults.py",
    "testing/test_faults_and_time.py",
    "testing/test_guide.py",
    "testing/test_plugin.py",
    "webhooks/test_delivery_fairness.py",
    "webhooks/test_delivery_jobs.py",
)
# A minute or more for a test: they come first, so that no process is left with them at the end.
_LONGEST = (
    "contract/test_schemathesis.py",
    "web/test_all_pages_in_a_browser.py",
    "acceptance/test_public_clients.py",
    "acceptance/test_wheel.py",
    "faults/test_kill_during_pulls.py",
)
# Where SQL is the subject, every test runs on both engines also in `make test`.
_BOTH_ENGINES = ("core/database/", "core/queue/", "core/test_outbox.py", "test_worker")

TESTS = Path(__file__).parent

# No test needs a quiet machine: neither an example nor the making of one is timed.
hypothesis.settings.register_profile(
    "untimed", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("untimed")

# Nor does a client of a test give up after the five seconds that are its default.
_patience = httpx2._config.DEFAULT_TIMEOUT_CONFIG  # noqa: SLF001 - each default is this one object
_patience.connect = _patience.read = _patience.write = _patience.pool = SOON_SECONDS

# It looks for this module at each request, which takes longer than many a response.
if find_spec("sniffio") is None:
    sys.modules["sniffio"] = None  # type: ignore[assignment]

_numbers = itertools.count()
_RING = KeyRing.new()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import, for `make test`, the files that it leaves out."""
    return (config.option.markexpr == "not full" and _is_full(collection_path)) or None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as `full` what `make test` leaves out, and as `repeat` what `make test-rest` does too."""
    files: set[str] = set()
    functions: set[str] = set()
    for item in items:
        is_second = _is_second_engine(item)
        name = item.path.relative_to(TESTS).as_posix()
        if _is_full(item.path) or (is_second and name in files):
            item.add_marker(pytest.mark.full)
        if is_second:
            function = item.nodeid.partition("[")[0]
            if function in functions:
                item.add_marker(pytest.mark.repeat)
            files.add(name)
            functions.add(function)
    items.sort(key=lambda item: item.path.relative_to(TESTS).as_posix() not in _LONGEST)


def _is_full(path: Path) -> bool:
    name = path.relative_to(TESTS).as_posix()
    return path.suffix == ".py" and (name.startswith(_FULL) or "browser" in name)


def _is_second_engine(item: pytest.Item) -> bool:
    """Tell whether a test only repeats on PostgreSQL what it says of SQLite.

    The first one of each file is no repetition for `make test`: it walks through its API on both.
    """
    parameters = getattr(item, "callspec", None)
    if parameters is None or "postgresql" not in parameters.params.values():
        return False
    name = item.path.relative_to(TESTS).as_posix()
    is_about_sql = re.search(r"store|lease|migration|postgresql", name)
    return not (name.startswith(_BOTH_ENGINES) or is_about_sql)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The address of a PostgreSQL server that lives as long as this test process.

    Its folder is not one of pytest's: as root the server runs as a user of its own, and a
    second pytest would close those folders to it.
    """
    with tempfile.TemporaryDirectory(prefix="hublet-pg-", ignore_cleanup_errors=True) as folder:
        server = start_server(Path(folder))
        # Tests of durability start servers of their own; here only speed counts.
        server.psql(
            "ALTER SYSTEM SET synchronous_commit = off; ALTER SYSTEM SET fsync = off; "
            "SELECT pg_reload_conf();"
        )
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


@pytest.fixture(scope="session")
def object_storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStorage]:
    """An S3 server that lives as long as this test process."""
    server = ObjectStorage(tmp_path_factory.mktemp("object-storage"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def bucket_url(object_storage: ObjectStorage, monkeypatch: pytest.MonkeyPatch) -> str:
    """`storage.url` for a hub of this test alone, with the credentials in the environment."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    return object_storage.url(new_object_id())


@pytest.fixture(scope="session")
def docker_engine() -> Iterator[str]:
    with running_engine() as address:
        yield address


async def psql(server: str, statement: str) -> None:
    import asyncpg  # noqa: PLC0415 - only tests on PostgreSQL need it

    raw = await asyncpg.connect(server)
    try:
        await raw.execute(statement)
    finally:
        await raw.close()


def address_of(server: str, database: str) -> str:
    return server.replace("/postgres?", f"/{database}?")


@pytest.fixture(scope="session")
def fresh_url(postgresql: str) -> Callable[[], str]:
    """Makes databases that hold nothing, not even a schema; they go when the server goes."""

    def create() -> str:
        name = f"fresh_{os.getpid()}_{next(_numbers)}"
        asyncio.run(psql(postgresql, f"CREATE DATABASE {name}"))
        return address_of(postgresql, name)

    return create


def _empty_place(request: pytest.FixtureRequest, folder: Path) -> Place:
    if request.param == "sqlite":
        return Place(folder=folder)
    return Place(folder=folder, database_url=request.getfixturevalue("fresh_url")())


@pytest.fixture(params=ENGINES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Where the processes of one hub meet: an empty folder and an empty database of each kind."""
    return _empty_place(request, tmp_path)


@pytest.fixture(scope="module", params=ENGINES)
def shared_place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """The same for all tests of a module, which start its processes once."""
    return _empty_place(request, tmp_path_factory.mktemp("place"))


def _settings(data_dir: Path, url: str | None = None) -> Settings:
    settings = Settings()
    return replace(
        settings,
        server=replace(settings.server, base_url="http://hub.test", port=80),
        # To connect may take longer than the default's five seconds on a busy machine.
        database=replace(
            settings.database, data_dir=data_dir, url=url, pool_size=4, busy_timeout_seconds=30
        ),
        worker=replace(settings.worker, poll_seconds=0.05),
        # The same on every machine, with bubblewrap or without.
        jobs=replace(settings.jobs, runner="process"),
    )


async def _migrated(settings: Settings) -> None:
    async with open_database(Hub(settings=settings, keys=_RING)) as database:
        await migrate(database)


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated, empty file: migrating each test's database anew would take most of the time."""
    folder = tmp_path_factory.mktemp("sqlite")
    asyncio.run(_migrated(_settings(folder)))
    return folder / "hub.db"


@pytest.fixture(scope="session")
def migrated_postgresql(postgresql: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a migrated database that every test leaves empty."""
    asyncio.run(psql(postgresql, "CREATE DATABASE hub"))
    url = address_of(postgresql, "hub")
    asyncio.run(_migrated(_settings(tmp_path_factory.mktemp("migrated"), url)))
    asyncio.run(psql(url, _MARK_THE_HUBS_TABLES))
    return url


# Emptying the tables takes a tenth of the time of a new database. Foreign keys are not looked at;
# a table that a test made for itself goes.
_LEAVE_IT_EMPTY = """
SET session_replication_role = replica;
DO $$ DECLARE name text; is_part boolean; BEGIN
    FOR name, is_part IN SELECT relname, relispartition FROM pg_class
        WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') LOOP
        IF obj_description(('public.' || quote_ident(name))::regclass) IS NULL THEN
            EXECUTE 'DROP TABLE ' || quote_ident(name) || ' CASCADE';
        ELSIF name <> 'migrations' AND NOT is_part THEN
            EXECUTE 'DELETE FROM ' || quote_ident(name);
        END IF;
    END LOOP;
END $$;
"""
_MARK_THE_HUBS_TABLES = """
DO $$ DECLARE name text; BEGIN
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' LOOP
        EXECUTE format('COMMENT ON TABLE %I IS %L', name, 'of the hub');
    END LOOP;
END $$;
"""


@pytest.fixture(scope="session")
def leave_it_empty(migrated_postgresql: str) -> Iterator[Callable[[], None]]:
    """Empties the database after a test.

    It keeps one connection, in a thread of its own: a new one would first have to read about all
    tables, which takes ten times as long as to empty them.
    """
    import asyncpg  # noqa: PLC0415 - only tests on PostgreSQL need it

    loop = asyncio.new_event_loop()
    with ThreadPoolExecutor(1) as thread:

        def run(work: Coroutine[None, None, Any]) -> Any:
            return thread.submit(loop.run_until_complete, work).result()

        raw = run(asyncpg.connect(migrated_postgresql))
        yield lambda: run(raw.execute(_LEAVE_IT_EMPTY))
        run(raw.close())
    loop.close()


@pytest.fixture(params=ENGINES)
async def settings(
    request: pytest.FixtureRequest,
    sqlite_template: Path,
    migrated_postgresql: str,
    leave_it_empty: Callable[[], None],
    tmp_path: Path,
) -> AsyncIterator[Settings]:
    """Settings of a hub whose database of each kind is migrated and empty."""
    if request.param == "sqlite":
        shutil.copy(sqlite_template, tmp_path / "hub.db")
        yield _settings(tmp_path)
        return
    yield _settings(tmp_path, migrated_postgresql)
    await asyncio.to_thread(leave_it_empty)


@pytest.fixture
async def database(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Database]:
    # Tests of durability start processes; here only speed counts. A commit that waits for the disk
    # takes a hundred times as long as one that does not.
    monkeypatch.setattr(sqlite, "SYNCHRONOUS", "OFF")
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(passwords, "_hasher", WEAK_HASHER)
    async with open_database(Hub(settings=settings, keys=_RING)) as database:
        yield database


@pytest.fixture
async def app(database: Database) -> AsyncIterator[FastAPI]:
    app = create_application(database)
    app.state.callers.start()
    yield app
    await app.state.callers.stop()


@pytest.fixture(scope="session")
def contracts() -> dict[str, Contract]:
    return {}


@pytest.fixture(scope="session")
def descriptions() -> dict[str, dict[str, Any]]:
    return {}


@pytest.fixture
def described(
    app: FastAPI,
    descriptions: dict[str, dict[str, Any]],
    tmp_path_factory: pytest.TempPathFactory,
    worker_id: str,
) -> dict[str, Any]:
    """The description of the hub; making it takes seconds, so all tests of a run share it."""
    if "hub" not in descriptions:
        folder = tmp_path_factory.getbasetemp()
        # The folder above those of the processes of a run, where it has several.
        path = (folder if worker_id == "master" else folder.parent) / "description"
        with path.open("a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if not path.stat().st_size:
                pickle.dump(describe(app, base_url="http://hub.test"), file)
            file.seek(0)
            descriptions["hub"] = pickle.load(file)
    return descriptions["hub"]


@pytest.fixture
async def client(
    app: FastAPI, described: dict[str, Any], contracts: dict[str, Contract]
) -> AsyncIterator[httpx2.AsyncClient]:
    """Speaks HTTP to the whole application; every answer is held against the description."""
    if "hub" not in contracts:
        contracts["hub"] = Contract(described)
    contract = contracts["hub"]

    async def hold_to_the_description(response: httpx2.Response) -> None:
        await response.aread()
        contract.check(
            method=response.request.method,
            path=response.request.url.path,
            status=response.status_code,
            headers=response.headers,
            body=response.content,
        )

    transport = httpx2.ASGITransport(app=with_edge(app))
    async with httpx2.AsyncClient(
        transport=transport,
        base_url="http://hub.test",
        event_hooks={"response": [hold_to_the_description]},
    ) as client:
        yield client


@pytest.fixture
async def ada(database: Database) -> Headers:
    return await sign_in(database, "ada")


@pytest.fixture
async def admin(database: Database) -> Headers:
    return await sign_in(database, "root", is_admin=True)


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    """No test inherits where records go and which are written: commands that run here set both."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    if structlog.is_configured():
        configure(LogSettings(), stream=io.StringIO())
        structlog.reset_defaults()
        root.handlers[:] = handlers
        root.setLevel(level)


@pytest.fixture(autouse=True)
def real_time() -> Iterator[None]:
    """No test inherits a clock that another one moved."""
    yield
    clock.reset()


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> Statements:
    """Notes the statements of a request; `begin` forgets those before."""
    return note_statements(monkeypatch)
