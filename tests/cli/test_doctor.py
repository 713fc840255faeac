"""The doctor on real hubs, each with one thing wrong."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest

import hublet.webhooks.reactions  # noqa: F401 - the command under test does not publish.
from cli.hublet_command import Hublet, Outcome, in_hub, park_task
from hublet.core import clock
from hublet.core.config import Settings
from hublet.core.database import Connection
from hublet.core.database.migrations import known_migrations
from hublet.core.leases import lease_clock
from hublet.core.outbox import publish
from hublet.events import RepoDeleted, RepoSnapshot
from processes import Place
from webhooks.watchers import add_watcher


@pytest.fixture
def used(hublet: Hublet) -> None:
    """A hub somebody worked with: it has keys and rows."""
    hublet("user", "add", "ada", "--password", "correct horse")


def found(outcome: Outcome, check: str) -> dict[str, Any]:
    [finding] = [each for each in outcome.json if each["check"] == check]
    return dict(finding)


@pytest.fixture(autouse=True)
def _process_runner(run: Hublet, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same on every machine, with bubblewrap or without."""
    monkeypatch.setenv("HUBLET_JOBS_RUNNER", "process")
    monkeypatch.setattr("hublet.sql.child.find_spec", lambda _: None)


def statuses(outcome: Outcome) -> dict[str, str]:
    return {each["check"]: each["status"] for each in outcome.json}


def test_a_healthy_hub_has_no_problem(hublet: Hublet, settings: Settings, used: None) -> None:
    settings.database.data_dir.chmod(0o700)

    examined = hublet("doctor", "--json")

    assert examined.code == 0
    # A database that no worker has prepared for the days to come.
    of_servers = {"notices": "ok", "partitions": "warning"} if is_server(settings) else {}
    assert statuses(examined) == of_servers | dict.fromkeys(
        ["settings", "base URL", "outgoing", "data folder", "git", "mail", "jobs", "images",
         "keys", "clock", "database", "schema", "processes", "events", "tasks", "machines", "webhooks",
         "storage", "search"],
        "ok",
    )  # fmt: skip
    assert found(examined, "keys") == {
        "check": "keys",
        "status": "ok",
        "found": f"1 key in {settings.database.data_dir}/secret.keys; the database fits.",
        "advice": None,
    }
    assert "UTF8" in examined.out or "journal mode WAL" in examined.out


def is_server(settings: Settings) -> bool:
    return settings.database_url.startswith("postgresql")


def line_count(settings: Settings) -> int:
    """Return how many checks there are: a server has notices and partitions too."""
    return 21 if is_server(settings) else 19


def test_a_person_reads_one_line_for_each_check(
    hublet: Hublet, settings: Settings, used: None
) -> None:
    examined = hublet("doctor")

    lines = examined.out.splitlines()
    assert len(lines) == line_count(settings)
    assert {line.split()[0] for line in lines} <= {"ok", "warning"}


def test_a_parked_task_is_a_problem(hublet: Hublet, settings: Settings, used: None) -> None:
    for kind in ("mail.send", "hook.send", "page.draw", "file.copy"):
        park_task(settings, kind=kind, error="OSError: no route\nto host")

    examined = hublet("doctor", "--json")

    assert examined.code == 1
    assert found(examined, "tasks") == {
        "check": "tasks",
        "status": "problem",
        "found": (
            "4 failed too often and are parked (mail.send: OSError: no route\nto host; hook.send: "
            "OSError: no route\nto host; page.draw: OSError: no route\nto host; and 1 more)."
        ),
        "advice": "Mend the cause, then run hublet task retry --all; hublet task list shows them.",
    }
    assert len(hublet("doctor").out.splitlines()) == line_count(settings)


def test_a_machine_that_was_not_seen_is_named(
    hublet: Hublet, settings: Settings, used: None
) -> None:
    async def forget_a_machine(conn: Connection) -> None:
        seen = lease_clock() - 7_300_000_000
        await conn.execute(
            "INSERT INTO machines VALUES ('m', 'f', 'attic', '', '{}', $1, $2)", seen, seen + 1
        )

    in_hub(settings, forget_a_machine)

    examined = hublet("doctor", "--json")

    assert examined.code == 0
    assert found(examined, "machines")["found"] == "Not seen lately: attic (2 hours ago)."


def test_wrong_keys_are_a_problem(hublet: Hublet, settings: Settings, used: None) -> None:
    keys = settings.database.data_dir / "secret.keys"
    keys.unlink()
    missing = hublet("doctor", "--json")
    made = keys.exists()
    hublet("user", "list")
    foreign = hublet("doctor", "--json")

    assert not made
    assert (missing.code, foreign.code) == (1, 1)
    assert found(missing, "keys") == found(foreign, "keys")
    assert found(foreign, "keys") == {
        "check": "keys",
        "status": "problem",
        "found": f"The keys this database was written with are not in {keys}.",
        "advice": ("Restore the secret.keys that belongs to it: without it no stored token works."),
    }


