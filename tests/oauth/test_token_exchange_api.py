"""Token exchange (interface 5.4): an app of an organization acts for its members."""

import asyncio
import json
from base64 import urlsafe_b64decode
from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from hublet.accounts.organizations import audit_store as audit
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import OPERATOR, AuditFilter, Organization, OrganizationPlan, Role
from hublet.accounts.users import service as accounts
from hublet.accounts.users import store as users
from hublet.core import clock
from hublet.core.config import called_address
from hublet.core.database import Database, DatabaseUnavailable
from hublet.oauth import service
from hublet.oauth.access import service as accesses
from hublet.oauth.access import store as access_store
from hublet.oauth.access.records import EndReason
from hublet.oauth.apps import administration as apps
from hublet.oauth.apps import store as organization_settings
from hublet.oauth.clients import ClientCredentials
from hublet.oauth.grants import token_exchange
from hublet.oauth.grants.context import GrantContext, TokenRequest
from hublet.oauth.records import Via
from oauth.token_flows import EXCHANGE, TOKEN, TestApp, an_app, bearer, error_of, works
from people import a_user, an_organization, sign_in
from repositories import a_repo

EMAIL = "urn:hub:token-type:user-email"
ADA = "Ada@Example.com"
NOT_FOUND = {
    "error": "invalid_grant",
    "error_description": "The user is not found in the organization of the app.",
}


@pytest.fixture
async def engines(database: Database) -> Organization:
    async with database.transaction() as conn:
        ada = await accounts.create_user(conn, "ada", email=ADA)
        await accounts.add_email(conn, ada, "second@example.com", verified=True)
        await accounts.add_email(conn, ada, "unproven@example.com", verified=False)
    return await an_organization(
        database, "engines", plan=OrganizationPlan.enterprise, members={"ada": Role.write}
    )


@pytest.fixture
async def tool(database: Database, engines: Organization) -> TestApp:
    return await an_app(
        database,
        secret=True,
        scopes=["openid", "profile", "read-repos"],
        organization_id=engines.id,
        token_exchange=True,
    )


def body(**changes: str | None) -> dict[str, str]:
    parameters: dict[str, str | None] = {
        "grant_type": EXCHANGE,
        "subject_token": ADA,
        "subject_token_type": EMAIL,
    }
    merged = parameters | changes
    return {name: value for name, value in merged.items() if value is not None}


async def exchanged(client: httpx2.AsyncClient, tool: TestApp, **more: str) -> str:
    response = await client.post(TOKEN, data=body(**more), headers=tool.basic)
    assert response.status_code == 200, response.text
    value: str = response.json()["access_token"]
    return value


