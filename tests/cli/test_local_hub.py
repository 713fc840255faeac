"""What a command does with the hub it is pointed to, before its own work."""

from pathlib import Path

import pytest

from cli.hublet_command import Hublet, in_hub
from hublet.core.config import Settings
from hublet.core.database import Connection
from hublet.core.database.migrations import known_migrations
from processes import Place


def forget(settings: Settings, *, number: int) -> None:
    async def work(conn: Connection) -> None:
        await conn.execute("DELETE FROM migrations WHERE number = $1", number)

    in_hub(settings, work)


def test_an_empty_place_is_prepared(run: Hublet, place: Place) -> None:
    assert run("migrate", *place.flags).code == 0
    added = run("user", "add", "ada", "--password", "correct horse", *place.flags)

    assert added.code == 0
    assert place.data_dir.stat().st_mode & 0o777 == 0o700
    assert (place.data_dir / "secret.keys").stat().st_mode & 0o777 == 0o600
    assert run("user", "list", "-q", *place.flags).out == "ada\n"


@pytest.mark.parametrize(
    "words",
    [
        pytest.param("user list", id="a list"),
        pytest.param("oauth app show 9f2c", id="one of a list"),
        pytest.param("user disable ada", id="a change of what is there"),
        pytest.param("user add ada", id="a new user"),
        pytest.param("org add acme --any-name", id="a new organization"),
        pytest.param("task list --json", id="a list as JSON"),
    ],
)
def test_where_there_is_no_hub_looking_makes_none(run: Hublet, place: Place, words: str) -> None:
    refused = run(*words.split(), *place.flags)

    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("hublet: There is no hub in ")
    assert refused.err.endswith("or start one here with `hublet serve`.\n")
    assert "hub:" not in refused.err.removeprefix("hublet:")
    if "--database-url" not in place.flags:
        assert not place.data_dir.exists()
    # It was not prepared either, wherever it is.
    assert run(*words.split(), *place.flags).err == refused.err


def test_no_administrator_is_created(hublet: Hublet) -> None:
    hublet("org", "add", "acme")

    assert hublet("user", "list", "--json").json == []


def test_a_database_that_lacks_a_migration_is_not_touched(run: Hublet, place: Place) -> None:
    newest = known_migrations()[-1]
    run("migrate", *place.flags)
    forget(place.settings, number=newest.number)

    refused = run("user", "list", *place.flags)

    assert (refused.code, refused.out) == (1, "")
    assert refused.err == (
        f"hublet: The database is older than this version (it lacks {newest.name}): run hublet "
        "migrate first.\n"
    )


def test_a_newer_database_is_refused(run: Hublet, place: Place) -> None:
    newest = known_migrations()[-1].number
    run("migrate", *place.flags)

    async def write_the_future(conn: Connection) -> None:
        await conn.execute("INSERT INTO migrations VALUES (9999, 'future', 'x', 0)")

    in_hub(place.settings, write_the_future)

    refused = run("user", "list", *place.flags)

    assert (refused.code, refused.out) == (1, "")
    assert refused.err == (
        f"hublet: The database was written by a newer Hublet (schema 9999, this version knows "
        f"{newest}): install that version, or point to another database.\n"
    )


def test_keys_of_another_hub_are_refused(hublet: Hublet, settings: Settings) -> None:
    hublet("user", "add", "ada")
    (settings.database.data_dir / "secret.keys").unlink()

    refused = hublet("user", "list")

    assert (refused.code, refused.out) == (1, "")
    assert refused.err == (
        "hublet: The key ring does not belong to this database, so no stored token could be "
        "checked: restore the file secret.keys of its data folder, or set HUBLET_KEYS_RING.\n"
    )


def test_a_file_in_place_of_the_folder_is_told(run: Hublet, tmp_path: Path) -> None:
    (tmp_path / "hub").write_text("not a folder")

    refused = run("user", "list", "--data-dir", str(tmp_path / "hub"))

    assert refused.code == 1
    assert refused.err == (
        f"hublet: The data folder {tmp_path}/hub cannot be written (File exists): choose another "
        "with --data-dir, or give this user the right to write there.\n"
    )


def test_a_server_that_is_away_is_told_without_its_password(run: Hublet, tmp_path: Path) -> None:
    url = "postgresql://hub:s3cret@127.0.0.1:1/hub"

    refused = run("user", "list", "--data-dir", str(tmp_path), "--database-url", url)

    assert refused.code == 1
    assert refused.err.startswith("hublet: The database postgresql://hub:***@127.0.0.1:1/hub ")
    assert refused.err.count("\n") == 1
    assert "s3cret" not in refused.err


def test_a_wrong_setting_is_told_before_anything_is_made(
    run: Hublet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUBLET_PORT", "many")

    refused = run("user", "list", "--data-dir", str(tmp_path / "hub"))

    assert refused.code == 1
    assert refused.err == (
        "hublet: server.port, from the variable HUBLET_PORT, must be a whole number from 0 to "
        "65535, not 'many'.\n"
    )
    assert not (tmp_path / "hub").exists()


def test_a_settings_file_is_used(run: Hublet, tmp_path: Path) -> None:
    file = tmp_path / "hub.toml"
    file.write_text(f'[database]\ndata_dir = "{tmp_path}/from-file"\n[tokens]\nprefix = "hub_"\n')
    run("migrate", "--config", str(file))
    run("user", "add", "ada", "--config", str(file))

    assert run("token", "create", "ada", "--config", str(file)).out.startswith("hub_")
    assert (tmp_path / "from-file" / "hub.db").exists()
