"""Apps as those manage them who registered them."""

from typing import Any

import httpx2
import pytest

from account_responses import audit_lines
from hublet.accounts.records import OPERATOR, OrganizationPlan, Role
from hublet.core.clock import to_micros
from hublet.core.database import Database
from hublet.first_start import prepare
from hublet.oauth.access import service as access
from hublet.oauth.access import store as access_store
from hublet.oauth.access.records import Origin
from hublet.oauth.apps import administration, service
from hublet.oauth.apps.service import find_app
from hublet.oauth.clients import resolve_app
from hublet.oauth.errors import UnknownApp
from hublet.oauth.records import COMMAND_LINE_CLIENT_ID, AppKind, OAuthApp, Permission, Via
from hublet.tokens import service as tokens
from hublet.tokens.format import TokenKind
from hublet.tokens.records import ALL_SCOPES, Grants, Scope, TokenRole
from oauth.app_requests import CALLBACK, PATH, create_app, show_app
from people import Headers, a_user, an_organization, sign_in


async def known(database: Database, client_id: str) -> OAuthApp:
    async with database.read() as conn:
        app = await find_app(conn, client_id)
    assert app is not None
    return app


async def test_a_new_app_is_public_and_may_ask_for_little(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    created = await create_app(client, ada, name="  My   engine ")

    assert created == {
        "clientId": created["clientId"],
        "name": "My engine",
        "redirectUris": [CALLBACK],
        "scopes": ["openid", "profile"],
        "dynamicQuery": False,
        "tokenExchange": False,
        "isPublic": True,
        "secrets": [],
        "tokenSeconds": 28800,
        "createdAt": created["createdAt"],
        "updatedAt": created["updatedAt"],
    }
    assert await show_app(client, ada, created["clientId"]) == created
    app = await known(database, created["clientId"])
    assert app == OAuthApp(
        id=app.id,
        client_id=created["clientId"],
        kind=AppKind.registered,
        owner_id=(await a_user(database, "ada")).id,
        name="My engine",
        redirect_uris=(CALLBACK,),
        scopes=frozenset({Scope.openid, Scope.profile}),
        token_seconds=28800,
        created_at=app.created_at,
        updated_at=app.updated_at,
    )


async def test_everything_about_an_app_can_be_said_at_once(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    whole = {
        "name": "Engine",
        "redirectUris": ["http://localhost/cb", "myapp://callback", "http://localhost/cb"],
        "scopes": ["jobs", "openid", "jobs"],
        "clientUri": "https://app.example/",
        "dynamicQuery": True,
    }
    created = await create_app(client, ada, **whole)

    told = {key: created[key] for key in whole}
    assert told == whole | {
        "redirectUris": ["http://localhost/cb", "myapp://callback"],
        "scopes": ["openid", "jobs"],
    }


async def test_an_app_for_device_codes_needs_no_redirect_uri(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    created = await create_app(client, ada, redirectUris=[])

    assert created["redirectUris"] == []


async def test_apps_are_listed_oldest_first(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    first = await create_app(client, ada, name="first")
    second = await create_app(client, ada, name="second")
    bob = await sign_in(database, "bob")
    await create_app(client, bob)

    response = await client.get(PATH, headers=ada)

    assert (response.status_code, response.json()) == (200, [first, second])


async def test_a_change_keeps_what_it_does_not_name(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    created = await create_app(client, ada, clientUri="https://app.example/", scopes=["jobs"])
    path = f"{PATH}/{created['clientId']}"

    scopes = await client.patch(path, headers=ada, json={"scopes": ["webhooks"]})
    query = await client.patch(path, headers=ada, json={"dynamicQuery": True})
    page = await client.patch(path, headers=ada, json={"clientUri": None})

    changed = created | {"scopes": ["webhooks"], "updatedAt": scopes.json()["updatedAt"]}
    assert (scopes.status_code, scopes.json()) == (200, changed)
    assert query.json() == changed | {
        "dynamicQuery": True,
        "updatedAt": query.json()["updatedAt"],
    }
    gone = query.json() | {"updatedAt": page.json()["updatedAt"]}
    del gone["clientUri"]
    assert page.json() == gone
    assert await show_app(client, ada, created["clientId"]) == gone


@pytest.mark.parametrize(
    ("change", "revision"),
    [
        pytest.param({"name": "Another"}, 2, id="another name"),
        pytest.param({"name": "Engine"}, 1, id="the same name"),
        pytest.param({"redirectUris": [CALLBACK, "https://b.io/"]}, 2, id="one more host"),
        pytest.param({"redirectUris": []}, 2, id="no host"),
        pytest.param({"redirectUris": ["http://localhost/cb"]}, 2, id="another host"),
        pytest.param({"redirectUris": [CALLBACK + "/2"]}, 1, id="another path on the host"),
        pytest.param({"scopes": ["jobs"]}, 1, id="other scopes"),
        pytest.param({"clientUri": "https://c.io/"}, 1, id="another page"),
    ],
)
async def test_people_are_asked_again_when_the_name_or_a_host_changes(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    change: dict[str, Any],
    revision: int,
) -> None:
    created = await create_app(client, ada)

    await client.patch(f"{PATH}/{created['clientId']}", headers=ada, json=change)

    assert (await known(database, created["clientId"])).revision == revision


_REFUSED = [
    pytest.param({"name": ""}, "name must have at least 1 character(s).", id="no name"),
    pytest.param(
        {"name": " \t"},
        "name: the name of an app has 1 to 100 characters.",
        id="a blank name",
    ),
    pytest.param(
        {"name": "x" * 101},
        "name must have at most 100 characters.",
        id="a long name",
    ),
    pytest.param(
        {"name": "Good \u202eelgooG"},
        "name: the name of an app has no control characters and no invisible ones.",
        id="a name that turns around",
    ),
    pytest.param(
        {"redirectUris": [CALLBACK, "http://app.example/"]},
        "redirectUris[1]: http is only for localhost, 127.0.0.1 and [::1]; other hosts need https.",
        id="plain http",
    ),
    pytest.param(
        {"redirectUris": ["https://app.example/#x"]},
        "redirectUris[0]: a redirect URI has no fragment (#).",
        id="a fragment",
    ),
    pytest.param(
        {"redirectUris": ["https://app.example/?code=1"]},
        "redirectUris[0]: the query of a redirect URI must not have code: the answer adds it.",
        id="a name of the answer",
    ),
    pytest.param(
        {"redirectUris": [f"https://app.example/{n}" for n in range(21)]},
        "redirectUris must have at most 20 items.",
        id="too many redirect URIs",
    ),
    pytest.param(
        {"clientUri": "javascript:alert(1)"},
        "clientUri: the address of a page begins with https://.",
        id="a page that a browser runs",
    ),
    pytest.param(
        {"clientUri": "http://app.example"},
        "clientUri: http is only for localhost, 127.0.0.1 and [::1]; other hosts need https.",
        id="a page on plain http",
    ),
]


@pytest.mark.parametrize(("part", "sentence"), _REFUSED)
async def test_what_breaks_a_rule_is_refused_with_the_rule(
    client: httpx2.AsyncClient, ada: Headers, part: dict[str, Any], sentence: str
) -> None:
    created = await create_app(client, ada)
    whole = {"name": "Engine", "redirectUris": [CALLBACK]} | part

    at_first = await client.post(PATH, headers=ada, json=whole)
    later = await client.patch(f"{PATH}/{created['clientId']}", headers=ada, json=part)

    assert (at_first.status_code, at_first.json()) == (400, {"error": sentence})
    assert (later.status_code, later.json()) == (400, {"error": sentence})
    assert await show_app(client, ada, created["clientId"]) == created


async def test_unknown_scopes_and_fields_are_refused(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    scope = await client.post(PATH, headers=ada, json={"name": "E", "scopes": ["everything"]})
    field = await client.post(PATH, headers=ada, json={"name": "E", "tokenExchange": True})

    assert scope.status_code == field.status_code == 400
    assert "scopes" in scope.json()["error"]
    assert "tokenExchange" in field.json()["error"]


async def test_there_are_at_most_100_apps_of_an_owner(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert service.MAX_APPS == 100
    monkeypatch.setattr(service, "MAX_APPS", 2)
    await an_organization(database, "acme", members={"ada": Role.admin})
    for _ in range(2):
        await create_app(client, ada)
        await create_app(client, ada, organization="acme")

    own = await client.post(PATH, headers=ada, json={"name": "one more"})
    bound = await client.post(PATH, headers=ada, json={"name": "one more", "organization": "acme"})

    sentence = "The owner has 2 apps, which is the most there may be: delete one first."
    assert (own.status_code, own.json()) == (409, {"error": sentence})
    assert (bound.status_code, bound.json()) == (409, {"error": sentence})
    await create_app(client, await sign_in(database, "bob"))


async def test_another_users_app_is_not_found(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    created = await create_app(client, ada)
    path = f"{PATH}/{created['clientId']}"
    bob = await sign_in(database, "bob")

    answers = [
        await client.get(path, headers=bob),
        await client.patch(path, headers=bob, json={"name": "mine"}),
        await client.delete(path, headers=bob),
        await client.post(f"{path}/secrets", headers=bob, json={}),
        await client.delete(f"{path}/secrets", headers=bob),
        await client.delete(f"{path}/secrets/{'0' * 24}", headers=bob),
        await client.put(f"{path}/logo", headers=bob, content=b"GIF89a"),
        await client.delete(f"{path}/logo", headers=bob),
    ]

    sentence = f"There is no app {created['clientId']}, or it is not yours to manage."
    assert [(each.status_code, each.json()) for each in answers] == [
        (404, {"error": sentence})
    ] * len(answers)
    assert await show_app(client, ada, created["clientId"]) == created


@pytest.mark.parametrize(
    ("role", "scopes"), [(TokenRole.read, None), (TokenRole.write, sorted(ALL_SCOPES))]
)
async def test_only_a_full_token_manages_apps(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    role: TokenRole,
    scopes: list[str] | None,
) -> None:
    created = await create_app(client, ada)
    path = f"{PATH}/{created['clientId']}"
    narrow = await sign_in(database, "ada", role=role, scopes=scopes)

    answers = [
        await client.get(PATH, headers=narrow),
        await client.post(PATH, headers=narrow, json={"name": "E"}),
        await client.get(path, headers=narrow),
        await client.patch(path, headers=narrow, json={}),
        await client.delete(path, headers=narrow),
        await client.post(f"{path}/secrets", headers=narrow, json={}),
        await client.delete(f"{path}/secrets", headers=narrow),
        await client.delete(f"{path}/secrets/x", headers=narrow),
        await client.put(f"{path}/logo", headers=narrow, content=b"GIF89a"),
        await client.delete(f"{path}/logo", headers=narrow),
    ]

    assert {each.status_code for each in answers} == {403}
    assert (await client.get(PATH)).status_code == 401


async def _a_token_of(database: Database, app: OAuthApp, user_id: str, access_id: str) -> str:
    permission = Permission(user_id=user_id, app_id=app.id, scopes=frozenset())
    async with database.transaction() as conn:
        await access.begin(conn, permission, Via.code, origin=Origin(), access_id=access_id)
        token = tokens.new_app_token(
            conn.hub, kind=TokenKind.oauth, user_id=user_id, name="app", grants=Grants(),
            expires_at=app.created_at.replace(year=2100), app_id=app.id, access_id=access_id,
        )  # fmt: skip
        await tokens.add_tokens(conn, [token])
    return token[1]


async def test_a_deleted_app_is_gone_with_all_access_to_it(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    created = await create_app(client, ada)
    kept = await known(database, (await create_app(client, ada))["clientId"])
    bob = await a_user(database, "bob")
    token = await _a_token_of(
        database, await known(database, created["clientId"]), bob.id, "1" * 24
    )
    other = await _a_token_of(database, kept, bob.id, "2" * 24)

    async def status(value: str) -> int:
        headers = {"Authorization": f"Bearer {value}"}
        return (await client.get("/api/whoami-v2", headers=headers)).status_code

    assert (await status(token), await status(other)) == (200, 200)

    deleted = await client.delete(f"{PATH}/{created['clientId']}", headers=ada)

    assert (deleted.status_code, deleted.json()) == (200, {})
    assert (await status(token), await status(other)) == (401, 200)
    again = await client.delete(f"{PATH}/{created['clientId']}", headers=ada)
    assert again.status_code == 404
    async with database.read() as conn:
        assert await find_app(conn, created["clientId"]) is None
        assert [each.id for each in await access_store.list_of(conn, bob.id)] == ["2" * 24]


async def test_a_bound_app_belongs_to_the_administrators(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(
        database, "acme", members={"ada": Role.admin, "bob": Role.admin, "eve": Role.write}
    )
    bob, eve = await sign_in(database, "bob"), await sign_in(database, "eve")
    created = await create_app(client, ada, organization="acme")
    path = f"{PATH}/{created['clientId']}"

    assert created["organization"] == "acme"
    assert (await client.get(PATH, headers=bob)).json() == [created]
    renamed = await client.patch(path, headers=bob, json={"name": "Ours"})
    assert (renamed.status_code, renamed.json()["name"]) == (200, "Ours")
    assert (await client.get(path, headers=eve)).status_code == 404
    assert (await client.get(PATH, headers=eve)).json() == []

    await client.put("/api/organizations/acme/members/ada", headers=bob, json={"role": "write"})
    assert (await client.get(path, headers=ada)).status_code == 404
    assert (await client.get(PATH, headers=ada)).json() == []
    assert (await client.delete(path, headers=bob)).status_code == 200


async def test_only_an_administrator_binds_an_app(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(database, "acme", members={"ada": Role.write})

    member = await client.post(PATH, headers=ada, json={"name": "E", "organization": "acme"})
    nowhere = await client.post(PATH, headers=ada, json={"name": "E", "organization": "void"})

    assert (member.status_code, member.json()) == (
        403,
        {"error": "This needs the role admin in the organization acme."},
    )
    assert (nowhere.status_code, nowhere.json()) == (
        404,
        {"error": "There is no organization void."},
    )


async def test_the_audit_log_tells_of_a_bound_app(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(database, "acme", members={"ada": Role.admin})
    created = await create_app(client, ada, organization="acme")
    client_id = created["clientId"]
    secret = await client.post(f"{PATH}/{client_id}/secrets", headers=ada, json={})
    hint = secret.json()["secret"]["hint"]
    await client.delete(f"{PATH}/{client_id}/secrets", headers=ada)
    await client.patch(f"{PATH}/{client_id}", headers=ada, json={"name": "New", "scopes": []})
    await client.put(f"{PATH}/{client_id}/logo", headers=ada, content=b"GIF89a")
    await client.delete(f"{PATH}/{client_id}", headers=ada)

    lines = await audit_lines(client, ada, organization="acme")

    assert lines == [
        ("oauth-app.create", client_id, {"name": "Engine"}),
        ("oauth-app.create-secret", client_id, {"name": "Engine", "hint": hint}),
        ("oauth-app.delete-secret", client_id, {"name": "Engine", "secret": "all"}),
        ("oauth-app.update", client_id, {"name": "New", "fields": ["name", "scopes"]}),
        ("oauth-app.update", client_id, {"name": "New", "fields": ["logo"]}),
        ("oauth-app.delete", client_id, {"name": "New"}),
    ]


async def test_the_command_line_is_an_app_of_every_hub(database: Database) -> None:
    app = await resolve_app(database, COMMAND_LINE_CLIENT_ID)

    assert app == OAuthApp(
        id=app.id,
        client_id=COMMAND_LINE_CLIENT_ID,
        kind=AppKind.first_party,
        name="Command line",
        scopes=ALL_SCOPES,
        token_seconds=30 * 86400,
        created_at=app.created_at,
        updated_at=app.updated_at,
    )
    assert await resolve_app(database, COMMAND_LINE_CLIENT_ID) == app


async def test_the_command_line_is_there_when_the_hub_starts(database: Database) -> None:
    for _ in range(2):
        await prepare(database)

    assert (await known(database, COMMAND_LINE_CLIENT_ID)).kind is AppKind.first_party


async def test_nobody_manages_the_command_line(
    client: httpx2.AsyncClient, database: Database, admin: Headers
) -> None:
    await resolve_app(database, COMMAND_LINE_CLIENT_ID)

    response = await client.delete(f"{PATH}/{COMMAND_LINE_CLIENT_ID}", headers=admin)

    assert response.status_code == 404
    assert (await client.get(PATH, headers=admin)).json() == []


@pytest.mark.parametrize(
    "client_id", ["", "unknown", "a\x00b", "\ud800", "x" * 501, "ü", "https://", "a\n"]
)
async def test_an_unknown_client_id_is_no_app(database: Database, client_id: str) -> None:
    async with database.read() as conn:
        assert await find_app(conn, client_id) is None
    with pytest.raises(UnknownApp):
        await resolve_app(database, client_id)


async def test_an_app_is_found_with_scopes_that_this_version_knows(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    created = await create_app(client, ada)
    async with database.transaction() as conn:
        await conn.execute("UPDATE oauth_apps SET scopes = $1", '["openid", "of-a-later-version"]')

    assert (await known(database, created["clientId"])).scopes == {Scope.openid}
    assert (await show_app(client, ada, created["clientId"]))["scopes"] == ["openid"]


async def test_the_time_of_a_change_is_kept(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    created = await create_app(client, ada)
    before = await known(database, created["clientId"])

    await client.patch(f"{PATH}/{created['clientId']}", headers=ada, json={"name": "New"})

    after = await known(database, created["clientId"])
    assert after.created_at == before.created_at
    assert to_micros(after.updated_at) > to_micros(before.updated_at)


async def test_without_the_privilege_what_came_of_exchanges_ends(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(
        database, "acme", plan=OrganizationPlan.enterprise, members={"ada": Role.admin}
    )
    app = await known(database, (await create_app(client, ada, organization="acme"))["clientId"])
    bob = await a_user(database, "bob")
    permission = Permission(user_id=bob.id, app_id=app.id, scopes=frozenset())
    async with database.transaction() as conn:
        await administration.set_token_exchange(conn, OPERATOR, app.client_id, allowed=True)
        kept = await access.begin(conn, permission, Via.code, origin=Origin())
        await access.begin(conn, permission, Via.exchange, origin=Origin())

    async with database.transaction() as conn:
        await administration.set_token_exchange(conn, OPERATOR, app.client_id, allowed=False)

    async with database.read() as conn:
        assert [each.id for each in await access_store.list_of(conn, bob.id)] == [kept.id]


@pytest.mark.parametrize("client_id", ["%00", "%ff", "a%0Ab", "%ed%a0%80", "%2e%2e"])
async def test_an_odd_client_id_is_not_found(
    client: httpx2.AsyncClient, ada: Headers, client_id: str
) -> None:
    response = await client.get(f"{PATH}/{client_id}", headers=ada)

    assert response.status_code in {400, 404}


async def test_the_operator_sees_apps_of_everybody(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    created = await create_app(client, ada)

    async with database.transaction() as conn:
        found = await service.get_any(conn, created["clientId"])
        await administration.delete_app(conn, OPERATOR, created["clientId"])

    assert found.app.name == "Engine"
    assert (await client.get(PATH, headers=ada)).json() == []