async def test_without_a_scope_all_scopes_of_the_app_are_given(
    client: httpx2.AsyncClient, tool: TestApp
) -> None:
    response = await client.post(TOKEN, data=body(), headers=tool.basic)

    assert response.status_code == 200
    answer = response.json()
    assert answer == {
        "access_token": answer["access_token"],
        "token_type": "bearer",
        "expires_in": 28_800,
        "scope": "openid profile read-repos",
        "id_token": answer["id_token"],
        "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
    }
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["pragma"] == "no-cache"
    assert await works(client, answer["access_token"])


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        pytest.param("read-repos", "read-repos", id="fewer, and no ID token"),
        pytest.param("", "openid profile read-repos", id="empty counts as left out"),
    ],
)
async def test_a_scope_narrows(
    client: httpx2.AsyncClient, tool: TestApp, scope: str, expected: str
) -> None:
    response = await client.post(TOKEN, data=body(scope=scope), headers=tool.basic)

    assert response.json()["scope"] == expected
    assert ("id_token" in response.json()) is ("openid" in expected)
    assert "refresh_token" not in response.json()


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        pytest.param({"scope": "nonsense"}, "invalid_scope", id="an unknown scope"),
        pytest.param({"scope": "webhooks"}, "invalid_scope", id="not one of the app"),
        pytest.param({"scope": 'read-repos "x"'}, "invalid_scope", id="bad characters"),
        pytest.param({"subject_token": None}, "invalid_request", id="no subject"),
        pytest.param({"subject_token": ""}, "invalid_request", id="an empty subject"),
        pytest.param({"subject_token": "x" * 321}, "invalid_request", id="a long subject"),
        pytest.param({"subject_token": "x" * 9000}, "invalid_request", id="a very long one"),
        pytest.param({"subject_token": f"{ADA}\n"}, "invalid_request", id="a line feed"),
        pytest.param({"subject_token_type": None}, "invalid_request", id="no type"),
        pytest.param({"subject_token_type": "x"}, "invalid_request", id="an unknown type"),
        pytest.param(
            {"subject_token_type": token_exchange.ACCESS_TOKEN_TYPE},
            "invalid_request",
            id="an access token",
        ),
        pytest.param(
            {"requested_token_type": "urn:ietf:params:oauth:token-type:id_token"},
            "invalid_request",
            id="an ID token",
        ),
        pytest.param(
            {"requested_token_type": "urn:ietf:params:oauth:token-type:refresh_token"},
            "invalid_request",
            id="a refresh token",
        ),
        pytest.param(
            {"requested_token_type": "urn:ietf:params:oauth:token-type:jwt"},
            "invalid_request",
            id="a JWT",
        ),
        pytest.param({"actor_token": "x"}, "invalid_request", id="an actor"),
        pytest.param({"actor_token_type": "x"}, "invalid_request", id="its type"),
        pytest.param({"audience": "https://a.test"}, "invalid_target", id="another audience"),
        pytest.param({"resource": "https://a.test"}, "invalid_target", id="another resource"),
        pytest.param(
            {"resource": "http://hub.test.evil.test"}, "invalid_target", id="looks like ours"
        ),
    ],
)
async def test_a_parameter_that_breaks_a_rule_ends_the_request(
    client: httpx2.AsyncClient, tool: TestApp, changes: dict[str, str | None], error: str
) -> None:
    response = await client.post(TOKEN, data=body(**changes), headers=tool.basic)

    assert error_of(response) == (400, error)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param(
            {"subject_token_type": "urn:huggingface:token-type:user-email"}, id="both names"
        ),
        pytest.param({"requested_token_type": token_exchange.ACCESS_TOKEN_TYPE}, id="access token"),
        pytest.param({"resource": "http://hub.test"}, id="our own resource"),
        pytest.param({"audience": "http://hub.test/mcp"}, id="a part of it"),
        pytest.param({"subject_token": ADA.lower()}, id="another case"),
        pytest.param({"subject_token": "second@example.com"}, id="a second address"),
    ],
)
async def test_what_is_fine(
    client: httpx2.AsyncClient, tool: TestApp, changes: dict[str, str]
) -> None:
    response = await client.post(TOKEN, data=body(**changes), headers=tool.basic)

    assert response.status_code == 200


async def test_json_is_fine_too(client: httpx2.AsyncClient, tool: TestApp) -> None:
    response = await client.post(TOKEN, json=body(), headers=tool.basic)

    assert response.status_code == 200


async def test_only_basic_proves_who_the_app_is(
    client: httpx2.AsyncClient, database: Database, engines: Organization, tool: TestApp
) -> None:
    public = await an_app(database, organization_id=engines.id, token_exchange=True)
    named = {"client_id": tool.client_id, "client_secret": tool.secret or ""}
    attempts: list[tuple[dict[str, str], dict[str, str]]] = [
        ({}, {}),
        ({"client_id": tool.client_id}, {}),
        (named, {}),
        ({}, replace(tool, secret="hf_cs_wrong").basic),
        ({}, public.basic),
        ({"client_id": public.client_id}, {}),
    ]

    answers = [
        await client.post(TOKEN, data=body() | more, headers=headers) for more, headers in attempts
    ]

    assert [error_of(answer) for answer in answers] == [(401, "invalid_client")] * 6
    assert all("www-authenticate" in answer.headers for answer in answers)


