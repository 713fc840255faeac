"""Invited users wait for an account, independently in each organization."""

from typing import Any

import httpx2
import msgspec
import pytest

from hublet.accounts.errors import LastAdministrator
from hublet.accounts.organizations import audit_store as audit
from hublet.accounts.records import AuditFilter, Role
from hublet.accounts.users import service as accounts
from hublet.core import queue
from hublet.core.database import Database
from hublet.events import UserCreated
from hublet.scim.reactions import (
    ACCEPT_INVITATION,
    Invitation,
    accept_invitation,
    queue_invitations_of_new_user,
)
from scim.directories import USER, Directory, a_directory, a_person, error_body, role_of
from workers import drain

WAITS = error_body(
    409,
    "emails: another user of this directory waits for an account with the address.",
    "uniqueness",
)


async def _create(database: Database, name: str, *addresses: str) -> None:
    """Create an account whose addresses are verified in the same moment."""
    async with database.transaction() as conn:
        user = await accounts.create_user(conn, name, email=addresses[0])
        for address in addresses[1:]:
            await accounts.add_email(conn, user, address, verified=True)


@pytest.mark.parametrize("name", ["before", "after"])
async def test_an_organization_that_knows_a_person_twice_blocks_no_other(
    client: httpx2.AsyncClient, database: Database, name: str
) -> None:
    first = await a_directory(client, database, name="before")
    second = await a_directory(client, database, name="after")
    twice, once = (first, second) if name == "before" else (second, first)
    for directory in (first, second):
        await directory.add("vic@corp.test")
    await twice.add("vic@home.test")

    await _create(database, "vic", "vic@corp.test", "vic@home.test")
    await drain(database)

    assert await role_of(database, once.organization, "vic") is Role.read
    # There one of the two has joined, and the other one waits on.
    assert await role_of(database, twice.organization, "vic") is Role.read
    async with database.read() as conn:
        assert (await queue.count_waiting(conn), await queue.count_parked(conn)) == (0, 0)


async def test_an_organization_whose_groups_cannot_be_followed_blocks_no_other(
    client: httpx2.AsyncClient, database: Database
) -> None:
    strict = await a_directory(client, database, name="strict")
    other = await a_directory(client, database, name="other")
    # She would be no owner any more, and is the last one.
    await strict.add_group("strict:read", [await strict.add("olga@corp.test")])
    user = await other.add("olga@corp.test")
    async with database.transaction() as conn:
        olga = await accounts.get_user(conn, "olga")
        await accounts.add_email(conn, olga, "olga@corp.test", verified=True)
        await queue_invitations_of_new_user(conn, UserCreated(user_id=olga.id, name=olga.name))

    first, second = await _invitations(database)
    with pytest.raises(LastAdministrator):
        await accept_invitation(database, first)
    await accept_invitation(database, second)

    shown = (await other.ask("GET", f"/Users/{user['id']}")).json()
    assert shown["meta"]["version"] == 'W/"2"'


async def _invitations(database: Database) -> list[Invitation]:
    async with database.read() as conn:
        rows = await conn.fetch_all(
            "SELECT body FROM tasks WHERE kind = $1 ORDER BY id", ACCEPT_INVITATION
        )
    return [msgspec.json.decode(row["body"], type=Invitation) for row in rows]


@pytest.mark.parametrize(
    "second",
    [
        pytest.param({"userName": "two", "emails": [{"value": "VIC@corp.test"}]}, id="in emails"),
        pytest.param({"userName": "vic@corp.test"}, id="in the name"),
    ],
)
async def test_two_users_do_not_wait_for_one_address(
    invited: Directory, second: dict[str, Any]
) -> None:
    await invited.add("one", emails=[{"value": "vic@corp.test"}])

    response = await invited.ask("POST", "/Users", json={"schemas": [USER]} | second)

    assert response.status_code == 409
    assert response.json() == WAITS
    assert await invited.user_names() == ["one"]


