"""Invitations: who may give them, how often they work, and what is left of them later."""

import httpx2
import pytest

from account_responses import audit_lines
from hublet.accounts import invitations
from hublet.accounts.errors import AlreadyMember, InvitationNotFound, InvitationTooNarrow
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import OPERATOR, Actor, Organization, Role, User
from hublet.accounts.users import service as accounts
from hublet.core.database import Database
from people import Headers, a_user, an_organization, sign_in

PATH = "/api/organizations/engines/invitations"


def actor(user: User) -> Actor:
    return Actor(id=user.id, name=user.name)


async def invite(
    database: Database, by: Actor, organization: Organization | None, role: Role | None = None
) -> str:
    """Return the secret part of a new invitation's link."""
    async with database.transaction() as conn:
        _, link = await invitations.create(conn, by, organization=organization, role=role)
    return link.rpartition("/")[2]


async def accept(database: Database, token: str, user: User) -> None:
    async with database.transaction() as conn:
        await invitations.accept(conn, actor(user), token, user)


async def role_of(database: Database, user: User, name: str = "engines") -> bool:
    async with database.read() as conn:
        organization = await organizations.get(conn, name)
        return await organizations.is_member(conn, organization, user_id=user.id)


async def test_an_invitation_is_accepted_once_and_audited(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    organization = await an_organization(database, "engines", members={"ada": Role.admin})
    bob, eve = await a_user(database, "bob"), await a_user(database, "eve")

    created = (await client.post(PATH, headers=ada, json={"role": "write"})).json()
    token = created["link"].rpartition("/")[2]
    assert created["link"] == f"http://hub.test/invitations/{token}"
    assert (await client.get(PATH, headers=ada)).json() == [created["invitation"]]
    await accept(database, token, bob)
    with pytest.raises(InvitationNotFound):
        await accept(database, token, eve)

    assert await role_of(database, bob)
    assert not await role_of(database, eve)
    assert (await client.get(PATH, headers=ada)).json() == []
    details = {"invitation": created["invitation"]["id"], "role": "write"}
    assert (await audit_lines(client, ada))[-3:] == [
        ("invitation.create", "a link", details),
        ("invitation.accept", "bob", details),
        ("member.add", "bob", {"role": "write"}),
    ]
    async with database.read() as conn:
        stored = await conn.fetch_all("SELECT * FROM invitations")
    assert all(token not in str(value) for value in dict(stored[0]).values())
    assert organization.id == stored[0]["organization_id"]


async def test_an_invitation_ends_when_it_is_revoked_or_seven_days_old(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    organization = await an_organization(database, "engines", members={"ada": Role.admin})
    other = await an_organization(database, "looms", members={"ada": Role.admin})
    user, bob = await a_user(database, "ada"), await a_user(database, "bob")
    token = await invite(database, actor(user), organization)
    created = (await client.get(PATH, headers=ada)).json()[0]

    elsewhere = await client.delete(
        f"/api/organizations/looms/invitations/{created['id']}", headers=ada
    )
    revoked = await client.delete(f"{PATH}/{created['id']}", headers=ada)
    again = await client.delete(f"{PATH}/{created['id']}", headers=ada)
    old = await invite(database, actor(user), other)
    async with database.transaction() as conn:
        await conn.execute("UPDATE invitations SET expires_at = 1 WHERE ended_at IS NULL")

    assert (elsewhere.status_code, revoked.status_code, again.status_code) == (404, 200, 404)
    for value in (token, old, "nothing"):
        with pytest.raises(InvitationNotFound):
            await accept(database, value, bob)


async def test_an_invitation_ends_with_the_rights_of_its_creator(database: Database) -> None:
    organization = await an_organization(
        database, "engines", members={"ada": Role.admin, "eve": Role.admin}
    )
    ada, bob = await a_user(database, "ada"), await a_user(database, "bob")
    root = await a_user(database, "root", is_admin=True)
    await a_user(database, "other", is_admin=True)
    tokens = [
        await invite(database, actor(ada), organization, Role.admin),
        await invite(database, actor(root), None),
        # Nobody who is not an administrator gets this far; it would not work anyway.
        await invite(database, actor(bob), None),
    ]

    async with database.transaction() as conn:
        await organizations.set_member(conn, OPERATOR, organization, ada, Role.write)
        await accounts.set_administrator(conn, root, is_admin=False)

    for token in tokens:
        with pytest.raises(InvitationNotFound):
            await accept(database, token, bob)


async def test_a_member_keeps_the_role_and_the_invitation_stays(database: Database) -> None:
    organization = await an_organization(
        database, "engines", members={"ada": Role.admin, "bob": Role.admin}
    )
    ada, bob, eve = [await a_user(database, name) for name in ("ada", "bob", "eve")]
    token = await invite(database, actor(ada), organization, Role.read)

    with pytest.raises(AlreadyMember):
        await accept(database, token, bob)
    await accept(database, token, eve)

    assert await role_of(database, eve)


async def test_only_administrators_of_the_hub_open_a_closed_hub(database: Database) -> None:
    organization = await an_organization(database, "engines", members={"ada": Role.admin})
    ada = await a_user(database, "ada")
    async with database.transaction() as conn:
        narrow, _ = await invitations.create(
            conn, actor(ada), organization=organization, role=Role.read
        )
        wide, _ = await invitations.create(conn, OPERATOR, organization=None, role=None)

        with pytest.raises(InvitationTooNarrow):
            await invitations.check_newcomer(conn, narrow)
        await invitations.check_newcomer(conn, wide)


async def test_only_administrators_invite(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(database, "engines", members={"ada": Role.write})
    root = await sign_in(database, "root", is_admin=True)

    assert (await client.post(PATH, headers=ada, json={})).status_code == 403
    assert (await client.get(PATH, headers=ada)).status_code == 403
    assert (await client.post("/api/admin/invitations", headers=ada, json={})).status_code == 403
    created = await client.post("/api/admin/invitations", headers=root, json={})
    listed = (await client.get("/api/admin/invitations", headers=root)).json()
    assert listed == [created.json()["invitation"]]
    path = f"/api/admin/invitations/{listed[0]['id']}"
    assert (await client.delete(path, headers=root)).status_code == 200
    assert (await client.get("/api/admin/invitations", headers=root)).json() == []