@pytest.mark.parametrize(
    ("changes", "plan"),
    [
        pytest.param({"token_exchange": False}, OrganizationPlan.enterprise, id="no privilege"),
        pytest.param({"organization_id": None}, OrganizationPlan.enterprise, id="not bound"),
        pytest.param({}, OrganizationPlan.team, id="a smaller plan"),
    ],
)
async def test_an_app_without_the_privilege_is_no_client_for_this(
    client: httpx2.AsyncClient,
    database: Database,
    engines: Organization,
    changes: dict[str, Any],
    plan: OrganizationPlan,
) -> None:
    options: dict[str, Any] = {"organization_id": engines.id, "token_exchange": True} | changes
    app = await an_app(database, secret=True, **options)
    await set_plan(database, engines, plan)

    response = await client.post(TOKEN, data=body(), headers=app.basic)

    assert error_of(response) == (401, "invalid_client")


async def set_plan(database: Database, organization: Organization, plan: OrganizationPlan) -> None:
    async with database.transaction() as conn:
        await organizations.set_plan(conn, OPERATOR, organization, plan)


async def test_every_subject_that_is_not_found_gets_the_same_response(
    client: httpx2.AsyncClient, database: Database, tool: TestApp
) -> None:
    async with database.transaction() as conn:
        await accounts.create_user(conn, "bob", email="bob@example.com")
        eve = await accounts.create_user(conn, "eve", email="eve@example.com")
    await an_organization(
        database, "others", plan=OrganizationPlan.enterprise, members={"bob": Role.admin}
    )
    async with database.transaction() as conn:
        engines = await organizations.get(conn, "engines")
        await organizations.set_member(conn, OPERATOR, engines, eve, Role.read)
        await accounts.disable_user(conn, eve)
    subjects = [
        "nobody@example.com",
        "bob@example.com",
        "eve@example.com",
        "unproven@example.com",
        f" {ADA}",
        "ada+tag@example.com",
        "ada",
    ]

    answers = [
        await client.post(TOKEN, data=body(subject_token=subject), headers=tool.basic)
        for subject in subjects
    ]

    assert [(each.status_code, each.json()) for each in answers] == [(400, NOT_FOUND)] * 7
    assert len({each.content for each in answers}) == 1


@pytest.mark.parametrize(
    "seconds", [pytest.param(3600, id="1 h"), pytest.param(2_592_000, id="30 d")]
)
async def test_the_organization_decides_how_long_a_token_lives(
    client: httpx2.AsyncClient,
    database: Database,
    engines: Organization,
    tool: TestApp,
    seconds: int,
) -> None:
    async with database.transaction() as conn:
        await organization_settings.set_exchange_seconds(conn, engines.id, seconds)

    response = await client.post(TOKEN, data=body(), headers=tool.basic)

    value = response.json()["access_token"]
    assert response.json()["expires_in"] == seconds
    clock.move(timedelta(seconds=seconds - 60))
    assert await works(client, value)
    clock.move(timedelta(seconds=61))
    assert not await works(client, value)


async def test_every_exchange_is_in_the_organizations_audit_log(
    client: httpx2.AsyncClient, database: Database, engines: Organization, tool: TestApp
) -> None:
    for changes in (
        {"scope": "read-repos"},
        {"subject_token": "nobody@example.com"},
        {"scope": "webhooks"},
    ):
        await client.post(TOKEN, data=body(**changes), headers=tool.basic)

    async with database.read() as conn:
        lines = await audit.list_of(conn, engines.id, AuditFilter(action="token.exchange"))
    told = [(line.actor_name, line.target, line.address, line.details) for line in reversed(lines)]
    assert told == [
        ("Engine", subject, "127.0.0.1", {"client_id": tool.client_id, **details})
        for subject, details in (
            (ADA, {"scopes": "read-repos", "result": "issued"}),
            ("nobody@example.com", {"scopes": "", "result": "invalid_grant"}),
            (ADA, {"scopes": "webhooks", "result": "invalid_scope"}),
        )
    ]


async def test_a_lost_privilege_is_in_the_log_too_and_a_wrong_secret_is_not(
    client: httpx2.AsyncClient, database: Database, engines: Organization
) -> None:
    app = await an_app(database, secret=True, organization_id=engines.id)

    await client.post(TOKEN, data=body(), headers=app.basic)
    await client.post(TOKEN, data=body(), headers=replace(app, secret="wrong").basic)

    async with database.read() as conn:
        lines = await audit.list_of(conn, engines.id, AuditFilter(action="token.exchange"))
    assert [line.details["result"] for line in lines] == ["invalid_client"]


