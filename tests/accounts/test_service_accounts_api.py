"""Service accounts of an organization, and their tokens."""

from datetime import timedelta
from typing import Any

import httpx2
import pytest

from draining import drain
from hublet.accounts.records import Plan, Role
from hublet.core.clock import now, wire
from hublet.core.database import Database
from hublet.events import CredentialRevoked, MemberAdded, ServiceAccountCreated, UserDisabled
from hublet.tokens.records import Scope, TokenRole
from people import Headers, a_user, an_organization, sign_in
from published import published

PATH = "/api/organizations/engines/service-accounts"
WHOAMI = "/api/whoami-v2"

OPERATIONS: list[tuple[str, str, object]] = [
    ("GET", "", None),
    ("POST", "", {"name": "bot", "role": "read"}),
    ("GET", "/{id}", None),
    ("DELETE", "/{id}", None),
    ("GET", "/{id}/tokens", None),
    ("POST", "/{id}/tokens", {"name": "ci"}),
    ("DELETE", "/{id}/tokens/1", None),
]


async def engines(database: Database, *, plan: Plan = Plan.enterprise, **members: Role) -> str:
    """Create the organization that ada administers, and return its id."""
    everybody = {"ada": Role.admin} | members
    return (await an_organization(database, "engines", plan=plan, members=everybody)).id


async def create(
    client: httpx2.AsyncClient, headers: Headers, name: str = "bot", role: str = "write"
) -> dict[str, Any]:
    response = await client.post(PATH, headers=headers, json={"name": name, "role": role})
    assert response.status_code == 200
    created: dict[str, Any] = response.json()
    return created


async def issue(
    client: httpx2.AsyncClient, headers: Headers, account_id: str, **body: object
) -> dict[str, Any]:
    response = await client.post(
        f"{PATH}/{account_id}/tokens", headers=headers, json={"name": "ci"} | body
    )
    assert response.status_code == 200
    created: dict[str, Any] = response.json()
    return created


def bearer(value: str) -> Headers:
    return {"Authorization": f"Bearer {value}"}


async def log(client: httpx2.AsyncClient, headers: Headers) -> list[tuple[str, str, Any]]:
    """What the audit log says, newest line last, without what the operator did."""
    answer = await client.get("/api/organizations/engines/audit-log", headers=headers)
    lines = [
        (line["action"], line["target"], line["details"])
        for line in answer.json()
        if line["actor"]["name"] != "operator"
    ]
    return lines[::-1]


