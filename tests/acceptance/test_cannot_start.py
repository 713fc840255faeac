"""Why a hub cannot start: one line that says what to do, no traceback, no password."""

import asyncio
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hublet.core.database.migrations import known_migrations
from hublet.core.startup import open_hub
from hublet.first_start import prepare
from processes import Place, run_hublet

PASSWORD = "correct-horse-battery"


def _serve(
    place: Place, *flags: str, variables: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    flags = ("--port", "0", *place.flags, *flags)
    return run_hublet("serve", *flags, folder=place.folder, variables=variables)


def _told(ended: subprocess.CompletedProcess[str]) -> str:
    """Return the one line that a command left behind when it failed."""
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.count("\n") == 1, ended.stderr
    assert PASSWORD not in ended.stderr
    return ended.stderr.strip()


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = _serve(Place(folder=tmp_path), "--port", str(port))

    assert _told(ended) == (
        f"hublet: 127.0.0.1:{port} cannot be used (Address already in use): choose another with "
        "--host and --port, or stop what listens there."
    )


def test_a_host_that_is_not_here_is_named(tmp_path: Path) -> None:
    # RFC 5737: addresses for documentation belong to no machine.
    ended = _serve(Place(folder=tmp_path), "--host", "192.0.2.1")

    assert _told(ended) == (
        "hublet: 192.0.2.1:0 cannot be used (Cannot assign requested address): choose another "
        "with --host and --port, or stop what listens there."
    )


def test_a_file_in_place_of_the_data_folder_is_named(tmp_path: Path) -> None:
    place = Place(folder=tmp_path)
    place.data_dir.touch()

    assert _told(_serve(place)) == (
        f"hublet: The data folder {place.data_dir} cannot be written (File exists): choose another "
        "with --data-dir, or give this user the right to write there."
    )


def test_a_data_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    # Not even root can make a folder there.
    ended = run_hublet("serve", "--port", "0", "--data-dir", "/proc/hublet", folder=tmp_path)

    assert _told(ended) == (
        "hublet: The data folder /proc/hublet cannot be written (No such file or directory): "
        "choose another with --data-dir, or give this user the right to write there."
    )


def _advice(url: str, reason: str) -> str:
    return (
        f"hublet: The database {url} cannot be opened ({reason}): see that it runs and lets this "
        "user in, or name another with --database-url."
    )


def test_a_postgresql_that_does_not_listen_is_named(tmp_path: Path) -> None:
    url = f"postgresql://hub:{PASSWORD}@127.0.0.1:1/hub"
    ended = _serve(Place(folder=tmp_path, database_url=url))

    assert _told(ended) == _advice(
        "postgresql://hub:***@127.0.0.1:1/hub",
        "ConnectionRefusedError: [Errno 111] Connection refused",
    )


def test_a_database_that_does_not_exist_is_named(
    fresh_url: Callable[[], str], tmp_path: Path
) -> None:
    url = urlsplit(fresh_url())._replace(path="/nowhere").geturl()
    ended = _serve(Place(folder=tmp_path, database_url=url))

    told = _told(ended)
    assert told.startswith("hublet: The database postgresql://postgres:***@/nowhere?host=")
    assert told.endswith(
        'cannot be opened (InvalidCatalogNameError: database "nowhere" does not exist): see that '
        "it runs and lets this user in, or name another with --database-url."
    )


async def _ask(url: str, statement: str) -> Any:
    import asyncpg  # noqa: PLC0415 - only tests on PostgreSQL need it

    raw = await asyncpg.connect(url)
    try:
        return await raw.fetchval(statement)
    finally:
        await raw.close()


def _insist_on_a_password(url: str) -> None:
    """Make the role `guest` show a password, which the server asks of nobody else here."""
    asyncio.run(_ask(url, "CREATE ROLE guest LOGIN PASSWORD 'another password'"))
    rules = Path(asyncio.run(_ask(url, "SHOW hba_file")))
    rules.write_text("local all guest scram-sha-256\n" + rules.read_text())
    asyncio.run(_ask(url, "SELECT pg_reload_conf()"))


def test_a_wrong_password_is_not_repeated(fresh_url: Callable[[], str], tmp_path: Path) -> None:
    url = fresh_url()
    _insist_on_a_password(url)
    guest = url.replace("//postgres:@", f"//guest:{PASSWORD}@")
    ended = _serve(Place(folder=tmp_path, database_url=guest))

    assert _told(ended) == _advice(
        url.replace("//postgres:@", "//guest:***@"),
        'InvalidPasswordError: password authentication failed for user "guest"',
    )


def test_a_user_who_may_not_create_tables_is_told(
    fresh_url: Callable[[], str], tmp_path: Path
) -> None:
    url = fresh_url()
    asyncio.run(_ask(url, "CREATE ROLE onlooker LOGIN"))
    onlooker = url.replace("//postgres:@", "//onlooker@")
    ended = _serve(Place(folder=tmp_path, database_url=onlooker))

    assert _told(ended) == (
        "hublet: The schema could not be brought up to date (InsufficientPrivilegeError: "
        "permission denied for schema public): see that the database runs and that its user may "
        "create tables."
    )


def _start_once(place: Place) -> None:
    async def start() -> None:
        async with open_hub(place.settings) as database:
            await prepare(database)

    asyncio.run(start())


async def _add_a_migration_of_the_future(place: Place) -> None:
    async with open_hub(place.settings) as database, database.transaction() as conn:
        await conn.execute(
            "INSERT INTO migrations (number, name, digest, applied_at) "
            "VALUES (9999, 'future', 'f', 0)"
        )


def test_a_database_of_a_newer_version_is_left_alone(place: Place) -> None:
    _start_once(place)
    asyncio.run(_add_a_migration_of_the_future(place))

    newest = max(migration.number for migration in known_migrations())
    assert _told(_serve(place)) == (
        f"hublet: The database was written by a newer Hublet (schema 9999, this version knows "
        f"{newest}): install that version, or point to another database."
    )


def test_a_key_ring_of_another_hub_is_refused(place: Place) -> None:
    _start_once(place)
    (place.data_dir / "secret.keys").unlink()

    assert _told(_serve(place)) == (
        "hublet: The key ring does not belong to this database, so no stored token could be "
        "checked: restore the file secret.keys of its data folder, or set HUBLET_KEYS_RING."
    )


def test_a_broken_settings_file_is_named_with_the_place_of_the_mistake(tmp_path: Path) -> None:
    place = Place(folder=tmp_path)
    place.data_dir.mkdir()
    file = place.data_dir / "hublet.toml"
    file.write_text(f'[database]\nurl = "postgresql://hub:{PASSWORD}@db/hub\n')

    told = _told(_serve(place))
    assert told.startswith(f"hublet: The settings file {file} is not TOML: ")
    assert "line 2" in told


def test_an_unknown_variable_is_named_with_the_one_that_was_meant(tmp_path: Path) -> None:
    ended = _serve(Place(folder=tmp_path), variables={"HUBLET_TEST_MODUS": PASSWORD})

    assert _told(ended) == (
        "hublet: HUBLET_TEST_MODUS, from the variable HUBLET_TEST_MODUS, is not a setting; did "
        "you mean HUBLET_TEST_MODE?"
    )