async def test_an_app_that_looks_for_people_is_slowed_down(
    client: httpx2.AsyncClient, tool: TestApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_exchange, "REFUSALS", replace(token_exchange.REFUSALS, quota=2))
    subjects = [ADA, ADA, ADA, "a@b.test", "b@b.test", ADA]

    answers = [
        await client.post(TOKEN, data=body(subject_token=subject), headers=tool.basic)
        for subject in subjects
    ]

    assert [each.status_code for each in answers] == [200, 200, 200, 400, 400, 429]
    assert answers[-1].json()["error"] == "slow_down"


async def test_an_app_looks_for_nobody_while_the_database_is_away(
    client: httpx2.AsyncClient, database: Database, tool: TestApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_exchange, "REFUSALS", replace(token_exchange.REFUSALS, quota=1))

    def away() -> object:
        raise DatabaseUnavailable("away")

    with monkeypatch.context() as patch:
        # Who the app is can be read all the same.
        patch.setattr(database, "transaction", away)
        failed = await client.post(TOKEN, data=body(), headers=tool.basic)
    answer = await client.post(TOKEN, data=body(), headers=tool.basic)

    assert (failed.status_code, answer.status_code) == (503, 200)


async def test_exchanges_are_limited_for_each_app(
    client: httpx2.AsyncClient, tool: TestApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_exchange, "EXCHANGES", replace(token_exchange.EXCHANGES, quota=1))

    answers = [await client.post(TOKEN, data=body(), headers=tool.basic) for _ in range(2)]

    assert [each.status_code for each in answers] == [200, 429]
    assert answers[1].json()["error"] == "slow_down"
    assert "retry-after" in answers[1].headers


async def remove_member(database: Database, engines: Organization, _tool: TestApp) -> None:
    ada = await a_user(database, "ada")
    async with database.transaction() as conn:
        await organizations.remove_member(conn, OPERATOR, engines, ada)


async def disable_user(database: Database, _engines: Organization, _tool: TestApp) -> None:
    ada = await a_user(database, "ada")
    async with database.transaction() as conn:
        await accounts.disable_user(conn, ada)


async def lapse(database: Database, engines: Organization, _tool: TestApp) -> None:
    await set_plan(database, engines, OrganizationPlan.free)


async def forbid(database: Database, _engines: Organization, tool: TestApp) -> None:
    async with database.transaction() as conn:
        await apps.set_token_exchange(conn, OPERATOR, tool.client_id, allowed=False)


async def delete_app(database: Database, _engines: Organization, tool: TestApp) -> None:
    async with database.transaction() as conn:
        await apps.delete_app(conn, OPERATOR, tool.client_id)


@pytest.mark.parametrize(
    "happens",
    [
        pytest.param(remove_member, id="the membership ends"),
        pytest.param(disable_user, id="the account is disabled"),
        pytest.param(lapse, id="the plan lapses"),
        pytest.param(forbid, id="the privilege is dropped"),
        pytest.param(delete_app, id="the app is deleted"),
    ],
)
async def test_a_token_is_dead_on_the_next_request_when(
    client: httpx2.AsyncClient,
    database: Database,
    engines: Organization,
    tool: TestApp,
    happens: Any,
) -> None:
    value = await exchanged(client, tool)
    assert await works(client, value)

    await happens(database, engines, tool)

    assert not await works(client, value)


async def test_what_ended_with_a_membership_does_not_come_back_with_it(
    client: httpx2.AsyncClient, database: Database, engines: Organization, tool: TestApp
) -> None:
    ada, bob = await a_user(database, "ada"), await a_user(database, "bob")
    async with database.transaction() as conn:
        await accounts.add_email(conn, bob, "bob@example.com", verified=True)
        await organizations.set_member(conn, OPERATOR, engines, bob, Role.read)
    value = await exchanged(client, tool)
    other = await exchanged(client, tool, subject_token="bob@example.com")
    async with database.transaction() as conn:
        await organizations.remove_member(conn, OPERATOR, engines, ada)
        await organizations.set_member(conn, OPERATOR, engines, ada, Role.admin)

    assert not await works(client, value)
    assert await works(client, other)


