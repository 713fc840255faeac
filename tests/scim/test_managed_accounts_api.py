"""Managed accounts are disabled and enabled with their users, but for bans of the hub."""

from typing import Any

import httpx2
import pytest

from accounts.test_ssh_keys_api import a_key
from accounts.test_ssh_keys_api import add as add_ssh_key
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import OPERATOR, Role, User
from hublet.accounts.users import service as accounts
from hublet.core.clock import now
from hublet.core.database import Database
from hublet.core.ids import new_object_id
from hublet.events import UserDisabled, UserEnabled
from hublet.gateway import store as ssh
from hublet.login import store as passkeys
from hublet.login.records import Passkey
from outbox_events import published_events
from people import a_user, sign_in
from scim.directories import USER, Directory, error_body, role_of

PASSWORD = "correct horse battery staple"
BANNED = error_body(
    403,
    "An administrator of the hub has switched the account ada off, "
    "and only one can switch it on again.",
)


async def _ban(client: httpx2.AsyncClient, database: Database, *, disabled: bool = True) -> None:
    root = await sign_in(database, "root", is_admin=True)
    response = await client.patch("/api/admin/users/ada", headers=root, json={"disabled": disabled})
    assert response.json()["disabled"] is disabled


async def _activate(directory: Directory, user: dict[str, Any]) -> httpx2.Response:
    return await directory.patch(
        f"/Users/{user['id']}", {"op": "replace", "path": "active", "value": True}
    )


async def _give_credentials(client: httpx2.AsyncClient, database: Database, user: User) -> str:
    """Give an account a password, a passkey and an SSH key, whose fingerprint is returned."""
    key = await add_ssh_key(client, await sign_in(database, user.name), a_key())
    passkey = Passkey(
        id=new_object_id(),
        credential_id="first",
        user_id=user.id,
        name="laptop",
        public_key=b"public",
        sign_count=0,
        created_at=now(),
    )
    async with database.transaction() as conn:
        await accounts.set_password(conn, user, PASSWORD)
        assert await passkeys.add_passkey(conn, passkey)
    fingerprint: str = key["fingerprint"]
    return fingerprint


async def _off_and_on(database: Database, directory: Directory, user: dict[str, Any]) -> None:
    await directory.set_active(user, False)
    await directory.set_active(user, True)


async def _deleted_and_added(
    database: Database, directory: Directory, user: dict[str, Any]
) -> None:
    await directory.ask("DELETE", f"/Users/{user['id']}")
    await directory.add("ada", name={"givenName": "Another", "familyName": "Person"})


async def _removed_by_hand_and_on(
    database: Database, directory: Directory, user: dict[str, Any]
) -> None:
    account = await a_user(database, "ada")
    async with database.transaction() as conn:
        await organizations.remove_member(conn, OPERATOR, directory.organization, account)
    await directory.set_active(user, True)


@pytest.mark.parametrize(
    "return_", [_off_and_on, _deleted_and_added, _removed_by_hand_and_on], ids=lambda f: f.__name__
)
async def test_nothing_that_opened_the_account_opens_it_again(
    client: httpx2.AsyncClient, database: Database, managed: Directory, return_: Any
) -> None:
    user = await managed.add("ada")
    account = await a_user(database, "ada")
    fingerprint = await _give_credentials(client, database, account)
    async with database.read() as conn:
        assert await ssh.find_key_holder(conn, fingerprint) is not None

    await return_(database, managed, user)

    assert (await a_user(database, "ada")).disabled_at is None
    async with database.read() as conn:
        assert await ssh.find_key_holder(conn, fingerprint) is None
        assert await accounts.find_by_password(conn, "ada", PASSWORD) is None
        assert await passkeys.list_passkeys(conn, user_id=account.id) == []


async def test_what_was_added_while_the_account_was_off_does_not_open_it_either(
    client: httpx2.AsyncClient, database: Database, managed: Directory
) -> None:
    user = await managed.add("ada")
    account = await a_user(database, "ada")
    await managed.set_active(user, False)
    async with database.transaction() as conn:
        await accounts.set_password(conn, account, PASSWORD)

    await managed.set_active(user, True)

    async with database.read() as conn:
        assert await accounts.find_by_password(conn, "ada", PASSWORD) is None


