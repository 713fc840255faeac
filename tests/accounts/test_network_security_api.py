"""Network security of organizations: from where members reach them, and who needs a token."""

from collections.abc import AsyncIterator, Callable

import httpx2
import pytest
from fastapi import FastAPI

from hublet.accounts.organizations import security
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import OPERATOR, OrganizationPlan, Role
from hublet.app import with_edge
from hublet.core.database import Database
from hublet.tokens.delegations import delegation_of
from hublet.tokens.service import find_caller
from people import Headers, a_token, an_organization, sign_in
from repositories import a_repo
from service_accounts import create, issue
from statements import note_statements
from workers import drain

PATH = "/api/organizations/engines/settings/network-security"
INSIDE, OUTSIDE = "192.0.2.7", "198.51.100.9"
REFUSED = {
    "error": "engines is only reached from its own networks, and your address is in none of them."
}
From = Callable[[str], httpx2.AsyncClient]


@pytest.fixture
async def engines(database: Database) -> None:
    await an_organization(
        database,
        "engines",
        plan=OrganizationPlan.enterprise,
        members={"ada": Role.admin, "bob": Role.write},
    )


@pytest.fixture
async def seen_from(app: FastAPI) -> AsyncIterator[From]:
    """Clients by the address that they come from."""
    clients: list[httpx2.AsyncClient] = []

    def client_at(address: str) -> httpx2.AsyncClient:
        transport = httpx2.ASGITransport(app=with_edge(app), client=(address, 4000))
        clients.append(httpx2.AsyncClient(transport=transport, base_url="http://hub.test"))
        return clients[-1]

    yield client_at
    for each in clients:
        await each.aclose()


async def restrict(inside: httpx2.AsyncClient, ada: Headers) -> None:
    body = {"ipRanges": ["192.0.2.0/24", "2001:db8::/32"], "enforceIpRestriction": True}
    response = await inside.patch(PATH, headers=ada, json=body)
    assert response.status_code == 200, response.text


async def test_members_reach_the_organization_from_its_networks_alone(
    seen_from: From, database: Database, ada: Headers, engines: None
) -> None:
    inside, outside = seen_from(INSIDE), seen_from(OUTSIDE)
    bob = await sign_in(database, "bob")
    await a_repo(inside, ada, "engines/secret", private=True)
    await a_repo(inside, ada, "engines/open")
    await restrict(inside, ada)

    for headers in (ada, bob):
        for path in ("/api/models/engines/secret", "/api/jobs/engines"):
            refused = await outside.get(path, headers=headers)
            assert (refused.status_code, refused.json()) == (403, REFUSED), path
    assert (await outside.get(PATH, headers=ada)).json() == REFUSED
    assert (await outside.get("/api/models/engines/open", headers=bob)).status_code == 200
    assert (await outside.get("/api/models?author=engines", headers=bob)).json()[1:] == []
    assert (await inside.get("/api/models/engines/secret", headers=bob)).status_code == 200
    ipv6 = seen_from("2001:db8::7")
    assert (await ipv6.get("/api/models/engines/secret", headers=bob)).status_code == 200
    mapped = seen_from("::ffff:192.0.2.9")
    assert (await mapped.get("/api/models/engines/secret", headers=bob)).status_code == 200
    assert (await inside.get(PATH, headers=ada)).json() == {
        "enforceAuth": False,
        "enforceIpRestriction": True,
        "highRateLimits": False,
        "ipRanges": ["192.0.2.0/24", "2001:db8::/32"],
        "blockedContents": [],
        "allowedContents": [],
        "keepReposMetadataVisible": True,
    }


async def test_git_is_refused_with_the_same_sentence(
    seen_from: From, database: Database, ada: Headers, engines: None
) -> None:
    inside, outside = seen_from(INSIDE), seen_from(OUTSIDE)
    await a_repo(inside, ada, "engines/secret", private=True)
    await restrict(inside, ada)
    path = "/engines/secret.git/info/refs?service=git-upload-pack"

    assert (await inside.get(path, headers=ada)).status_code == 200
    refused = await outside.get(path, headers=ada)
    assert refused.status_code == 403
    assert "own networks" in refused.text


