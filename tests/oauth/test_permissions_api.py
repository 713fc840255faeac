"""Scopes of apps hold on the person's own things and on the selected organizations', only."""

import httpx2
import pytest

from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import OPERATOR, Organization, Role
from hublet.accounts.users import service as accounts
from hublet.core.database import Database
from oauth.token_flows import an_app, bearer, refreshed, tokens_of
from people import Headers, a_user, an_organization, sign_in
from repositories import a_repo


@pytest.fixture
async def engines(client: httpx2.AsyncClient, database: Database) -> Organization:
    """Three places where ada may do everything, each with a private repository."""
    async with database.transaction() as conn:
        await accounts.create_user(conn, "ada", email="ada@example.com")
    ada = await sign_in(database, "ada")
    found = [
        await an_organization(database, name, members={"ada": Role.admin})
        for name in ("engines", "others")
    ]
    for owner in ("ada", "engines", "others"):
        await a_repo(client, ada, f"{owner}/secret", private=True)
    return found[0]


async def allowed(
    client: httpx2.AsyncClient, database: Database, scopes: str, *selected: Organization
) -> Headers:
    app = await an_app(database, scopes=scopes.split())
    given = await tokens_of(
        client, database, app, organization_ids=[place.id for place in selected]
    )
    return bearer(given["access_token"])


async def statuses(client: httpx2.AsyncClient, headers: Headers, *paths: str) -> list[int]:
    return [(await client.get(path, headers=headers)).status_code for path in paths]


SECRETS = tuple(f"/api/models/{owner}/secret" for owner in ("ada", "engines", "others"))


async def test_repositories_are_reached_where_it_was_allowed(
    client: httpx2.AsyncClient, database: Database, engines: Organization
) -> None:
    own = await allowed(client, database, "read-repos")
    selected = await allowed(client, database, "read-repos", engines)
    without = await allowed(client, database, "profile webhooks gated-repos", engines)

    assert await statuses(client, own, *SECRETS) == [200, 404, 404]
    assert await statuses(client, selected, *SECRETS) == [200, 200, 404]
    assert await statuses(client, without, *SECRETS) == [404, 404, 404]


async def test_lists_show_what_can_be_reached(
    client: httpx2.AsyncClient, database: Database, engines: Organization
) -> None:
    headers = await allowed(client, database, "read-repos", engines)

    listed = await client.get("/api/models", headers=headers)

    assert sorted(each["id"] for each in listed.json()) == ["ada/secret", "engines/secret"]


@pytest.mark.parametrize(
    ("scope", "change", "delete"),
    [
        pytest.param("read-repos", 403, 403, id="b7 read-repos reads"),
        pytest.param("write-repos", 403, 403, id="b7 write-repos writes"),
        pytest.param("manage-repos", 200, 200, id="b7 manage-repos manages"),
    ],
)
async def test_a_larger_scope_includes_the_smaller_ones(
    client: httpx2.AsyncClient,
    database: Database,
    engines: Organization,
    scope: str,
    change: int,
    delete: int,
) -> None:
    headers = await allowed(client, database, scope, engines)

    for owner in ("ada", "engines"):
        read = await client.get(f"/api/models/{owner}/secret", headers=headers)
        changed = await client.put(
            f"/api/models/{owner}/secret/settings", headers=headers, json={"private": True}
        )
        deleted = await client.request(
            "DELETE", "/api/repos/delete", headers=headers, json={"name": f"{owner}/secret"}
        )
        found = [read.status_code, changed.status_code, deleted.status_code]
        assert found == [200, change, delete]


async def test_contribute_repos_reaches_what_the_app_created(
    client: httpx2.AsyncClient, database: Database, engines: Organization
) -> None:
    app = await an_app(database, scopes=["contribute-repos"])
    first = await tokens_of(client, database, app)
    later = await tokens_of(client, database, app)
    other = await allowed(client, database, "contribute-repos")

    await a_repo(client, bearer(first["access_token"]), "ada/made", private=True)

    paths = ("/api/models/ada/made", "/api/models/ada/secret")
    assert await statuses(client, bearer(later["access_token"]), *paths) == [200, 404]
    assert await statuses(client, other, *paths) == [404, 404]


