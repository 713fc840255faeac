"""Changes of accounts that two callers make at the same moment."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from hublet.accounts.errors import LastAdministrator, LastHubAdministrator, NotAMember
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import OPERATOR, OrganizationPlan, Role
from hublet.accounts.resource_groups import service as groups
from hublet.accounts.settings import emails
from hublet.accounts.users import service as administration
from hublet.core.database import Connection, Database
from people import a_user, an_organization

Change = Callable[[Connection], Awaitable[object]]


async def at_once(database: Database, first: Change, second: Change) -> None:
    """Make the second change while the first is done but not committed yet."""

    async def run_second() -> None:
        async with database.transaction() as conn:
            await second(conn)

    async with database.transaction() as conn:
        await first(conn)
        task = asyncio.create_task(run_second())
        # Until then it has either finished or come to where it has to wait.
        await asyncio.wait([task], timeout=0.2)
    await task


async def test_two_administrators_cannot_remove_each_other(database: Database) -> None:
    organization = await an_organization(
        database, "engines", members={"ada": Role.admin, "bob": Role.admin}
    )
    ada, bob = await a_user(database, "ada"), await a_user(database, "bob")

    with pytest.raises(LastAdministrator):
        await at_once(
            database,
            lambda conn: organizations.remove_member(conn, OPERATOR, organization, ada),
            lambda conn: organizations.set_member(conn, OPERATOR, organization, bob, Role.read),
        )


async def test_two_hub_administrators_cannot_demote_each_other(database: Database) -> None:
    ada = await a_user(database, "ada", is_admin=True)
    bob = await a_user(database, "bob", is_admin=True)

    with pytest.raises(LastHubAdministrator):
        await at_once(
            database,
            lambda conn: administration.update_as_administrator(
                conn, ada, disabled=None, is_admin=False
            ),
            lambda conn: administration.update_as_administrator(
                conn, bob, disabled=True, is_admin=None
            ),
        )


async def test_nobody_joins_a_group_while_leaving_the_organization(database: Database) -> None:
    organization = await an_organization(
        database, "engines", plan=OrganizationPlan.team, members={"bob": Role.read}
    )
    bob = await a_user(database, "bob")
    async with database.transaction() as conn:
        group = await groups.create(conn, OPERATOR, organization, name="red", description="")

    with pytest.raises(NotAMember):
        await at_once(
            database,
            lambda conn: organizations.remove_member(conn, OPERATOR, organization, bob),
            lambda conn: groups.set_member(conn, OPERATOR, organization, group, bob, Role.read),
        )


async def test_of_two_first_addresses_one_is_primary(database: Database) -> None:
    ada = await a_user(database, "ada")

    await at_once(
        database,
        lambda conn: emails.add(conn, ada, "one@example.com"),
        lambda conn: emails.add(conn, ada, "two@example.com"),
    )

    async with database.read() as conn:
        rows = await conn.fetch_all("SELECT address FROM emails WHERE is_primary")
    assert [row["address"] for row in rows] == ["one@example.com"]
