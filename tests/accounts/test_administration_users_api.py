"""Users as a hub administrator manages them."""

import asyncio

import httpx2
import pytest

from hublet.accounts.records import OrganizationPlan, Role
from hublet.accounts.users import service as accounts
from hublet.core.database import Database, open_database
from hublet.events import AdministratorChanged, PasswordChanged, UserDisabled, UserEnabled
from hublet.tokens.cache import CallerCache
from outbox_events import published_events
from patience import SOON_SECONDS
from people import Headers, a_user, an_organization, sign_in

PATH = "/api/admin/users"
WHOAMI = "/api/whoami-v2"

LAST = {"error": "The hub would be left without an administrator: make somebody else one first."}


async def fits(database: Database, name: str, password: str) -> bool:
    async with database.read() as conn:
        return await accounts.find_by_password(conn, name, password) is not None


async def test_an_administrator_creates_a_user(
    client: httpx2.AsyncClient, database: Database, admin: Headers
) -> None:
    response = await client.post(
        PATH,
        headers=admin,
        json={
            "name": "Ada",
            "email": "ada@example.com",
            "fullname": "Ada Lovelace",
            "password": "the first one",
            "isAdmin": True,
        },
    )

    assert response.status_code == 200
    created = response.json()
    assert created == {
        "id": created["id"],
        "name": "Ada",
        "fullname": "Ada Lovelace",
        "type": "user",
        "isAdmin": True,
        "disabled": False,
        "createdAt": created["createdAt"],
    }
    assert await fits(database, "ada", "the first one")
    ada = await sign_in(database, "ada")
    who = (await client.get(WHOAMI, headers=ada)).json()
    assert (who["email"], who["emailVerified"]) == ("ada@example.com", True)


async def test_without_a_password_there_is_none(
    client: httpx2.AsyncClient, database: Database, admin: Headers
) -> None:
    created = (await client.post(PATH, headers=admin, json={"name": "ada"})).json()

    assert (created["fullname"], created["isAdmin"]) == ("ada", False)
    assert not await fits(database, "ada", "")
    ada = await sign_in(database, "ada")
    body = {"currentPassword": "", "newPassword": "a new password"}
    changed = await client.put("/api/settings/password", headers=ada, json=body)
    assert changed.status_code == 403


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        ({"name": "ROOT"}, 409, "The name ROOT is taken."),
        (
            {"name": "eve", "email": "taken@example.com"},
            409,
            "The e-mail address taken@example.com belongs to an account already.",
        ),
        ({"name": "eve", "password": "short"}, 400, "A password has at least 8 characters."),
        ({"name": "e"}, 400, "A name has 2 to 42 characters."),
        ({"name": "eve", "isAdmin": "maybe"}, 400, "isAdmin must be true or false."),
        ({"name": "eve", "fullname": ""}, 400, "fullname must have at least 1 character(s)."),
        ({"name": "eve", "plan": "team"}, 400, "plan is not a known field."),
    ],
)
async def test_a_user_who_breaks_a_rule_is_refused(
    client: httpx2.AsyncClient,
    database: Database,
    admin: Headers,
    body: dict[str, object],
    status: int,
    sentence: str,
) -> None:
    await client.post(PATH, headers=admin, json={"name": "bob", "email": "taken@example.com"})

    response = await client.post(PATH, headers=admin, json=body)

    assert (response.status_code, response.json()) == (status, {"error": sentence})
    # Nothing of it is kept.
    assert (await client.get("/api/users/eve/overview")).status_code == 404


async def test_users_come_page_by_page(
    client: httpx2.AsyncClient, database: Database, admin: Headers
) -> None:
    for name in ("ada", "bob"):
        await a_user(database, name)

    first = await client.get(f"{PATH}?limit=2", headers=admin)
    second = await client.get(first.links["next"]["url"], headers=admin)

    assert [user["name"] for user in first.json()] == ["root", "ada"]
    assert [user["name"] for user in second.json()] == ["bob"]
    assert "next" not in second.links


async def test_a_disabled_users_token_fails_at_once(
    client: httpx2.AsyncClient, database: Database, admin: Headers, ada: Headers
) -> None:
    user = await a_user(database, "ada")
    assert (await client.get(WHOAMI, headers=ada)).status_code == 200

    disabled = await client.patch(f"{PATH}/ADA", headers=admin, json={"disabled": True})
    assert (await client.get(WHOAMI, headers=ada)).status_code == 401
    enabled = await client.patch(f"{PATH}/ada", headers=admin, json={"disabled": False})

    assert (disabled.json()["disabled"], enabled.json()["disabled"]) == (True, False)
    assert (await client.get(WHOAMI, headers=ada)).status_code == 200
    fact = {"user_id": user.id}
    assert await published_events(database, UserDisabled, UserEnabled) == [fact, fact]


