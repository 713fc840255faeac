"""Who is in a resource group."""

from typing import Any

import httpx2
import pytest

from account_responses import audit_lines, user_card
from hublet.accounts.records import OrganizationPlan, Role
from hublet.accounts.users import service as accounts
from hublet.core.database import Database
from hublet.events import ResourceGroupMemberRemoved, ResourceGroupMemberSet
from outbox_events import published_events
from people import Headers, a_user, an_organization

PATH = "/api/organizations/engines/resource-groups"


async def engines(database: Database, **members: Role) -> str:
    """Create the organization that ada administers, and return its id."""
    everybody = {"ada": Role.admin} | members
    return (
        await an_organization(database, "engines", plan=OrganizationPlan.team, members=everybody)
    ).id


async def a_group(client: httpx2.AsyncClient, headers: Headers) -> dict[str, Any]:
    group: dict[str, Any] = (await client.post(PATH, headers=headers, json={"name": "red"})).json()
    return group


async def test_members_join_get_another_role_and_leave(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    organization_id = await engines(database, bob=Role.read)
    group = await a_group(client, ada)
    path = f"{PATH}/{group['id']}"
    bob = await a_user(database, "bob")

    answers = [
        await client.put(f"{path}/members/BOB", headers=ada, json={"role": role})
        for role in ("read", "write", "write")
    ]
    shown = await client.get(path, headers=ada)
    removed = await client.delete(f"{path}/members/bob", headers=ada)
    again = await client.delete(f"{path}/members/bob", headers=ada)

    assert [a.json() for a in answers] == [
        user_card(bob, role="read"), user_card(bob, role="write"), user_card(bob, role="write"),
    ]  # fmt: skip
    assert shown.json() == group | {"members": [user_card(bob, role="write")]}
    assert (removed.status_code, removed.json()) == (200, {})
    assert (again.status_code, again.json()) == (
        404,
        {"error": "bob is not a member of the resource group red."},
    )
    assert (await audit_lines(client, ada))[1:] == [
        ("resource-group-member.add", "bob", {"resource_group": "red", "role": "read"}),
        ("resource-group-member.role", "bob", {"resource_group": "red", "role": "write"}),
        ("resource-group-member.remove", "bob", {"resource_group": "red"}),
    ]
    fact = {
        "organization_id": organization_id,
        "resource_group_id": group["id"],
        "user_id": bob.id,
    }
    assert await published_events(database, ResourceGroupMemberSet) == [
        fact | {"role": "read"}, fact | {"role": "write"},
    ]  # fmt: skip
    assert await published_events(database, ResourceGroupMemberRemoved) == [fact]


@pytest.mark.parametrize(
    ("user", "sentence"),
    [
        pytest.param("eve", "eve is not a member of engines.", id="not in the organization"),
        pytest.param("nobody", "There is no user nobody.", id="unknown"),
        pytest.param("gone", "There is no user gone.", id="disabled"),
    ],
)
async def test_only_members_of_the_organization_can_join(
    client: httpx2.AsyncClient, database: Database, ada: Headers, user: str, sentence: str
) -> None:
    await engines(database, gone=Role.read)
    await a_user(database, "eve")
    gone = await a_user(database, "gone")
    async with database.transaction() as conn:
        await accounts.disable_user(conn, gone)
    group = await a_group(client, ada)

    response = await client.put(
        f"{PATH}/{group['id']}/members/{user}", headers=ada, json={"role": "read"}
    )

    assert (response.status_code, response.json()) == (404, {"error": sentence})
