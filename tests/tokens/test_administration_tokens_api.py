"""Any user's tokens, as a hub administrator manages them."""

import httpx2
import pytest

from hublet.core.database import Database
from hublet.events import CredentialCreated, CredentialRevoked
from hublet.tokens.records import Scope
from outbox_events import published_events
from people import Headers, a_user, sign_in

PATH = "/api/admin/users/ada/tokens"
WHOAMI = "/api/whoami-v2"


def bearer(value: str) -> Headers:
    return {"Authorization": f"Bearer {value}"}


async def test_an_administrator_issues_a_token_for_a_user(
    client: httpx2.AsyncClient, database: Database, admin: Headers
) -> None:
    user = await a_user(database, "ada")

    response = await client.post(
        "/api/admin/users/ADA/tokens", headers=admin, json={"name": "laptop", "role": "write"}
    )

    assert response.status_code == 200
    created = response.json()
    assert created == {
        "token": {
            "id": created["token"]["id"],
            "name": "laptop",
            "role": "write",
            "scopes": sorted(Scope),
            "hint": f"hf_…{created['value'][-4:]}",
            "createdAt": created["token"]["createdAt"],
        },
        "value": created["value"],
    }
    assert (await client.get(PATH, headers=admin)).json() == [created["token"]]
    assert (await client.get(WHOAMI, headers=bearer(created["value"]))).json()["name"] == "ada"
    fact = {"token_id": created["token"]["id"], "user_id": user.id, "name": "laptop"}
    assert fact in await published_events(database, CredentialCreated)


async def test_a_value_can_be_imported_once(
    client: httpx2.AsyncClient, database: Database, admin: Headers
) -> None:
    await a_user(database, "ada")
    body = {"name": "tests", "role": "read", "value": "hf_test_suite"}

    first = await client.post(PATH, headers=admin, json=body)
    second = await client.post(PATH, headers=admin, json=body)

    assert first.json()["value"] == "hf_test_suite"
    assert (await client.get(WHOAMI, headers=bearer("hf_test_suite"))).status_code == 200
    assert (second.status_code, second.json()) == (
        409,
        {"error": "This value was issued or imported before; choose another one."},
    )


async def test_a_fine_grained_token_has_its_scopes(
    client: httpx2.AsyncClient, database: Database, admin: Headers
) -> None:
    await a_user(database, "ada")
    body = {"name": "ci", "role": "fineGrained", "scopes": ["jobs", "webhooks"]}

    created = (await client.post(PATH, headers=admin, json=body)).json()

    assert created["token"]["scopes"] == ["jobs", "webhooks"]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"role": "read"}, "name is required."),
        (
            {"name": "x", "value": "short"},
            "A given value must have 8 to 200 printable ASCII characters.",
        ),
        (
            {"name": "x", "role": "fineGrained"},
            "Scopes belong to fine-grained tokens, and those need some.",
        ),
        ({"name": "x", "expiresAt": "2020-01-01T00:00:00Z"}, "expiresAt must lie in the future."),
        ({"name": "x", "owner": "eve"}, "owner is not a known field."),
    ],
)
async def test_a_token_that_breaks_a_rule_is_refused(
    client: httpx2.AsyncClient,
    database: Database,
    admin: Headers,
    body: dict[str, object],
    sentence: str,
) -> None:
    await a_user(database, "ada")

    response = await client.post(PATH, headers=admin, json=body)

    assert (response.status_code, response.json()) == (400, {"error": sentence})


async def test_an_administrator_revokes_a_users_token(
    client: httpx2.AsyncClient, database: Database, admin: Headers, ada: Headers
) -> None:
    assert (await client.get(WHOAMI, headers=ada)).status_code == 200
    [token] = (await client.get(PATH, headers=admin)).json()

    response = await client.delete(f"{PATH}/{token['id']}", headers=admin)

    assert (response.status_code, response.json()) == (200, {})
    assert (await client.get(WHOAMI, headers=ada)).status_code == 401
    assert (await client.get(PATH, headers=admin)).json() == []
    [fact] = await published_events(database, CredentialRevoked)
    assert (fact["token_id"], fact["reason"]) == (token["id"], "administrator")


async def test_a_token_is_found_under_its_owner_only(
    client: httpx2.AsyncClient, database: Database, admin: Headers, ada: Headers
) -> None:
    await sign_in(database, "bob")
    [token] = (await client.get(PATH, headers=admin)).json()

    response = await client.delete(f"/api/admin/users/bob/tokens/{token['id']}", headers=admin)

    assert (response.status_code, response.json()) == (
        404,
        {"error": f"There is no token {token['id']}."},
    )
    assert (await client.get(WHOAMI, headers=ada)).status_code == 200