async def test_a_disabled_users_token_fails_in_another_process_soon(
    client: httpx2.AsyncClient, database: Database, admin: Headers, ada: Headers
) -> None:
    value = ada["Authorization"].removeprefix("Bearer ")
    async with open_database(database.hub) as other:
        callers = CallerCache(other)
        callers.start()
        assert await callers.find(value) is not None

        await client.patch(f"{PATH}/ada", headers=admin, json={"disabled": True})

        async with asyncio.timeout(SOON_SECONDS):
            while await callers.find(value) is not None:
                await asyncio.sleep(0.01)
        await callers.stop()


async def test_a_promotion_and_its_end_count_at_once(
    client: httpx2.AsyncClient, database: Database, admin: Headers, ada: Headers
) -> None:
    user = await a_user(database, "ada")
    assert (await client.get(PATH, headers=ada)).status_code == 403

    for is_admin, status in ((True, 200), (True, 200), (False, 403)):
        changed = await client.patch(f"{PATH}/ada", headers=admin, json={"isAdmin": is_admin})
        assert changed.json()["isAdmin"] is is_admin
        assert (await client.get(PATH, headers=ada)).status_code == status

    assert await published_events(database, AdministratorChanged) == [
        {"user_id": user.id, "is_admin": True},
        {"user_id": user.id, "is_admin": False},
    ]


async def test_an_empty_change_keeps_everything(
    client: httpx2.AsyncClient, database: Database, admin: Headers
) -> None:
    before = (await client.get(PATH, headers=admin)).json()

    response = await client.patch(f"{PATH}/root", headers=admin, json={})

    assert [response.json()] == before


@pytest.mark.parametrize("body", [{"disabled": True}, {"isAdmin": False}])
async def test_the_last_administrator_stays(
    client: httpx2.AsyncClient, database: Database, admin: Headers, body: dict[str, bool]
) -> None:
    # Somebody who is disabled cannot take over.
    gone = await a_user(database, "gone", is_admin=True)
    async with database.transaction() as conn:
        await accounts.disable_user(conn, gone)

    refused = await client.patch(f"{PATH}/root", headers=admin, json=body)
    await a_user(database, "second", is_admin=True)
    allowed = await client.patch(f"{PATH}/root", headers=admin, json=body)

    assert (refused.status_code, refused.json()) == (409, LAST)
    assert allowed.status_code == 200


async def test_an_administrator_sets_a_password(
    client: httpx2.AsyncClient, database: Database, admin: Headers
) -> None:
    user = await a_user(database, "ada")

    response = await client.put(
        f"{PATH}/Ada/password", headers=admin, json={"password": "a new password"}
    )

    assert (response.status_code, response.json()) == (200, {})
    assert await fits(database, "ada", "a new password")
    assert await published_events(database, PasswordChanged) == [{"user_id": user.id}]


async def test_a_weak_password_is_refused(
    client: httpx2.AsyncClient, database: Database, admin: Headers
) -> None:
    await a_user(database, "adalovelace")

    response = await client.put(
        f"{PATH}/adalovelace/password", headers=admin, json={"password": "AdaLovelace"}
    )

    assert response.status_code == 400
    assert response.json() == {"error": "A password is not the name of its user."}


async def test_a_service_account_gets_neither_password_nor_rights(
    client: httpx2.AsyncClient, database: Database, admin: Headers, ada: Headers
) -> None:
    await an_organization(
        database, "engines", plan=OrganizationPlan.enterprise, members={"ada": Role.admin}
    )
    body = {"name": "bot", "role": "read"}
    await client.post("/api/organizations/engines/service-accounts", headers=ada, json=body)

    password = await client.put(
        f"{PATH}/bot/password", headers=admin, json={"password": "a new password"}
    )
    promoted = await client.patch(f"{PATH}/bot", headers=admin, json={"isAdmin": True})

    assert (password.status_code, password.json()) == (
        400,
        {"error": "bot is a service account: it has no password."},
    )
    assert (promoted.status_code, promoted.json()) == (
        400,
        {"error": "bot is a service account: it cannot be a hub administrator."},
    )