async def test_another_plan_that_has_it_changes_nothing(
    client: httpx2.AsyncClient, database: Database, engines: Organization, tool: TestApp
) -> None:
    value = await exchanged(client, tool)

    await set_plan(database, engines, OrganizationPlan.enterprise_plus)

    assert await works(client, value)


async def test_the_person_sees_it_and_can_end_it(
    client: httpx2.AsyncClient, database: Database, tool: TestApp
) -> None:
    value = await exchanged(client, tool)
    ada = await a_user(database, "ada")

    async with database.transaction() as conn:
        listed = await access_store.list_of(conn, ada.id)
        await accesses.end(conn, [each.id for each in listed], EndReason.owner)

    assert [(each.via, each.address) for each in listed] == [(Via.exchange, "127.0.0.1")]
    assert not await works(client, value)


async def test_an_exchanged_token_cannot_make_further_ones(
    client: httpx2.AsyncClient, tool: TestApp
) -> None:
    value = await exchanged(client, tool)

    created = await client.post(
        "/api/settings/tokens", headers=bearer(value), json={"name": "more", "role": "read"}
    )
    nested = await client.post(
        TOKEN,
        headers=tool.basic,
        data=body(subject_token=value, subject_token_type=token_exchange.ACCESS_TOKEN_TYPE),
    )

    assert created.status_code == 403
    assert error_of(nested) == (400, "invalid_request")


SCOPES = ["read-repos", "write-repos", "manage-repos", "webhooks", "write-discussions"]


@pytest.fixture
async def wide(database: Database, engines: Organization) -> TestApp:
    return await an_app(
        database, secret=True, scopes=SCOPES, organization_id=engines.id, token_exchange=True
    )


@pytest.fixture
async def places(client: httpx2.AsyncClient, database: Database, engines: Organization) -> None:
    """Repositories inside and outside the organization, all within ada's reach."""
    root = await sign_in(database, "root")
    await an_organization(database, "others", members={"root": Role.admin, "ada": Role.write})
    async with database.transaction() as conn:
        await organizations.set_member(
            conn, OPERATOR, engines, await accounts.get_user(conn, "root"), Role.admin
        )
    ada = await sign_in(database, "ada")
    for owner, name in ((root, "engines/secret"), (ada, "ada/secret"), (root, "others/secret")):
        await a_repo(client, owner, name, private=True)
    for owner, name in ((root, "engines/open"), (root, "others/open"), (ada, "ada/open")):
        await a_repo(client, owner, name)


COMMIT = b"""{"key": "header", "value": {"summary": "x"}}
{"key": "file", "value": {"path": "a.txt", "content": "aGk=", "encoding": "base64"}}
"""


WRITERS = {Role.write, Role.admin}
# Of each repository and scope: what a reader hears, and who may write.
EFFECTS: list[tuple[str, str, int, set[Role]]] = [
    ("engines/secret", "read-repos", 200, set()),
    ("engines/secret", "write-repos", 200, WRITERS),
    ("engines/secret", "write-discussions", 404, set()),
    ("engines/open", "read-repos", 200, set()),
    ("engines/open", "write-repos", 200, WRITERS),
    ("ada/secret", "write-repos", 404, set()),
    ("others/secret", "write-repos", 404, set()),
    ("ada/open", "write-repos", 200, set()),
    ("others/open", "write-repos", 200, set()),
]


@pytest.mark.usefixtures("places")
@pytest.mark.parametrize("role", list(Role))
async def test_the_effect_is_scope_and_role_and_organization(
    client: httpx2.AsyncClient,
    database: Database,
    engines: Organization,
    wide: TestApp,
    role: Role,
) -> None:
    async with database.transaction() as conn:
        ada = await accounts.get_user(conn, "ada")
        await organizations.set_member(conn, OPERATOR, engines, ada, role)
    for repo, scope, reads, writers in EFFECTS:
        headers = bearer(await exchanged(client, wide, scope=scope))

        read = await client.get(f"/api/models/{repo}", headers=headers)
        write = await client.post(
            f"/api/models/{repo}/commit/main",
            headers=headers | {"Content-Type": "application/x-ndjson"},
            content=COMMIT,
        )

        refused = 404 if reads == 404 else 403
        expected = (reads, 200 if role in writers else refused)
        assert (read.status_code, write.status_code) == expected, (repo, scope)