def test_open_keys_are_a_problem(hublet: Hublet, settings: Settings, used: None) -> None:
    keys = settings.database.data_dir / "secret.keys"
    keys.chmod(0o644)

    examined = hublet("doctor", "--json")

    assert examined.code == 1
    assert found(examined, "keys")["found"] == (
        f"The key ring {keys} is open to others than its owner. Run: chmod 600 {keys}"
    )
    assert statuses(examined)["tasks"] == "ok"


def test_a_newer_database_is_a_problem(run: Hublet, place: Place) -> None:
    run("migrate", *place.flags)

    async def write_the_future(conn: Connection) -> None:
        await conn.execute("INSERT INTO migrations VALUES (9999, 'future', 'x', 0)")

    in_hub(place.settings, write_the_future)

    examined = run("doctor", "--json", *place.flags)

    assert examined.code == 1
    assert found(examined, "schema")["status"] == "problem"
    assert "written by a newer Hublet (schema 9999" in found(examined, "schema")["found"]
    assert "tasks" not in statuses(examined)


def test_an_older_database_is_a_warning(run: Hublet, place: Place) -> None:
    newest = known_migrations()[-1]
    run("migrate", *place.flags)

    async def forget(conn: Connection) -> None:
        await conn.execute("DELETE FROM migrations WHERE number = $1", newest.number)

    in_hub(place.settings, forget)

    examined = run("doctor", "--json", *place.flags)

    assert examined.code == 0
    assert found(examined, "schema") == {
        "check": "schema",
        "status": "warning",
        "found": f"It lacks {newest.name}.",
        "advice": "Run hublet migrate; the next start of hublet serve does it too.",
    }


def test_a_clock_that_went_back_is_a_problem(
    hublet: Hublet, settings: Settings, used: None
) -> None:
    async def hand_on_everything(conn: Connection) -> None:
        await conn.execute("DELETE FROM outbox")

    in_hub(settings, hand_on_everything)
    clock.move(timedelta(hours=-5, minutes=-30))

    examined = hublet("doctor", "--json")

    assert examined.code == 1
    assert found(examined, "clock")["status"] == "problem"
    assert "and the newest row is from 5 hours later." in found(examined, "clock")["found"]


def test_work_that_waits_for_long_is_a_warning(
    hublet: Hublet, settings: Settings, used: None
) -> None:
    task_id = park_task(settings, kind="mail.send", error="down")
    hublet("task", "retry", task_id)
    clock.move(timedelta(minutes=10, seconds=5))

    examined = hublet("doctor", "--json")

    advice = "Is a hub running? Start hublet serve, or hublet worker on PostgreSQL."
    assert examined.code == 0
    assert found(examined, "events") == {
        "check": "events",
        "status": "warning",
        "found": "1 wait, the oldest for 10 minutes.",
        "advice": advice,
    }
    assert found(examined, "tasks") == {
        "check": "tasks",
        "status": "warning",
        "found": "2 wait, one of them overdue for 10 minutes.",
        "advice": advice,
    }


def test_failing_and_suspended_webhooks_are_counted(
    hublet: Hublet, settings: Settings, used: None
) -> None:
    async def work(conn: Connection) -> None:
        await add_watcher(conn, "a" * 24)
        await add_watcher(conn, "a" * 24, state="suspended-after-failure")
        failing = await add_watcher(conn, "a" * 24)
        await conn.execute(
            "INSERT INTO webhook_lanes (webhook_id, degraded_since) VALUES ($1, 1)", failing
        )

    in_hub(settings, work)

    assert found(hublet("doctor", "--json"), "webhooks") == {
        "check": "webhooks",
        "status": "warning",
        "found": "3 there, 1 failing, 1 suspended after failure.",
        "advice": (
            "Their owners were told; enabling one clears it, and recover sends what it missed."
        ),
    }


def test_deliveries_that_nobody_takes_are_told_of(
    hublet: Hublet, settings: Settings, used: None
) -> None:
    async def work(conn: Connection) -> None:
        await add_watcher(conn, "a" * 24, "b" * 24)
        repo = RepoSnapshot(
            id="b" * 24, type="model", name="ada/engine", owner_id="a" * 24, private=False
        )
        await publish(conn, RepoDeleted(repo=repo, actor_id="a" * 24))

    in_hub(settings, work)
    clock.move(timedelta(minutes=10, seconds=5))

    assert found(hublet("doctor", "--json"), "webhooks") == {
        "check": "webhooks",
        "status": "warning",
        "found": "Deliveries wait, the oldest for 10 minutes.",
        "advice": "Is a hub running? Start hublet serve, or hublet worker on PostgreSQL.",
    }


