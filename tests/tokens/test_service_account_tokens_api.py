"""Tokens of service accounts."""

from datetime import timedelta

import httpx2
import pytest

from account_responses import audit_lines
from hublet.accounts.records import OrganizationPlan, Role
from hublet.core.clock import now, wire
from hublet.core.database import Database
from hublet.events import CredentialRevoked
from hublet.tokens.records import Scope
from outbox_events import published_events
from people import Headers, an_organization
from service_accounts import PATH, create, issue
from workers import drain

WHOAMI = "/api/whoami-v2"


async def engines(database: Database) -> None:
    """Create the organization that ada administers."""
    await an_organization(
        database, "engines", plan=OrganizationPlan.enterprise, members={"ada": Role.admin}
    )


def bearer(value: str) -> Headers:
    return {"Authorization": f"Bearer {value}"}


async def test_a_token_of_a_service_account_works_and_is_shown_once(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await engines(database)
    account = await create(client, ada)
    expires_at = wire(now() + timedelta(days=1))

    created = await issue(client, ada, account["id"], role="write", expiresAt=expires_at)
    listed = await client.get(f"{PATH}/{account['id']}/tokens", headers=ada)
    who = (await client.get(WHOAMI, headers=bearer(created["value"]))).json()

    assert created["token"] == {
        "id": created["token"]["id"],
        "name": "ci",
        "role": "write",
        "scopes": sorted(Scope),
        "hint": f"hf_…{created['value'][-4:]}",
        "createdAt": created["token"]["createdAt"],
        "expiresAt": expires_at,
    }
    assert listed.json() == [created["token"]]
    assert (who["type"], who["name"], who["orgs"][0]["roleInOrg"]) == (
        "service-account",
        "bot",
        "write",
    )
    assert (await audit_lines(client, ada))[-1] == (
        "service-account-token.create",
        "bot",
        {"token_id": created["token"]["id"], "name": "ci", "role": "write"},
    )


@pytest.mark.parametrize(
    ("body", "role", "scopes"),
    [
        pytest.param({"scopes": ["jobs"]}, "fineGrained", ["jobs"], id="scopes say enough"),
        pytest.param(
            {"role": "fineGrained", "scopes": ["write-repos"]},
            "fineGrained",
            ["read-repos", "write-repos"],
            id="scopes with their role",
        ),
        pytest.param({"role": "write"}, "write", sorted(Scope), id="a role alone"),
    ],
)
async def test_a_token_has_a_role_or_scopes(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    body: dict[str, object],
    role: str,
    scopes: list[str],
) -> None:
    await engines(database)
    account = await create(client, ada)

    token = (await issue(client, ada, account["id"], **body))["token"]

    assert (token["role"], token["scopes"]) == (role, scopes)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"role": "read"}, "name is required."),
        (
            {"name": "ci", "role": "write", "scopes": ["jobs"]},
            "Scopes belong to fine-grained tokens, and those need some.",
        ),
        (
            {"name": "ci", "expiresAt": "2020-01-01T00:00:00Z"},
            "expiresAt must lie in the future.",
        ),
        ({"name": "ci", "value": "hf_my_own_value"}, "value is not a known field."),
    ],
)
async def test_a_token_that_breaks_a_rule_is_refused(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    body: dict[str, object],
    sentence: str,
) -> None:
    await engines(database)
    account = await create(client, ada)

    response = await client.post(f"{PATH}/{account['id']}/tokens", headers=ada, json=body)

    assert (response.status_code, response.json()) == (400, {"error": sentence})


async def test_a_revoked_token_fails_and_is_logged_once(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await engines(database)
    account = await create(client, ada)
    created = await issue(client, ada, account["id"])
    path = f"{PATH}/{account['id']}/tokens/{created['token']['id']}"
    assert (await client.get(WHOAMI, headers=bearer(created["value"]))).status_code == 200

    answers = [await client.delete(path, headers=ada) for _ in range(2)]
    [fact] = await published_events(database, CredentialRevoked)
    await drain(database)

    assert [(a.status_code, a.json()) for a in answers] == [(200, {})] * 2
    assert (await client.get(WHOAMI, headers=bearer(created["value"]))).status_code == 401
    assert (await client.get(f"{PATH}/{account['id']}/tokens", headers=ada)).json() == []
    assert (fact["token_id"], fact["reason"]) == (created["token"]["id"], "organization")
    assert (await audit_lines(client, ada))[3:] == [
        (
            "service-account-token.revoke",
            "bot",
            {"token_id": created["token"]["id"], "name": "ci"},
        )
    ]


async def test_a_token_of_another_account_is_not_found(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await engines(database)
    one, two = await create(client, ada, "bot-1"), await create(client, ada, "bot-2")
    token = (await issue(client, ada, one["id"]))["token"]

    response = await client.delete(f"{PATH}/{two['id']}/tokens/{token['id']}", headers=ada)

    assert response.status_code == 404
    assert response.json() == {"error": f"There is no token {token['id']}."}


async def test_a_token_gets_another_name_and_other_rights(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await engines(database)
    account = await create(client, ada)
    created = await issue(client, ada, account["id"], role="write")
    path = f"{PATH}/{account['id']}/tokens/{created['token']['id']}"

    body = {"displayName": "reader", "permissions": ["repo.content.read", "job.write"]}
    changed = await client.patch(path, headers=ada, json=body)

    assert changed.json() == {
        "_id": created["token"]["id"],
        "displayName": "reader",
        "permissions": ["repo.content.read", "job.write"],
        "repoIds": [],
        "repoPermissions": [],
        "endpointPatterns": [],
        "skipNetworkSecurity": False,
    }
    bot = bearer(created["value"])
    refused = await client.post("/api/repos/create", headers=bot, json={"name": "engines/new"})
    assert refused.status_code == 403
    assert (await audit_lines(client, ada))[-1][0] == "service-account-token.update"


@pytest.mark.parametrize(
    "body",
    [
        {"permissions": ["org.write"]},
        {"permissions": ["everything"]},
        {"repoIds": ["a" * 24]},
        {"endpointPatterns": ["gpt*"]},
        {"displayName": ""},
    ],
)
async def test_rights_that_a_token_cannot_have_are_refused(
    client: httpx2.AsyncClient, database: Database, ada: Headers, body: dict[str, object]
) -> None:
    await engines(database)
    account = await create(client, ada)
    created = await issue(client, ada, account["id"], role="write")

    refused = await client.patch(
        f"{PATH}/{account['id']}/tokens/{created['token']['id']}", headers=ada, json=body
    )

    assert refused.status_code == 400
    assert next(iter(body)) in refused.json()["error"]


async def test_a_rotated_token_is_dead_at_once(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await engines(database)
    account = await create(client, ada)
    created = await issue(client, ada, account["id"], role="write")
    path = f"{PATH}/{account['id']}/tokens/{created['token']['id']}/rotate"
    assert (await client.get(WHOAMI, headers=bearer(created["value"]))).status_code == 200

    rotated = (await client.post(path, headers=ada)).json()

    assert (await client.get(WHOAMI, headers=bearer(created["value"]))).status_code == 401
    assert (await client.get(WHOAMI, headers=bearer(rotated["token"]))).status_code == 200
    assert rotated["tokenInfo"]["displayName"] == "ci"
    assert rotated["tokenInfo"]["last4"] == rotated["token"][-4:]
    assert (await client.post(path, headers=ada)).status_code == 404