@pytest.mark.usefixtures("places")
async def test_the_role_counts_as_it_is_at_each_request(
    client: httpx2.AsyncClient, database: Database, engines: Organization, wide: TestApp
) -> None:
    headers = bearer(await exchanged(client, wide, scope="manage-repos"))
    settings = "/api/models/engines/secret/settings"
    before = await client.put(settings, headers=headers, json={"private": True})
    async with database.transaction() as conn:
        ada = await accounts.get_user(conn, "ada")
        await organizations.set_member(conn, OPERATOR, engines, ada, Role.read)

    after = await client.put(settings, headers=headers, json={"private": True})

    assert (before.status_code, after.status_code) == (200, 403)


async def test_creating_is_possible_in_the_organization_only(
    client: httpx2.AsyncClient, wide: TestApp
) -> None:
    headers = bearer(await exchanged(client, wide, scope="manage-repos"))

    inside = await client.post(
        "/api/repos/create", headers=headers, json={"name": "new", "organization": "engines"}
    )
    outside = await client.post("/api/repos/create", headers=headers, json={"name": "new"})

    assert (inside.status_code, outside.status_code) == (200, 403)


async def test_settings_webhooks_and_the_inbox_of_the_person_are_out_of_reach(
    client: httpx2.AsyncClient, database: Database, engines: Organization, wide: TestApp
) -> None:
    async with database.transaction() as conn:
        ada = await accounts.get_user(conn, "ada")
        await organizations.set_member(conn, OPERATOR, engines, ada, Role.admin)
    headers = bearer(await exchanged(client, wide))

    own = [
        await client.get(path, headers=headers)
        for path in ("/api/settings/webhooks", "/api/settings/tokens", "/api/notifications")
    ]
    theirs = await client.get("/api/organizations/engines/settings/webhooks", headers=headers)

    assert [each.status_code for each in own] == [403, 403, 403]
    assert theirs.status_code == 200


@pytest.mark.usefixtures("places")
async def test_public_collections_of_any_owner_are_read_and_nothing_more(
    client: httpx2.AsyncClient, database: Database, engines: Organization
) -> None:
    root, ada = await sign_in(database, "root"), await sign_in(database, "ada")
    app = await an_app(
        database,
        secret=True,
        scopes=["write-collections"],
        organization_id=engines.id,
        token_exchange=True,
    )
    headers = bearer(await exchanged(client, app, scope="write-collections"))
    seen: dict[str, list[int]] = {}
    for owner, sender in (("engines", root), ("others", root), ("ada", ada)):
        for private in (False, True):
            body = {"title": f"{owner} {private}", "namespace": owner, "private": private}
            made = await client.post("/api/collections", headers=sender, json=body)
            path = f"/api/collections/{made.json()['slug']}"
            read = await client.get(path, headers=headers)
            write = await client.patch(path, headers=headers, json={"theme": "blue"})
            seen[made.json()["title"]] = [read.status_code, write.status_code]
    listed = await client.get("/api/collections", headers=headers)
    created = await client.post(
        "/api/collections", headers=headers, json={"title": "Mine", "namespace": "ada"}
    )

    assert seen == {
        "engines False": [200, 200],
        "engines True": [200, 200],
        "others False": [200, 403],
        "others True": [404, 404],
        "ada False": [200, 403],
        "ada True": [404, 404],
    }
    assert len(listed.json()) == 4
    assert created.status_code == 403


@pytest.mark.usefixtures("places")
async def test_gated_repositories_that_the_person_was_granted_are_read_anywhere(
    client: httpx2.AsyncClient, database: Database, wide: TestApp
) -> None:
    root = await sign_in(database, "root")
    for name in ("others/open", "root/gated"):
        if name == "root/gated":
            await a_repo(client, root, name)
        await client.put(f"/api/models/{name}/settings", headers=root, json={"gated": "manual"})
    headers = bearer(await exchanged(client, wide, scope="read-repos"))
    check = "/api/models/root/gated/auth-check"

    before = await client.get(check, headers=headers)
    await client.post(
        "/api/models/root/gated/user-access-request/grant", headers=root, json={"user": "ada"}
    )
    after = await client.get(check, headers=headers)
    # Membership elsewhere opens nothing: only a grant to the person does.
    other = await client.get("/api/models/others/open/auth-check", headers=headers)

    assert [each.status_code for each in (before, after, other)] == [403, 200, 403]


