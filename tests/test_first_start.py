import pytest

from hublet import first_start
from hublet.accounts.users import service as accounts
from hublet.accounts.users import store
from hublet.core.database import Database
from hublet.core.sealing import WrongKeys
from hublet.core.startup import keys_fit
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