async def test_a_service_accounts_token_may_be_exempt(
    seen_from: From, ada: Headers, engines: None
) -> None:
    inside, outside = seen_from(INSIDE), seen_from(OUTSIDE)
    await a_repo(inside, ada, "engines/secret", private=True)
    account = await create(inside, ada)
    created = await issue(inside, ada, account["id"], role="write")
    bot = {"Authorization": f"Bearer {created['value']}"}
    await restrict(inside, ada)
    path = f"/api/organizations/engines/service-accounts/{account['id']}/tokens"
    before = await outside.get("/api/models/engines/secret", headers=bot)

    changed = await inside.patch(
        f"{path}/{created['token']['id']}", headers=ada, json={"skipNetworkSecurity": True}
    )

    assert changed.json()["skipNetworkSecurity"] is True
    assert before.status_code == 403
    assert (await outside.get("/api/models/engines/secret", headers=bot)).status_code == 200


async def test_an_administrator_does_not_lock_themselves_out(
    seen_from: From, ada: Headers, engines: None
) -> None:
    body = {"ipRanges": ["192.0.2.0/24"], "enforceIpRestriction": True}

    refused = await seen_from(OUTSIDE).patch(PATH, headers=ada, json=body)
    empty = await seen_from(INSIDE).patch(PATH, headers=ada, json={"enforceIpRestriction": True})

    assert refused.status_code == 409
    assert refused.json()["error"] == (
        f"Your own address, {OUTSIDE}, is in none of the ipRanges: you would lock yourself out. "
        "Add it, or a network that it is in."
    )
    assert empty.status_code == 400
    assert (await seen_from(OUTSIDE).get(PATH, headers=ada)).json()["ipRanges"] == []


@pytest.mark.parametrize(
    "text", ["192.0.2.1/24", "192.0.2.0/33", "engines", "", "2001:db8::/129", "192.0.2.0/24 "]
)
async def test_what_is_no_network_is_refused(
    client: httpx2.AsyncClient, ada: Headers, engines: None, text: str
) -> None:
    response = await client.patch(PATH, headers=ada, json={"ipRanges": [text]})

    assert response.status_code == (200 if text == "192.0.2.0/24 " else 400)
    if response.status_code == 400:
        assert response.json()["error"].startswith(f"ipRanges[0]: {text!r} is not a network")


@pytest.mark.parametrize(
    "body",
    [
        {"highRateLimits": True},
        {"blockedContents": [{"resource": "*", "scope": "eve"}]},
        {"keepReposMetadataVisible": False},
    ],
)
async def test_what_this_hub_does_not_do_is_refused(
    client: httpx2.AsyncClient, ada: Headers, engines: None, body: dict[str, object]
) -> None:
    response = await client.patch(PATH, headers=ada, json=body)

    assert response.status_code == 400
    assert next(iter(body)) in response.json()["error"]


async def test_requests_without_a_token_from_a_network_wait_for_the_operator(
    seen_from: From, database: Database, ada: Headers, engines: None
) -> None:
    inside, outside = seen_from(INSIDE), seen_from(OUTSIDE)
    await a_repo(inside, ada, "ada/open")
    body = {"ipRanges": ["192.0.2.0/24"], "enforceAuth": True}

    asked = await inside.patch(PATH, headers=ada, json=body)
    before = await inside.get("/api/models/ada/open")
    async with database.transaction() as conn:
        organization = await organizations.get(conn, "engines")
        await security.update(conn, OPERATOR, organization, needs_token=True, by_operator=True)

    assert asked.json()["enforceAuth"] == "pending"
    assert before.status_code == 200
    assert (await inside.get("/api/models/ada/open")).status_code == 401
    git = await inside.get("/ada/open.git/info/refs?service=git-upload-pack")
    assert git.status_code == 401
    page = await inside.get("/ada/open", headers={"Accept": "text/html"})
    assert (page.status_code, page.headers["location"][:6]) == (303, "/login")
    assert (await inside.get("/join", headers={"Accept": "text/html"})).status_code != 303
    assert (await inside.get("/api/models/ada/open", headers=ada)).status_code == 200
    assert (await outside.get("/api/models/ada/open")).status_code == 200
    widened = await inside.patch(PATH, headers=ada, json={"ipRanges": ["0.0.0.0/0"]})
    assert widened.json()["enforceAuth"] == "pending"


