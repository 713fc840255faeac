"""The roles that a user gets back with a new membership."""

from typing import Any

import pytest

from hublet.accounts.organizations import service as organizations
from hublet.accounts.organizations import store as group_store
from hublet.accounts.records import OPERATOR, ResourceGroupRecord, Role
from hublet.accounts.resource_groups import service as resource_groups
from hublet.core.database import Database
from people import a_user
from scim.directories import Directory, role_of


async def _leave(directory: Directory, group: dict[str, Any], user: dict[str, Any]) -> None:
    left = await directory.patch(
        f"/Groups/{group['id']}",
        {"op": "remove", "path": f'members[value eq "{user["id"]}"]'},
    )
    assert left.status_code == 204, left.text


async def _rename(directory: Directory, group: dict[str, Any], user: dict[str, Any]) -> None:
    renamed = await directory.patch(
        f"/Groups/{group['id']}", {"op": "replace", "path": "displayName", "value": "nothing"}
    )
    assert renamed.status_code == 204, renamed.text


async def _delete(directory: Directory, group: dict[str, Any], user: dict[str, Any]) -> None:
    assert (await directory.ask("DELETE", f"/Groups/{group['id']}")).status_code == 204


LOSSES = [
    pytest.param(_leave, id="who left the group"),
    pytest.param(_rename, id="whose group has another name"),
    pytest.param(_delete, id="whose group is gone"),
]


async def _research(database: Database, directory: Directory) -> ResourceGroupRecord:
    async with database.transaction() as conn:
        return await resource_groups.create(
            conn, OPERATOR, directory.organization, name="research", description=""
        )


async def _role_in(database: Database, group: ResourceGroupRecord, name: str) -> Role | None:
    user = await a_user(database, name)
    async with database.read() as conn:
        return await group_store.group_role_of(conn, group.id, user_id=user.id)


@pytest.mark.parametrize("lose", LOSSES)
async def test_whoever_lost_a_group_while_away_comes_back_as_an_ordinary_member(
    database: Database, managed: Directory, lose: Any
) -> None:
    user = await managed.add("ada")
    group = await managed.add_group("acme:admin", [user])
    assert await role_of(database, managed.organization, "ada") is Role.admin
    await managed.set_active(user, False)
    await lose(managed, group, user)

    await managed.set_active(user, True)

    assert await role_of(database, managed.organization, "ada") is Role.read


@pytest.mark.parametrize("lose", LOSSES)
async def test_whoever_lost_a_group_while_away_is_out_of_its_resource_group(
    database: Database, managed: Directory, lose: Any
) -> None:
    research = await _research(database, managed)
    user = await managed.add("ada")
    group = await managed.add_group("acme:Research:admin", [user])
    assert await _role_in(database, research, "ada") is Role.admin
    await managed.set_active(user, False)
    await lose(managed, group, user)

    await managed.set_active(user, True)

    assert await _role_in(database, research, "ada") is None


async def test_whoever_is_still_in_the_groups_comes_back_with_their_roles_and_those_by_hand(
    database: Database, managed: Directory
) -> None:
    research = await _research(database, managed)
    user = await managed.add("ada")
    account = await a_user(database, "ada")
    await managed.add_group("acme:write", [user])
    async with database.transaction() as conn:
        await resource_groups.set_member(
            conn, OPERATOR, managed.organization, research, account, Role.contributor
        )
    await managed.set_active(user, False)

    await managed.set_active(user, True)

    assert await role_of(database, managed.organization, "ada") is Role.write
    assert await _role_in(database, research, "ada") is Role.contributor


@pytest.mark.parametrize("returns", ["by the provider, and is changed by hand", "by hand"])
async def test_a_role_from_before_an_earlier_return_is_forgotten(
    database: Database, managed: Directory, returns: str
) -> None:
    organization = managed.organization
    user = await managed.add("ada")
    account = await a_user(database, "ada")
    async with database.transaction() as conn:
        await organizations.set_member(conn, OPERATOR, organization, account, Role.admin)
    await managed.set_active(user, False)
    if returns != "by hand":
        await managed.set_active(user, True)
    async with database.transaction() as conn:
        await organizations.set_member(conn, OPERATOR, organization, account, Role.read)
        await organizations.remove_member(conn, OPERATOR, organization, account)

    await managed.set_active(user, True)

    assert await role_of(database, organization, "ada") is Role.read
