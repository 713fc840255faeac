"""A provider, people and the hub itself change the same user at the same moment."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from accounts.test_races import at_once
from hublet.accounts.errors import NotAMember
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import OPERATOR, Role, User
from hublet.accounts.users import service as accounts
from hublet.core.database import Connection, Database
from hublet.scim import records
from hublet.scim.directory import lock
from hublet.scim.errors import ScimRefusal
from hublet.scim.users import accounts as users_accounts
from hublet.scim.users import service, store
from people import a_user
from scim.directories import Directory, a_person, role_of


def _record_of(directory: Directory, *, managed: bool) -> records.Directory:
    return records.Directory(organization=directory.organization, managed=managed, actor=OPERATOR)


async def _read(
    database: Database, directory: records.Directory, user_id: str
) -> records.ProvisionedUser:
    async with database.read() as conn:
        return await service.get(conn, directory, user_id)


async def _active_and_version(directory: Directory, user: dict[str, Any]) -> tuple[bool, str]:
    body = (await directory.ask("GET", f"/Users/{user['id']}")).json()
    return body["active"], body["meta"]["version"]


async def test_who_is_deactivated_while_the_account_is_made_is_not_let_in(
    database: Database, invited: Directory
) -> None:
    user = await invited.add("rac@corp.test")
    await a_person(database, "rac", "rac@corp.test")
    directory = _record_of(invited, managed=False)

    async def deactivate(conn: Connection) -> None:
        await lock(conn, directory)
        before = await service.get(conn, directory, user["id"])
        await service.update(conn, directory, before, replace(before, active=False))

    await at_once(
        database, deactivate, lambda conn: service.accept_invitation(conn, directory, user["id"])
    )

    assert await _active_and_version(invited, user) == (False, 'W/"2"')
    assert await role_of(database, invited.organization, "rac") is None


async def test_who_was_removed_by_hand_meanwhile_is_not_written_over(
    database: Database, managed: Directory
) -> None:
    user = await managed.add("bea")
    directory = _record_of(managed, managed=True)
    before = await _read(database, directory, user["id"])
    account = await a_user(database, "bea")
    async with database.transaction() as conn:
        await organizations.remove_member(conn, OPERATOR, managed.organization, account)

    with pytest.raises(ScimRefusal) as caught:
        async with database.transaction() as conn:
            await service.update(conn, directory, before, replace(before, given_name="B"))

    assert (caught.value.status, caught.value.message) == (
        412,
        f"The user {user['id']} was changed at the same time: try again.",
    )
    assert await _active_and_version(managed, user) == (False, 'W/"2"')


async def test_who_was_added_by_hand_meanwhile_is_not_forgotten_as_a_member(
    database: Database, invited: Directory
) -> None:
    ada = await a_person(database, "ada", "ada@corp.test")
    user = await invited.add("ada@corp.test", active=False)
    directory = _record_of(invited, managed=False)
    before = await _read(database, directory, user["id"])
    async with database.transaction() as conn:
        await organizations.set_member(conn, OPERATOR, invited.organization, ada, Role.read)

    with pytest.raises(ScimRefusal) as caught:
        async with database.transaction() as conn:
            await service.delete(conn, directory, before)

    assert caught.value.status == 412
    assert await _active_and_version(invited, user) == (True, 'W/"2"')


async def _remove_by_hand(
    database: Database, directory: Directory, account: User, when: asyncio.Event
) -> None:
    await when.wait()
    async with database.transaction() as conn:
        await organizations.remove_member(conn, OPERATOR, directory.organization, account)


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
async def test_a_member_removed_by_hand_while_the_provider_does_waits_and_is_gone(
    database: Database, managed: Directory, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    user = await managed.add("cat")
    account = await a_user(database, "cat")
    written = asyncio.Event()
    name = "update" if method == "PATCH" else "remove"
    write = getattr(store, name)

    async def write_slowly(*args: Any, **kwargs: Any) -> bool:
        done: bool = await write(*args, **kwargs)
        written.set()
        # Until then whoever works by hand has come to where they have to wait.
        await asyncio.sleep(0.2)
        return done

    monkeypatch.setattr(store, name, write_slowly)
    by_hand = asyncio.create_task(_remove_by_hand(database, managed, account, written))
    if method == "PATCH":
        assert (await managed.set_active(user, False))["active"] is False
    else:
        assert (await managed.ask("DELETE", f"/Users/{user['id']}")).status_code == 204

    with pytest.raises(NotAMember):
        await by_hand
    assert (await a_user(database, "cat")).disabled_at is not None


async def test_a_ban_in_the_same_moment_holds(database: Database, managed: Directory) -> None:
    user = await managed.add("dan")
    await managed.set_active(user, False)
    account = await a_user(database, "dan")
    opened: list[bool] = []

    async def switch_on(conn: Connection) -> None:
        opened.append(await users_accounts.enable(conn, account.id))

    await at_once(database, lambda conn: accounts.disable_user(conn, account), switch_on)

    assert opened == [False]
    assert (await a_user(database, "dan")).disabled_at is not None


async def test_nobody_stays_a_member_who_is_provisioned_as_inactive_while_joining(
    database: Database, invited: Directory
) -> None:
    ada = await a_person(database, "ada", "ada@corp.test")
    directory = _record_of(invited, managed=False)
    draft = records.ProvisionedUser(
        id="",
        user_name="ada@corp.test",
        active=False,
        stamp=records.Stamp(created_at=0, updated_at=0),
    )

    await at_once(
        database,
        lambda conn: organizations.set_member(conn, OPERATOR, invited.organization, ada, Role.read),
        lambda conn: service.create(conn, directory, draft),
    )

    assert await role_of(database, invited.organization, "ada") is None
