"""A deactivated user loses the membership and the credentials at once."""

import asyncio

import httpx2
import pytest
from fastapi import FastAPI

from hublet.accounts.organizations import service as organizations
from hublet.accounts.organizations import store as group_store
from hublet.accounts.records import OPERATOR, Role
from hublet.accounts.resource_groups import service as resource_groups
from hublet.accounts.users import service as accounts
from hublet.core.database import Database
from hublet.events import CredentialRevoked, UserDisabled
from hublet.login import sessions
from hublet.login.records import Visitor
from hublet.tokens import service as tokens
from hublet.tokens.records import Grants, Scope, ScopedGrant, TokenRole
from outbox_events import published_events
from patience import SOON_SECONDS
from people import Headers, a_user, sign_in
from scim.directories import Directory, a_person, error_body, role_of
from webhooks.event_streams import open_stream


async def _works(client: httpx2.AsyncClient, headers: Headers) -> bool:
    return (await client.get("/api/whoami-v2", headers=headers)).status_code == 200


async def _confined(
    database: Database, directory: Directory, name: str, *, organization: str
) -> Headers:
    """A fine-grained token that was given for one organization."""
    user = await a_user(database, name)
    scoped = ScopedGrant(
        entity_id=organization,
        entity_type="org",
        entity_name="any",
        scopes=frozenset({Scope.read_repos}),
    )
    async with database.transaction() as conn:
        _, value = await tokens.issue(
            conn,
            user_id=user.id,
            name="confined",
            role=TokenRole.fine_grained,
            grants=Grants(scoped=(scoped,)),
        )
    return {"Authorization": f"Bearer {value}"}


async def test_a_managed_user_loses_every_credential_at_once(
    client: httpx2.AsyncClient, database: Database, managed: Directory
) -> None:
    user = await managed.add("ada")
    ada = await sign_in(database, "ada")
    assert await _works(client, ada)

    await managed.set_active(user, False)

    assert not await _works(client, ada)
    assert await role_of(database, managed.organization, "ada") is None
    assert (await a_user(database, "ada")).disabled_at is not None
    [revoked] = await published_events(database, CredentialRevoked)
    assert (revoked["name"], revoked["reason"]) == ("ada's token", "organization")
    assert len(await published_events(database, UserDisabled)) == 1


async def test_a_managed_user_is_signed_out_everywhere(
    database: Database, managed: Directory
) -> None:
    user = await managed.add("ada")
    account = await a_user(database, "ada")
    async with database.transaction() as conn:
        _, value = await sessions.begin(conn, account, Visitor(address="192.0.2.1", agent=None))
    assert await sessions.find(database, value) is not None

    await managed.set_active(user, False)
    assert await sessions.find(database, value) is None

    await managed.set_active(user, True)
    assert await sessions.find(database, value) is None


async def test_an_open_stream_of_a_managed_user_ends_soon(
    app: FastAPI, database: Database, managed: Directory
) -> None:
    user = await managed.add("ada")
    ada = await sign_in(database, "ada")
    async with open_stream(app, "/api/notifications/stream", ada) as ear:
        assert await ear.block() is not None
        assert await ear.block() is not None

        await managed.set_active(user, False)

        async with asyncio.timeout(SOON_SECONDS):
            assert await ear.ends()


async def test_an_open_stream_of_somebody_else_goes_on(
    app: FastAPI, database: Database, managed: Directory
) -> None:
    user = await managed.add("ada")
    bob = await sign_in(database, "bob")
    async with open_stream(app, "/api/notifications/stream", bob) as ear:
        assert await ear.block() is not None
        assert await ear.block() is not None

        await managed.set_active(user, False)

        with pytest.raises(TimeoutError):
            await ear.block(within=0.7)


async def test_whoever_comes_back_has_the_roles_and_no_old_token(
    client: httpx2.AsyncClient, database: Database, managed: Directory
) -> None:
    user = await managed.add("ada")
    ada = await sign_in(database, "ada")
    account, organization = await a_user(database, "ada"), managed.organization
    async with database.transaction() as conn:
        await organizations.set_member(conn, OPERATOR, organization, account, Role.write)
        research = await resource_groups.create(
            conn, OPERATOR, organization, name="research", description=""
        )
        await resource_groups.set_member(
            conn, OPERATOR, organization, research, account, Role.contributor
        )
    await managed.set_active(user, False)

    await managed.set_active(user, True)

    assert await role_of(database, organization, "ada") is Role.write
    async with database.read() as reading:
        role = await group_store.group_role_of(reading, research.id, user_id=account.id)
    assert role is Role.contributor
    assert not await _works(client, ada)
    assert await _works(client, await sign_in(database, "ada"))