async def test_whoever_has_an_account_of_their_own_keeps_its_credentials(
    client: httpx2.AsyncClient, database: Database, invited: Directory
) -> None:
    async with database.transaction() as conn:
        account = await accounts.create_user(conn, "ada", email="ada@corp.test")
    fingerprint = await _give_credentials(client, database, account)
    user = await invited.add("ada@corp.test")

    await invited.set_active(user, False)

    async with database.read() as conn:
        assert await ssh.find_key_holder(conn, fingerprint) is not None
        assert await accounts.find_by_password(conn, "ada", PASSWORD) is not None
        assert len(await passkeys.list_passkeys(conn, user_id=account.id)) == 1


@pytest.mark.parametrize("banned_first", [True, False])
async def test_an_organization_does_not_lift_a_ban_of_the_hub(
    client: httpx2.AsyncClient, database: Database, managed: Directory, *, banned_first: bool
) -> None:
    user = await managed.add("ada")
    if banned_first:
        await _ban(client, database)
    await managed.set_active(user, False)
    if not banned_first:
        await _ban(client, database)

    response = await _activate(managed, user)

    assert response.status_code == 403
    assert response.json() == BANNED
    assert (await a_user(database, "ada")).disabled_at is not None
    assert await role_of(database, managed.organization, "ada") is None
    assert (await managed.ask("GET", f"/Users/{user['id']}")).json()["active"] is False


async def test_an_organization_does_not_lift_a_ban_by_provisioning_anew(
    client: httpx2.AsyncClient, database: Database, managed: Directory
) -> None:
    user = await managed.add("ada")
    await _ban(client, database)
    await managed.ask("DELETE", f"/Users/{user['id']}")

    response = await managed.ask("POST", "/Users", json={"schemas": [USER], "userName": "ada"})

    assert response.status_code == 403
    assert response.json() == BANNED
    assert await managed.user_names() == []


async def test_a_user_of_a_banned_account_may_be_provisioned_as_inactive(
    client: httpx2.AsyncClient, database: Database, managed: Directory
) -> None:
    user = await managed.add("ada")
    await _ban(client, database)
    await managed.ask("DELETE", f"/Users/{user['id']}")

    again = await managed.add("ada", active=False)

    assert (await a_user(database, "ada")).disabled_at is not None
    assert (await _activate(managed, again)).status_code == 403


async def test_after_the_ban_the_account_is_the_organizations_again(
    client: httpx2.AsyncClient, database: Database, managed: Directory
) -> None:
    user = await managed.add("ada")
    await _ban(client, database)
    await managed.set_active(user, False)
    await _ban(client, database, disabled=False)

    assert (await managed.set_active(user, True))["active"] is True
    await managed.set_active(user, False)
    assert (await a_user(database, "ada")).disabled_at is not None
    await managed.set_active(user, True)
    assert (await a_user(database, "ada")).disabled_at is None


async def test_an_account_that_is_disabled_twice_is_told_of_once(
    client: httpx2.AsyncClient, database: Database, managed: Directory
) -> None:
    user = await managed.add("ada")
    await managed.set_active(user, False)
    await _ban(client, database)

    assert len(await published_events(database, UserDisabled)) == 1


async def test_a_managed_user_who_is_added_by_hand_has_the_account_again(
    client: httpx2.AsyncClient, database: Database, managed: Directory
) -> None:
    user = await managed.add("ada")
    await managed.set_active(user, False)

    async with database.transaction() as conn:
        account = await accounts.get_user(conn, "ada")
        await organizations.set_member(conn, OPERATOR, managed.organization, account, Role.write)

    shown = (await managed.ask("GET", f"/Users/{user['id']}")).json()
    assert shown["active"] is True
    assert (await a_user(database, "ada")).disabled_at is None
    assert await role_of(database, managed.organization, "ada") is Role.write
    assert len(await published_events(database, UserEnabled)) == 1


async def test_adding_a_member_by_hand_does_not_lift_a_ban(
    client: httpx2.AsyncClient, database: Database, managed: Directory
) -> None:
    user = await managed.add("ada")
    await managed.set_active(user, False)
    await _ban(client, database)

    async with database.transaction() as conn:
        account = await accounts.get_user(conn, "ada")
        await organizations.set_member(conn, OPERATOR, managed.organization, account, Role.read)

    assert (await a_user(database, "ada")).disabled_at is not None