async def test_a_name_is_waited_for_as_an_address_is(invited: Directory) -> None:
    await invited.add("vic@corp.test")

    body = {"schemas": [USER], "userName": "two", "emails": [{"value": "vic@corp.test"}]}
    response = await invited.ask("POST", "/Users", json=body)

    assert response.json() == WAITS


async def test_another_directory_may_wait_for_the_address_too(
    client: httpx2.AsyncClient, database: Database, invited: Directory
) -> None:
    other = await a_directory(client, database, name="other")
    await invited.add("one", emails=[{"value": "vic@corp.test"}])

    await other.add("two", emails=[{"value": "vic@corp.test"}])


async def test_an_inactive_user_waits_for_nothing(invited: Directory) -> None:
    first = await invited.add("one", emails=[{"value": "vic@corp.test"}])
    await invited.set_active(first, False)
    await invited.add("two", emails=[{"value": "vic@corp.test"}])

    response = await invited.patch(
        f"/Users/{first['id']}", {"op": "replace", "path": "active", "value": True}
    )

    assert response.status_code == 409
    assert response.json() == WAITS


async def test_a_new_address_is_looked_at_and_the_others_stand_in_no_way(
    database: Database, invited: Directory
) -> None:
    await invited.add("one", emails=[{"value": "vic@corp.test"}])
    second = await invited.add("two", emails=[{"value": "two@corp.test"}])
    taken = {"op": "replace", "path": "emails", "value": [{"value": "vic@corp.test"}]}
    assert (await invited.patch(f"/Users/{second['id']}", taken)).json() == WAITS

    # As it may be in a directory of before this rule.
    async with database.transaction() as conn:
        await conn.execute("UPDATE scim_emails SET address = 'vic@corp.test'")
        await conn.execute("UPDATE scim_emails SET address_key = 'vic@corp.test'")
    await invited.change(second, {"op": "replace", "path": "name.givenName", "value": "V"})
    assert (await invited.set_active(second, False))["active"] is False


async def test_a_managed_account_changes_nothing_for_who_waits_elsewhere(
    client: httpx2.AsyncClient, database: Database, managed: Directory
) -> None:
    other = await a_directory(client, database, name="other")
    user = await other.add("zed@corp.test")

    await managed.add("zed", emails=[{"value": "zed@corp.test"}])
    await drain(database)

    assert (await other.ask("GET", f"/Users/{user['id']}")).json() == user
    async with database.read() as conn:
        [last, *_] = await audit.list_of(conn, other.organization.id, AuditFilter())
    assert last.action == "scim-user.create"


async def test_an_account_that_is_off_by_then_changes_nothing(
    database: Database, invited: Directory
) -> None:
    user = await invited.add("zed@corp.test")
    await _create(database, "zed", "zed@corp.test")
    async with database.transaction() as conn:
        await accounts.disable_user(conn, await accounts.get_user(conn, "zed"))
    await drain(database)

    assert (await invited.ask("GET", f"/Users/{user['id']}")).json() == user


@pytest.mark.parametrize(
    ("emails", "joins"),
    [
        pytest.param(
            [{"value": "old@home.test"}, {"value": "new@work.test", "primary": True}],
            "newer",
            id="the primary one",
        ),
        pytest.param(
            [{"value": "new@work.test"}, {"value": "old@home.test"}], "newer", id="the first one"
        ),
        pytest.param(
            [{"value": "nobody@work.test", "primary": True}, {"value": "old@home.test"}],
            "old",
            id="the first that somebody has",
        ),
    ],
)
async def test_of_several_accounts_the_one_with_the_primary_address_joins(
    database: Database, invited: Directory, emails: list[dict[str, Any]], joins: str
) -> None:
    await a_person(database, "old", "old@home.test")
    await a_person(database, "newer", "new@work.test")

    await invited.add("somebody", emails=emails)

    roles = {name: await role_of(database, invited.organization, name) for name in ("old", "newer")}
    assert [name for name, role in roles.items() if role] == [joins]