async def test_a_resource_group_that_is_gone_meanwhile_is_no_obstacle(
    database: Database, managed: Directory
) -> None:
    user = await managed.add("ada")
    account, organization = await a_user(database, "ada"), managed.organization
    async with database.transaction() as conn:
        group = await resource_groups.create(
            conn, OPERATOR, organization, name="research", description=""
        )
        await resource_groups.set_member(conn, OPERATOR, organization, group, account, Role.read)
    await managed.set_active(user, False)
    async with database.transaction() as conn:
        await resource_groups.delete(conn, OPERATOR, group)

    assert (await managed.set_active(user, True))["active"] is True


async def test_whoever_has_an_account_loses_what_was_given_for_the_organization(
    client: httpx2.AsyncClient, database: Database, invited: Directory
) -> None:
    await a_person(database, "ada", "ada@corp.test")
    user = await invited.add("ada@corp.test")
    own = await sign_in(database, "ada")
    given = await _confined(database, invited, "ada", organization=invited.organization.id)
    elsewhere = await _confined(database, invited, "ada", organization="b" * 24)
    bobs = await _confined(database, invited, "bob", organization=invited.organization.id)

    await invited.set_active(user, False)

    assert await role_of(database, invited.organization, "ada") is None
    works = [await _works(client, each) for each in (own, given, elsewhere, bobs)]
    assert works == [True, False, True, True]

    await invited.set_active(user, True)
    assert await role_of(database, invited.organization, "ada") is Role.read
    assert not await _works(client, given)


async def test_the_last_owner_cannot_be_locked_out(database: Database, invited: Directory) -> None:
    async with database.transaction() as conn:
        olga = await accounts.get_user(conn, "olga")
        await accounts.add_email(conn, olga, "olga@corp.test", verified=True)
    user = await invited.add("olga@corp.test")

    for response in (
        await invited.patch(
            f"/Users/{user['id']}", {"op": "replace", "path": "active", "value": False}
        ),
        await invited.ask("DELETE", f"/Users/{user['id']}"),
    ):
        assert response.status_code == 409
        assert response.json() == error_body(
            409, "acme would be left without an administrator: make somebody else one first."
        )
    assert (await invited.ask("GET", f"/Users/{user['id']}")).json() == user


async def test_a_member_removed_by_hand_is_shown_as_not_active(
    database: Database, invited: Directory
) -> None:
    ada = await a_person(database, "ada", "ada@corp.test")
    user = await invited.add("ada@corp.test")

    async with database.transaction() as conn:
        await organizations.remove_member(conn, OPERATOR, invited.organization, ada)
    shown = (await invited.ask("GET", f"/Users/{user['id']}")).json()
    assert (shown["active"], shown["meta"]["version"]) == (False, 'W/"2"')

    async with database.transaction() as conn:
        await organizations.set_member(conn, OPERATOR, invited.organization, ada, Role.write)
    shown = (await invited.ask("GET", f"/Users/{user['id']}")).json()
    assert (shown["active"], shown["meta"]["version"]) == (True, 'W/"3"')


async def test_a_managed_user_who_leaves_does_not_take_the_account_along(
    client: httpx2.AsyncClient, database: Database, managed: Directory
) -> None:
    user = await managed.add("ada")
    ada = await sign_in(database, "ada")

    left = await client.delete("/api/organizations/acme/members/ada", headers=ada)

    assert left.status_code == 200
    assert not await _works(client, ada)
    assert (await managed.ask("GET", f"/Users/{user['id']}")).json()["active"] is False
    assert (await managed.set_active(user, True))["active"] is True
    assert await role_of(database, managed.organization, "ada") is Role.read


async def test_a_user_provisioned_as_inactive_is_no_member(
    database: Database, invited: Directory
) -> None:
    ada = await a_person(database, "ada", "ada@corp.test")
    async with database.transaction() as conn:
        await organizations.set_member(conn, OPERATOR, invited.organization, ada, Role.write)

    await invited.add("ada@corp.test", active=False)

    assert await role_of(database, invited.organization, "ada") is None


async def test_active_cannot_be_taken_away(invited: Directory) -> None:
    user = await invited.add("ada")

    response = await invited.patch(f"/Users/{user['id']}", {"op": "remove", "path": "active"})

    assert response.status_code == 400
    assert response.json() == error_body(400, "active must be true or false.", "mutability")