async def test_a_service_account_is_a_member_of_its_organization(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    organization_id = await engines(database)

    response = await client.post(
        PATH, headers=ada, json={"name": "Bot", "role": "contributor", "fullname": "The bot"}
    )

    assert response.status_code == 200
    created = response.json()
    assert created == {
        "id": created["id"],
        "name": "Bot",
        "fullname": "The bot",
        "role": "contributor",
        "createdAt": created["createdAt"],
    }
    assert (await client.get(PATH, headers=ada)).json() == [created]
    assert (await client.get(f"{PATH}/{created['id']}", headers=ada)).json() == created
    members = (await client.get("/api/organizations/engines/members")).json()
    assert [(m["user"], m["type"], m["role"]) for m in members] == [
        ("ada", "user", "admin"),
        ("Bot", "service-account", "contributor"),
    ]
    assert await log(client, ada) == [
        ("service-account.create", "Bot", {"role": "contributor"}),
        ("member.add", "Bot", {"role": "contributor"}),
    ]
    fact = {"organization_id": organization_id, "user_id": created["id"]}
    assert await published(database, ServiceAccountCreated) == [fact | {"name": "Bot"}]
    assert fact | {"role": "contributor"} in await published(database, MemberAdded)


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        ({"name": "ADA", "role": "read"}, 409, "The name ADA is taken."),
        ({"name": "engines", "role": "read"}, 409, "The name engines is taken."),
        ({"name": "-bot", "role": "read"}, 400, "A name has single hyphens, and none at its start or end."),
        ({"name": "bot"}, 400, "role is required."),
        ({"name": "bot", "role": "god"}, 400, "role must be one of 'read', 'contributor', 'write' or 'admin'."),
        ({"name": "bot", "role": "read", "password": "x"}, 400, "password is not a known field."),
    ],
)  # fmt: skip
async def test_a_service_account_that_breaks_a_rule_is_refused(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    body: dict[str, str],
    status: int,
    sentence: str,
) -> None:
    await engines(database)

    response = await client.post(PATH, headers=ada, json=body)

    assert (response.status_code, response.json()) == (status, {"error": sentence})


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
    assert (await log(client, ada))[-1] == (
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
    [fact] = await published(database, CredentialRevoked)
    await drain(database)

    assert [(a.status_code, a.json()) for a in answers] == [(200, {})] * 2
    assert (await client.get(WHOAMI, headers=bearer(created["value"]))).status_code == 401
    assert (await client.get(f"{PATH}/{account['id']}/tokens", headers=ada)).json() == []
    assert (fact["token_id"], fact["reason"]) == (created["token"]["id"], "organization")
    assert (await log(client, ada))[3:] == [
        (
            "service-account-token.revoke",
            "bot",
            {"token_id": created["token"]["id"], "name": "ci"},
        )
    ]


async def test_a_deleted_service_account_is_gone_but_keeps_its_name(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await engines(database)
    account = await create(client, ada)
    value = (await issue(client, ada, account["id"]))["value"]
    assert (await client.get(WHOAMI, headers=bearer(value))).status_code == 200

    deleted = await client.delete(f"{PATH}/{account['id']}", headers=ada)
    again = await client.delete(f"{PATH}/{account['id']}", headers=ada)
    reused = await client.post(PATH, headers=ada, json={"name": "bot", "role": "read"})

    assert (deleted.status_code, deleted.json()) == (200, {})
    assert (again.status_code, again.json()) == (
        404,
        {"error": f"There is no service account {account['id']}."},
    )
    assert (reused.status_code, reused.json()) == (409, {"error": "The name bot is taken."})
    assert (await client.get(WHOAMI, headers=bearer(value))).status_code == 401
    assert (await client.get(PATH, headers=ada)).json() == []
    assert (await log(client, ada))[-1] == ("service-account.delete", "bot", {})
    assert await published(database, UserDisabled) == [{"user_id": account["id"]}]


async def test_service_accounts_come_page_by_page(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await engines(database)
    bots = [await create(client, ada, f"bot-{number}") for number in range(3)]

    first = await client.get(f"{PATH}?limit=2", headers=ada)
    second = await client.get(first.links["next"]["url"], headers=ada)

    assert first.json() + second.json() == bots
    assert "next" not in second.links


async def test_a_person_is_no_service_account(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await engines(database)
    user = await a_user(database, "ada")

    statuses = [
        (
            await client.request(method, PATH + path.format(id=user.id), headers=ada, json=body)
        ).status_code
        for method, path, body in OPERATIONS[2:]
    ]

    assert statuses == [404] * 5


async def test_a_service_account_of_another_organization_is_not_found(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await engines(database)
    await an_organization(database, "looms", plan=Plan.enterprise, members={"ada": Role.admin})
    account = await create(client, ada)
    other = PATH.replace("engines", "looms")

    statuses = [
        (
            await client.request(
                method, other + path.format(id=account["id"]), headers=ada, json=body
            )
        ).status_code
        for method, path, body in OPERATIONS[2:]
    ]

    assert statuses == [404] * 5
    assert (await client.get(other, headers=ada)).json() == []


async def test_a_token_of_another_account_is_not_found(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await engines(database)
    one, two = await create(client, ada, "bot-1"), await create(client, ada, "bot-2")
    token = (await issue(client, ada, one["id"]))["token"]

    response = await client.delete(f"{PATH}/{two['id']}/tokens/{token['id']}", headers=ada)

    assert response.status_code == 404
    assert response.json() == {"error": f"There is no token {token['id']}."}


@pytest.mark.parametrize("plan", [Plan.free, Plan.team])
async def test_the_plan_must_include_service_accounts(
    client: httpx2.AsyncClient, database: Database, ada: Headers, plan: Plan
) -> None:
    await engines(database, plan=plan)
    sentence = (
        "Service accounts need the plan enterprise or a larger one, which engines does not have."
    )

    answers = [
        await client.request(method, PATH + path.format(id="1"), headers=ada, json=body)
        for method, path, body in OPERATIONS
    ]

    assert {answer.status_code for answer in answers} == {403}
    assert {answer.json()["error"] for answer in answers} == {sentence}


async def test_the_largest_plan_includes_them_too(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await engines(database, plan=Plan.enterprise_plus)

    assert (await client.get(PATH, headers=ada)).json() == []


@pytest.mark.parametrize(("method", "path", "body"), OPERATIONS)
async def test_only_an_administrator_with_a_write_token_manages_them(
    client: httpx2.AsyncClient, database: Database, method: str, path: str, body: object
) -> None:
    await engines(database, bob=Role.write)
    account = await create(client, await sign_in(database, "ada"), "robot")
    callers: list[Headers] = [
        {},
        await sign_in(database, "eve"),
        await sign_in(database, "bob"),
        await sign_in(database, "ada", role=TokenRole.read),
        await sign_in(database, "ada", scopes=["read-memberships"]),
    ]

    answers = [
        await client.request(
            method, PATH + path.format(id=account["id"]), headers=headers, json=body
        )
        for headers in callers
    ]

    assert [answer.status_code for answer in answers] == [401, 403, 403, 403, 403]
    role = {"error": "This needs the role admin in the organization engines."}
    assert [answer.json() for answer in answers[1:3]] == [role, role]
