"""Service accounts of an organization."""

import httpx2
import pytest

from account_responses import audit_lines, pages_of
from hublet.accounts.records import OrganizationPlan, Role
from hublet.core.database import Database
from hublet.events import MemberAdded, ServiceAccountCreated, UserDisabled
from hublet.tokens.records import TokenRole
from outbox_events import published_events
from people import Headers, a_user, an_organization, sign_in
from service_accounts import PATH, create, issue

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


async def engines(
    database: Database, *, plan: OrganizationPlan = OrganizationPlan.enterprise, **members: Role
) -> str:
    """Create the organization that ada administers, and return its id."""
    everybody = {"ada": Role.admin} | members
    return (await an_organization(database, "engines", plan=plan, members=everybody)).id


def bearer(value: str) -> Headers:
    return {"Authorization": f"Bearer {value}"}


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
    assert await audit_lines(client, ada) == [
        ("service-account.create", "Bot", {"role": "contributor"}),
        ("member.add", "Bot", {"role": "contributor"}),
    ]
    fact = {"organization_id": organization_id, "user_id": created["id"]}
    assert await published_events(database, ServiceAccountCreated) == [fact | {"name": "Bot"}]
    joined = fact | {"role": "contributor", "actor_id": (await a_user(database, "ada")).id}
    assert joined in await published_events(database, MemberAdded)


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
    assert (await audit_lines(client, ada))[-1] == ("service-account.delete", "bot", {})
    assert await published_events(database, UserDisabled) == [{"user_id": account["id"]}]


async def test_service_accounts_come_page_by_page(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await engines(database)
    for number in range(3):
        await create(client, ada, f"bot-{number}")

    pages = await pages_of(client, f"{PATH}?limit=2", "name", ada)

    assert pages == [["bot-0", "bot-1"], ["bot-2"]]


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
    await an_organization(
        database, "looms", plan=OrganizationPlan.enterprise, members={"ada": Role.admin}
    )
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


@pytest.mark.parametrize("plan", [OrganizationPlan.free, OrganizationPlan.team])
async def test_the_plan_must_include_service_accounts(
    client: httpx2.AsyncClient, database: Database, ada: Headers, plan: OrganizationPlan
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
    await engines(database, plan=OrganizationPlan.enterprise_plus)

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
