"""The caller's own e-mail addresses."""

from typing import Any

import httpx2
import pytest

from hublet.accounts.users import service as accounts
from hublet.core.database import Database
from hublet.events import EmailAdded, EmailRemoved, PrimaryEmailChanged
from outbox_events import published_events
from people import Headers, a_user, sign_in

PATH = "/api/settings/emails"


async def add(client: httpx2.AsyncClient, headers: Headers, address: str) -> dict[str, Any]:
    response = await client.post(PATH, headers=headers, json={"email": address})
    assert response.status_code == 200
    added: dict[str, Any] = response.json()
    return added


async def add_verified(database: Database, name: str, address: str) -> str:
    user = await a_user(database, name)
    async with database.transaction() as conn:
        return (await accounts.add_email(conn, user, address, verified=True)).id


async def listed(client: httpx2.AsyncClient, headers: Headers) -> list[tuple[str, bool, bool]]:
    emails = (await client.get(PATH, headers=headers)).json()
    return [(email["email"], email["isPrimary"], email["isVerified"]) for email in emails]


async def test_a_new_address_is_not_verified(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    first = await add(client, ada, "ada@example.com")
    second = await add(client, ada, "ada@example.org")

    assert first == {
        "id": first["id"],
        "email": "ada@example.com",
        "isPrimary": True,
        "isVerified": False,
        "createdAt": first["createdAt"],
    }
    assert second["isPrimary"] is False
    assert (await client.get(PATH, headers=ada)).json() == [first, second]
    user = await a_user(database, "ada")
    assert await published_events(database, EmailAdded) == [
        {"user_id": user.id, "email_id": first["id"]},
        {"user_id": user.id, "email_id": second["id"]},
    ]


async def test_an_address_belongs_to_one_account(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    await add(client, bob, "shared@example.com")

    for headers in (ada, bob):
        response = await client.post(PATH, headers=headers, json={"email": "Shared@Example.com"})
        assert response.status_code == 409
        assert response.json() == {
            "error": "The e-mail address Shared@Example.com belongs to an account already."
        }


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (
            {"email": "nonsense"},
            "An email address is written name@example.com, in ASCII.",
        ),
        ({"email": f"{'a' * 250}@b.example"}, "An email address has at most 254 characters."),
        ({}, "email is required."),
        ({"email": "a@b.example", "isPrimary": True}, "isPrimary is not a known field."),
    ],
)
async def test_an_address_that_breaks_a_rule_is_refused(
    client: httpx2.AsyncClient, ada: Headers, body: dict[str, object], sentence: str
) -> None:
    response = await client.post(PATH, headers=ada, json=body)

    assert (response.status_code, response.json()) == (400, {"error": sentence})


async def test_an_account_has_so_many_addresses_at_most(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    for number in range(20):
        await add(client, ada, f"ada-{number}@example.com")

    response = await client.post(PATH, headers=ada, json={"email": "one@example.com"})

    assert response.status_code == 400
    assert response.json() == {"error": "An account has at most 20 e-mail addresses."}


async def test_a_verified_address_can_become_the_primary_one(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await add(client, ada, "old@example.com")
    email_id = await add_verified(database, "ada", "new@example.com")

    answers = [await client.post(f"{PATH}/{email_id}/primary", headers=ada) for _ in range(2)]

    assert [(a.json()["isPrimary"], a.status_code) for a in answers] == [(True, 200)] * 2
    assert await listed(client, ada) == [
        ("old@example.com", False, False),
        ("new@example.com", True, True),
    ]
    user = await a_user(database, "ada")
    assert await published_events(database, PrimaryEmailChanged) == [
        {"user_id": user.id, "email_id": email_id}
    ]


async def test_an_address_that_is_not_verified_cannot_become_primary(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await add(client, ada, "old@example.com")
    new = await add(client, ada, "new@example.com")

    response = await client.post(f"{PATH}/{new['id']}/primary", headers=ada)

    assert response.status_code == 409
    assert response.json() == {
        "error": "new@example.com is not verified; only a verified address can be primary."
    }


async def test_an_address_can_be_removed_and_is_free_again(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await add(client, ada, "old@example.com")
    new = await add(client, ada, "new@example.com")

    response = await client.delete(f"{PATH}/{new['id']}", headers=ada)

    assert (response.status_code, response.json()) == (200, {})
    assert await listed(client, ada) == [("old@example.com", True, False)]
    user = await a_user(database, "ada")
    assert await published_events(database, EmailRemoved) == [
        {"user_id": user.id, "email_id": new["id"]}
    ]
    await add(client, await sign_in(database, "bob"), "new@example.com")


async def test_the_primary_address_goes_last(client: httpx2.AsyncClient, ada: Headers) -> None:
    primary = await add(client, ada, "old@example.com")
    other = await add(client, ada, "new@example.com")

    too_early = await client.delete(f"{PATH}/{primary['id']}", headers=ada)
    await client.delete(f"{PATH}/{other['id']}", headers=ada)
    last = await client.delete(f"{PATH}/{primary['id']}", headers=ada)

    assert too_early.status_code == 409
    assert too_early.json() == {
        "error": "old@example.com is the primary address; "
        "make another one primary before removing it."
    }
    assert last.status_code == 200
    assert await listed(client, ada) == []


@pytest.mark.parametrize(("method", "action"), [("DELETE", ""), ("POST", "/primary")])
async def test_another_users_address_is_not_found(
    client: httpx2.AsyncClient, database: Database, ada: Headers, method: str, action: str
) -> None:
    email_id = await add_verified(database, "bob", "bob@example.com")

    response = await client.request(method, f"{PATH}/{email_id}{action}", headers=ada)

    assert response.status_code == 404
    assert response.json() == {"error": f"There is no e-mail address {email_id} of yours."}