async def test_only_the_bound_organization_is_told_of(
    client: httpx2.AsyncClient, database: Database, engines: Organization
) -> None:
    await an_organization(database, "others", members={"ada": Role.admin})
    app = await an_app(
        database,
        secret=True,
        scopes=["openid", "profile", "read-memberships"],
        organization_id=engines.id,
        token_exchange=True,
    )
    given = (await client.post(TOKEN, data=body(), headers=app.basic)).json()
    headers = bearer(given["access_token"])

    shown = (await client.get("/api/whoami-v2", headers=headers)).json()
    told = (await client.get("/oauth/userinfo", headers=headers)).json()
    claims = claims_of(given["id_token"])

    assert [each["name"] for each in shown["orgs"]] == ["engines"]
    assert "email" not in shown
    for each in (told, claims):
        assert [place["preferred_username"] for place in each["orgs"]] == ["engines"]


def claims_of(id_token: str) -> dict[str, Any]:
    payload = id_token.split(".")[1]
    claims: dict[str, Any] = json.loads(urlsafe_b64decode(payload + "=="))
    return claims


async def test_a_limit_counts_nothing_for_those_who_are_not_clients(
    app: FastAPI, client: httpx2.AsyncClient, tool: TestApp
) -> None:
    for _ in range(3):
        await client.post(TOKEN, data=body(), headers=replace(tool, secret="wrong").basic)

    verdict = app.state.limiter.count(token_exchange.EXCHANGES, tool.app.id)
    assert verdict.remaining == token_exchange.EXCHANGES.quota - 1


async def test_an_address_that_only_somebody_elses_account_has_is_theirs(
    client: httpx2.AsyncClient, database: Database, tool: TestApp
) -> None:
    async with database.transaction() as conn:
        bob = await accounts.create_user(conn, "bob")
        engines = await organizations.get(conn, "engines")
        await organizations.set_member(conn, OPERATOR, engines, bob, Role.read)
        await accounts.add_email(conn, bob, "bob@example.com", verified=True)
        found = await users.list_emails(conn, user_id=bob.id)
    assert len(found) == 1

    value = await exchanged(client, tool, subject_token="BOB@example.com")

    shown = (await client.get("/api/whoami-v2", headers=bearer(value))).json()
    assert shown["name"] == "bob"


async def test_the_id_token_names_no_login(
    client: httpx2.AsyncClient, database: Database, tool: TestApp
) -> None:
    response = await client.post(TOKEN, data=body(), headers=tool.basic)

    claims = claims_of(response.json()["id_token"])
    ada = await a_user(database, "ada")
    assert (claims["sub"], claims["aud"]) == (ada.id, tool.client_id)
    assert not {"auth_time", "amr", "nonce", "sid"} & claims.keys()


async def test_exchanges_that_are_served_together_may_call_a_local_hub_by_different_names(
    app: FastAPI, database: Database, tool: TestApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = database.hub.settings
    local = replace(settings, server=replace(settings.server, base_url=None))
    monkeypatch.setattr(database, "hub", replace(database.hub, settings=local))
    context = GrantContext(database, app.state.limiter)
    credentials = ClientCredentials(client_id=tool.client_id, secret=tool.secret, by_header=True)
    # Remembered: so both come before either is served.
    await context.clients.authenticate(credentials)

    async def issued(address: str) -> dict[str, Any]:
        called_address.set(address)
        parameters = body(resource=address)
        request = TokenRequest(parameters=parameters, credentials=credentials, address="::1")
        return await service.issue_tokens(context, request)

    answers = await asyncio.gather(issued("http://localhost:8000"), issued("http://127.0.0.1:8000"))

    assert all("access_token" in each for each in answers)