def test_a_broken_settings_file_is_the_only_finding(run: Hublet, tmp_path: Path) -> None:
    (tmp_path / "hublet.toml").write_text("[server\nport = 1")

    examined = run("doctor", "--json", "--data-dir", str(tmp_path))

    assert examined.code == 1
    [finding] = examined.json
    assert (finding["check"], finding["status"]) == ("settings", "problem")
    assert finding["found"].startswith(f"The settings file {tmp_path}/hublet.toml is not TOML: ")
    assert finding["advice"] == "Correct it; docs/operating.md tells of every setting."


def test_every_wrong_setting_is_told(
    run: Hublet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUBLET_PORT", "many")
    monkeypatch.setenv("HUBLET_PROT", "1")

    examined = run("doctor", "--json", "--data-dir", str(tmp_path))

    assert [each["status"] for each in examined.json] == ["problem", "problem"]


def test_the_doctor_makes_nothing(run: Hublet, tmp_path: Path) -> None:
    examined = run("doctor", "--json", "--data-dir", str(tmp_path / "hub"))

    assert examined.code == 0
    assert statuses(examined) == {
        "settings": "ok",
        "base URL": "ok",
        "outgoing": "ok",
        "data folder": "warning",
        "git": "ok",
        "mail": "ok",
        "jobs": "ok",
        "images": "ok",
        "keys": "warning",
        "clock": "ok",
        "database": "warning",
    }
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_a_problem(run: Hublet, tmp_path: Path) -> None:
    (tmp_path / "hub").write_text("not a folder")

    examined = run("doctor", "--json", "--data-dir", str(tmp_path / "hub"))

    assert examined.code == 1
    assert found(examined, "data folder")["status"] == "problem"
    assert "cannot be written (File exists)" in found(examined, "data folder")["found"]


def test_a_server_that_is_away_is_a_problem(run: Hublet, tmp_path: Path) -> None:
    url = "postgresql://hub:s3cret@127.0.0.1:1/hub"

    examined = run("doctor", "--data-dir", str(tmp_path), "--database-url", url)

    assert examined.code == 1
    assert "postgresql://hub:***@127.0.0.1:1/hub does not answer (ConnectionRefused" in examined.out
    assert "s3cret" not in examined.out


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
def test_a_file_that_is_no_database_is_a_problem(hublet: Hublet, settings: Settings) -> None:
    (settings.database.data_dir / "hub.db").write_bytes(b"no database at all" * 500)

    examined = hublet("doctor", "--json")

    assert examined.code == 1
    assert "(file is not a database)" in found(examined, "database")["found"]


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
def test_a_damaged_file_is_a_problem(hublet: Hublet, settings: Settings, used: None) -> None:
    file = settings.database.data_dir / "hub.db"
    with file.open("r+b") as raw:
        raw.seek(8 * 4096)
        raw.write(b"\xff" * 4096)

    examined = hublet("doctor", "--json")

    assert examined.code == 1
    assert found(examined, "database")["status"] == "problem"


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
def test_a_disk_that_cannot_keep_a_wal_is_a_problem(
    hublet: Hublet, used: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def delete(_: object) -> str:
        return "delete"

    monkeypatch.setattr("hublet.doctor.store.journal_mode", delete)

    examined = hublet("doctor", "--json")

    assert examined.code == 1
    assert "in the journal mode delete, not in WAL." in found(examined, "database")["found"]


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_a_server_that_answers_slowly_is_a_warning(
    hublet: Hublet, used: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hublet.doctor.database._SLOW_SECONDS", 0.0)

    examined = hublet("doctor", "--json")

    assert examined.code == 0
    assert found(examined, "database")["status"] == "warning"


@pytest.fixture
def ascii_database(postgresql: str) -> Iterator[str]:
    """The address of an empty database that does not store UTF-8."""

    async def run(statement: str) -> None:
        raw = await asyncpg.connect(postgresql)
        await raw.execute(statement)
        await raw.close()

    asyncio.run(run("CREATE DATABASE ascii ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0"))
    yield postgresql.replace("/postgres?", "/ascii?")
    asyncio.run(run("DROP DATABASE ascii WITH (FORCE)"))


def test_a_database_that_is_not_utf8_is_a_problem(
    run: Hublet, tmp_path: Path, ascii_database: str
) -> None:
    flags = ["--data-dir", str(tmp_path), "--database-url", ascii_database]

    examined = run("doctor", "--json", *flags)

    assert examined.code == 1
    assert "stores text as SQL_ASCII." in found(examined, "database")["found"]
    assert found(examined, "schema") == {
        "check": "schema",
        "status": "warning",
        "found": "The database is empty.",
        "advice": "The first hublet serve fills it.",
    }
