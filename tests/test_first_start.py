from dataclasses import replace
from pathlib import Path

import pytest

from hublet import first_start
from hublet.accounts.users import service as accounts
from hublet.accounts.users import store
from hublet.core.database import Database
from hublet.core.machine import FOLDER_ID_FILE
from hublet.core.sealing import WrongKeys
from hublet.core.startup import CannotStart, keys_fit
from hublet.tokens import service as tokens
from people import a_user, an_organization


async def administrators(database: Database) -> list[str]:
    async with database.read() as conn:
        return [user.name for user in await store.list_all(conn, limit=1000) if user.is_admin]


async def test_an_empty_hub_gets_an_administrator_who_can_do_everything(database: Database) -> None:
    first = await first_start.prepare(database)

    assert first is not None
    assert first.name == "admin"
    async with database.read() as conn:
        user = await accounts.find_by_password(conn, "admin", first.password)
        caller = await tokens.find_caller(conn, first.token)
    assert user is not None
    assert user.is_admin
    assert caller is not None
    assert (caller.user_name, caller.is_admin, caller.token.role) == ("admin", True, "write")


async def test_a_second_start_creates_nobody(database: Database) -> None:
    await first_start.prepare(database)

    assert await first_start.prepare(database) is None
    assert await administrators(database) == ["admin"]


async def test_an_administrator_who_was_added_before_the_first_start_is_enough(
    database: Database,
) -> None:
    await a_user(database, "ada", is_admin=True)

    assert await first_start.prepare(database) is None


async def test_users_without_an_administrator_get_one(database: Database) -> None:
    await a_user(database, "ada")

    first = await first_start.prepare(database)

    assert first is not None
    assert await administrators(database) == ["admin"]


async def test_an_administrator_who_came_late_is_found(database: Database) -> None:
    async with database.transaction() as conn:
        for number in range(105):
            await accounts.create_user(conn, f"user-{number}")
    await a_user(database, "ada", is_admin=True)

    assert await first_start.prepare(database) is None


async def test_a_name_that_is_taken_is_left_to_its_owner(database: Database) -> None:
    await a_user(database, "Admin")

    first = await first_start.prepare(database)

    assert first is not None
    assert first.name == "admin-2"
    assert await administrators(database) == ["admin-2"]


async def test_the_next_name_may_be_taken_too(database: Database) -> None:
    await a_user(database, "admin")
    await an_organization(database, "admin-2")

    first = await first_start.prepare(database)

    assert first is not None
    assert first.name == "admin-3"


async def test_a_disabled_administrator_is_not_replaced(database: Database) -> None:
    user = await a_user(database, "ada", is_admin=True)
    async with database.transaction() as conn:
        await accounts.disable_user(conn, user)

    assert await first_start.prepare(database) is None


async def test_keys_that_were_rotated_out_are_refused(database: Database) -> None:
    async with database.transaction() as conn:
        await conn.execute("INSERT INTO facts (name, value) VALUES ('key_ring', 'another')")

    with pytest.raises(WrongKeys, match="does not belong to this database"):
        await first_start.prepare(database)
    async with database.read() as conn:
        assert not await keys_fit(conn)
        assert not await accounts.has_administrator(conn)


def with_folder(database: Database, folder: Path, *, storage_url: str | None = None) -> Database:
    settings = database.hub.settings
    settings = replace(
        settings,
        database=replace(settings.database, data_dir=folder),
        storage=replace(settings.storage, url=storage_url),
    )
    database.hub = replace(database.hub, settings=settings)
    return database


async def test_another_data_folder_is_refused_where_nodes_must_share_one(
    database: Database, tmp_path: Path
) -> None:
    await first_start.check_folder(with_folder(database, tmp_path / "first"))
    await first_start.check_folder(with_folder(database, tmp_path / "second", storage_url="s3://b"))
    with_folder(database, tmp_path / "second")
    if database.kind == "sqlite":
        await first_start.check_folder(database)
        return

    with pytest.raises(CannotStart) as refused:
        await first_start.check_folder(database)

    first = (tmp_path / "first" / FOLDER_ID_FILE).read_text()
    assert str(refused.value) == (
        f"The data folder {tmp_path}/second is not the one that this database belongs to, so it lacks "
        "repositories and files: give all nodes the same folder, or set storage.url; if this is a "
        f"copy of that folder, write {first.strip()} into its file machine.id."
    )
    (tmp_path / "second" / FOLDER_ID_FILE).write_text(first)
    await first_start.check_folder(database)


async def test_a_folder_that_was_moved_is_the_same(database: Database, tmp_path: Path) -> None:
    await first_start.check_folder(with_folder(database, tmp_path / "before"))
    if database.kind != "sqlite":
        (tmp_path / "before").rename(tmp_path / "after")

    await first_start.check_folder(with_folder(database, tmp_path / "after"))


async def test_a_worker_leaves_the_administrator_to_a_process_that_can_show_the_password(
    database: Database,
) -> None:
    assert await first_start.prepare(database, creates_administrator=False) is None
    assert await administrators(database) == []

    assert await first_start.prepare(database) is not None