async def test_what_is_left_behind_outside_reaches_nothing_later(
    seen_from: From, database: Database, ada: Headers, engines: None
) -> None:
    await restrict(seen_from(INSIDE), ada)
    value = await a_token(database, "bob")
    async with database.read() as conn:
        caller = await find_caller(conn, value)
        organization = await organizations.get(conn, "engines")
    assert caller is not None

    outside, inside = caller.seen_from(OUTSIDE), caller.seen_from(INSIDE)

    assert delegation_of(outside).blocked == (organization.id,)
    assert delegation_of(inside).blocked == ()


async def test_an_inbox_outside_leaves_out_what_is_of_the_organization(
    seen_from: From, database: Database, ada: Headers, engines: None
) -> None:
    inside, outside = seen_from(INSIDE), seen_from(OUTSIDE)
    bob = await sign_in(database, "bob")
    for repo in ("engines/plans", "ada/notes"):
        await a_repo(inside, ada, repo)
        body = {"title": f"In {repo}", "description": "Hello @bob"}
        await inside.post(f"/api/models/{repo}/discussions", headers=ada, json=body)
    await drain(database)
    await restrict(inside, ada)

    async def inbox_seen(client: httpx2.AsyncClient) -> tuple[set[str], dict[str, int]]:
        found = (await client.get("/api/notifications", headers=bob)).json()
        items = [each for each in found["notifications"] if each["type"] == "repo"]
        return {each["discussion"]["title"] for each in items}, found["count"]

    titles, count = await inbox_seen(inside)
    assert titles == {"In engines/plans", "In ada/notes"}
    fewer = {name: number - 1 for name, number in count.items()}
    assert await inbox_seen(outside) == ({"In ada/notes"}, fewer)
    marked = await outside.post(
        "/api/notifications/mark-as-read", params={"applyToAll": "true"}, headers=bob
    )
    assert marked.json() == {"count": fewer["unread"]}
    assert (await inbox_seen(inside))[1]["unread"] == 1


async def test_without_limits_a_caller_costs_one_statement(
    database: Database, monkeypatch: pytest.MonkeyPatch, engines: None
) -> None:
    value = await a_token(database, "bob")
    statements = note_statements(monkeypatch)
    async with database.read() as conn:
        statements.begin()
        caller = await find_caller(conn, value)

    assert caller is not None
    assert len(statements.noted) == 1


@pytest.mark.parametrize(("who", "status"), [("nobody", 401), ("eve", 403), ("bob", 403)])
async def test_only_administrators_see_and_change_networks(
    client: httpx2.AsyncClient, database: Database, engines: None, who: str, status: int
) -> None:
    headers = {} if who == "nobody" else await sign_in(database, who)

    assert (await client.get(PATH, headers=headers)).status_code == status
    assert (await client.patch(PATH, headers=headers, json={})).status_code == status


async def test_scopes_do_not_reach_the_networks(
    client: httpx2.AsyncClient, database: Database, engines: None
) -> None:
    ada = await sign_in(database, "ada", scopes=["manage-repos"])

    assert (await client.get(PATH, headers=ada)).status_code == 403


async def test_who_reaches_no_organization_sees_changes_of_their_own_at_once(
    seen_from: From, database: Database, engines: None, ada: Headers
) -> None:
    await restrict(seen_from(INSIDE), ada)
    outside = seen_from(OUTSIDE)
    before = (await outside.get("/api/whoami-v2", headers=ada)).json()
    async with database.transaction() as conn:
        await conn.execute("UPDATE users SET fullname = $1 WHERE name = $2", "Ada L.", "ada")
    after = (await outside.get("/api/whoami-v2", headers=ada)).json()

    assert before["orgs"] == after["orgs"] == []
    assert [before["fullname"], after["fullname"]] == ["ada", "Ada L."]