async def test_webhooks_are_managed_where_it_was_allowed(
    client: httpx2.AsyncClient, database: Database, engines: Organization
) -> None:
    paths = (
        "/api/settings/webhooks",
        "/api/organizations/engines/settings/webhooks",
        "/api/organizations/others/settings/webhooks",
    )
    own = await allowed(client, database, "webhooks")
    selected = await allowed(client, database, "webhooks", engines)
    without = await allowed(client, database, "read-repos", engines)

    assert await statuses(client, own, *paths) == [200, 403, 403]
    assert await statuses(client, selected, *paths) == [200, 200, 403]
    assert await statuses(client, without, *paths) == [403, 403, 403]


async def test_discussions_on_private_repositories_need_to_read_them(
    client: httpx2.AsyncClient, database: Database, engines: Organization
) -> None:
    root = await sign_in(database, "root")
    await a_repo(client, root, "root/open")
    talking = await allowed(client, database, "write-discussions")
    reading = await allowed(client, database, "write-discussions read-repos")
    body = {"title": "Hello", "description": "…"}

    async def opened(headers: Headers, repo: str) -> int:
        response = await client.post(f"/api/models/{repo}/discussions", headers=headers, json=body)
        return response.status_code

    assert await opened(talking, "root/open") == 200
    assert await opened(reading, "ada/secret") == 200
    assert await opened(reading, "engines/secret") == 404
    selected = await allowed(client, database, "write-discussions", engines)
    assert await opened(selected, "engines/secret") == 200
    assert await opened(selected, "others/secret") == 404
    assert await opened(await allowed(client, database, "read-repos"), "ada/secret") == 403


@pytest.mark.parametrize(
    ("scopes", "shows_email", "organizations"),
    [
        pytest.param("profile", False, [], id="b7 neither"),
        pytest.param("email", True, [], id="b7 the address"),
        pytest.param("read-memberships", False, ["engines", "others"], id="b7 memberships"),
    ],
)
async def test_whoami_tells_as_much_as_the_scopes_do(
    client: httpx2.AsyncClient,
    database: Database,
    engines: Organization,
    scopes: str,
    *,
    shows_email: bool,
    organizations: list[str],
) -> None:
    headers = await allowed(client, database, scopes, engines)

    shown = (await client.get("/api/whoami-v2", headers=headers)).json()

    assert shown.get("email") == ("ada@example.com" if shows_email else None)
    assert [each["name"] for each in shown["orgs"]] == organizations
    # Knowing the organizations opens nothing in them.
    assert await statuses(client, headers, *SECRETS) == [404, 404, 404]


async def test_nothing_of_the_account_itself_can_be_changed(
    client: httpx2.AsyncClient, database: Database, engines: Organization
) -> None:
    headers = await allowed(client, database, "manage-repos openid email profile", engines)

    assert await statuses(client, headers, "/api/settings/tokens", "/api/notifications") == [
        403,
        403,
    ]


async def test_rights_are_those_of_the_person_at_each_request(
    client: httpx2.AsyncClient, database: Database, engines: Organization
) -> None:
    headers = await allowed(client, database, "read-repos", engines)
    assert await statuses(client, headers, SECRETS[1]) == [200]
    await a_user(database, "root")
    async with database.transaction() as conn:
        ada, root = [await accounts.get_user(conn, name) for name in ("ada", "root")]
        await organizations.set_member(conn, OPERATOR, engines, root, Role.admin)
        await organizations.remove_member(conn, OPERATOR, engines, ada)

    assert await statuses(client, headers, SECRETS[1]) == [404]


async def test_a_membership_that_ended_is_left_out_of_new_tokens(
    client: httpx2.AsyncClient, database: Database, engines: Organization
) -> None:
    app = await an_app(database, scopes=["read-repos"])
    given = await tokens_of(client, database, app, organization_ids=[engines.id])
    async with database.transaction() as conn:
        await conn.execute("DELETE FROM memberships WHERE organization_id = $1", engines.id)
    successor = (await refreshed(client, app, given["refresh_token"])).json()
    async with database.transaction() as conn:
        ada = await accounts.get_user(conn, "ada")
        await organizations.set_member(conn, OPERATOR, engines, ada, Role.admin)

    # Who joins again has not selected the organization again for this token.
    assert await statuses(client, bearer(successor["access_token"]), SECRETS[1]) == [404]


async def test_a_scope_that_is_missing_is_named_for_the_step_up(
    client: httpx2.AsyncClient, database: Database, engines: Organization
) -> None:
    headers = await allowed(client, database, "profile")

    response = await client.get("/api/settings/webhooks", headers=headers)

    assert response.status_code == 403
    assert response.headers["www-authenticate"] == (
        'Bearer error="insufficient_scope", scope="webhooks"'
    )
