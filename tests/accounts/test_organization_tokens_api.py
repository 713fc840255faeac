"""Tokens that reach an organization: administrators see them, and cut them off."""

import httpx2
import pytest

from account_responses import audit_lines
from hublet.accounts.records import OrganizationPlan, Role
from hublet.core.database import Database
from hublet.tokens.cache import CallerCache
from hublet.tokens.records import TokenRole
from people import Headers, a_token, an_organization, sign_in
from repositories import a_repo
from service_accounts import create, issue

PATH = "/api/organizations/engines/settings/tokens"
SENTENCE = (
    "Your token has been revoked by an administrator of engines: "
    "it works elsewhere, but not there any more."
)


@pytest.fixture
async def engines(database: Database) -> None:
    await an_organization(
        database,
        "engines",
        plan=OrganizationPlan.enterprise,
        members={"ada": Role.admin, "bob": Role.write},
    )


def bearer(value: str) -> Headers:
    return {"Authorization": f"Bearer {value}"}


async def id_of(client: httpx2.AsyncClient, ada: Headers, name: str) -> str:
    tokens = (await client.get(PATH, headers=ada)).json()
    return next(each["_id"] for each in tokens if each["displayName"] == name)


async def test_a_token_that_is_cut_off_reaches_the_organization_no_more(
    client: httpx2.AsyncClient, database: Database, ada: Headers, engines: None
) -> None:
    value = await a_token(database, "bob")
    bob = bearer(value)
    await a_repo(client, ada, "engines/secret", private=True)
    await a_repo(client, ada, "engines/open")
    await a_repo(client, bob, "bob/own", private=True)
    before = await client.get("/api/models/engines/secret", headers=bob)

    token_id = await id_of(client, ada, "bob's token")
    revoked = await client.post(f"{PATH}/{token_id}/revoke", headers=ada)

    assert before.status_code == 200
    assert revoked.json() == {
        "_id": token_id,
        "user": "bob",
        "displayName": "bob's token",
        "last4": value[-4:],
        "kind": "access",
        "role": "write",
        "scopes": revoked.json()["scopes"],
        "createdAt": revoked.json()["createdAt"],
        "state": "revoked",
        "revokedAt": revoked.json()["revokedAt"],
    }
    for path in ("/api/models/engines/secret", "/api/models/engines/nothing", "/api/jobs/engines"):
        refused = await client.get(path, headers=bob)
        assert (refused.status_code, refused.json()) == (403, {"error": SENTENCE}), path
    again = await client.post(
        "/api/repos/create", headers=bob, json={"name": "x", "organization": "engines"}
    )
    assert (again.status_code, again.json()) == (403, {"error": SENTENCE})
    assert (await client.get("/api/models/bob/own", headers=bob)).status_code == 200
    assert (await client.get("/api/models/engines/open", headers=bob)).status_code == 200
    listed = await client.get("/api/models?author=engines", headers=bob)
    assert [each["id"] for each in listed.json()] == ["engines/open"]
    assert (await client.get("/api/whoami-v2", headers=bob)).json()["orgs"] == []
    assert (await audit_lines(client, ada))[-1][0] == "member-token.revoke"


async def test_a_token_that_a_cut_off_token_makes_is_cut_off_too(
    client: httpx2.AsyncClient, database: Database, ada: Headers, engines: None
) -> None:
    bob = await sign_in(database, "bob")
    await a_repo(client, ada, "engines/secret", private=True)
    token_id = await id_of(client, ada, "bob's token")
    await client.post(f"{PATH}/{token_id}/revoke", headers=ada)

    made = await client.post(
        "/api/settings/tokens", headers=bob, json={"name": "other", "role": "write"}
    )
    refused = await client.get("/api/models/engines/secret", headers=bearer(made.json()["value"]))

    assert (refused.status_code, refused.json()) == (403, {"error": SENTENCE})


async def test_a_leaked_value_is_cut_off_and_a_strangers_is_unknown(
    client: httpx2.AsyncClient, database: Database, ada: Headers, engines: None
) -> None:
    leaked = await a_token(database, "bob", scopes=["read-repos"])
    foreign = await a_token(database, "eve")

    revoked = await client.post(f"{PATH}/revoke", headers=ada, json={"token": leaked})
    unknown = await client.post(f"{PATH}/revoke", headers=ada, json={"token": foreign})

    assert (revoked.status_code, revoked.json()["state"]) == (200, "revoked")
    assert revoked.json()["scopes"] == ["read-repos"]
    assert unknown.status_code == 404
    assert (await client.get("/api/whoami-v2", headers=bearer(foreign))).status_code == 200


async def test_ones_own_token_is_not_cut_off(
    client: httpx2.AsyncClient, ada: Headers, engines: None
) -> None:
    token_id = await id_of(client, ada, "ada's token")

    refused = await client.post(f"{PATH}/{token_id}/revoke", headers=ada)

    assert (refused.status_code, refused.json()["error"][:31]) == (
        403,
        "This is a token of your own: de",
    )


async def test_tokens_that_do_not_reach_it_are_not_listed(
    client: httpx2.AsyncClient, database: Database, ada: Headers, engines: None
) -> None:
    bob = await sign_in(database, "bob")
    scoped = [{"owner": "bob", "scopes": ["read-repos"]}]
    body = {"name": "own things", "role": "fineGrained", "scoped": scoped}
    await client.post("/api/settings/tokens", headers=bob, json=body)
    here = body | {"name": "here", "scoped": [{"owner": "engines", "scopes": ["jobs"]}]}
    await client.post("/api/settings/tokens", headers=bob, json=here)

    listed = (await client.get(PATH, headers=ada)).json()

    names = [each["displayName"] for each in listed]
    assert names == ["ada's token", "bob's token", "here"]
    assert (listed[2]["scopes"], listed[2]["state"]) == (["jobs"], "approved")


async def test_a_token_for_nothing_else_is_revoked_altogether(
    client: httpx2.AsyncClient, ada: Headers, engines: None
) -> None:
    account = await create(client, ada)
    created = await issue(client, ada, account["id"], role="write")

    await client.post(f"{PATH}/{created['token']['id']}/revoke", headers=ada)

    after = await client.get("/api/whoami-v2", headers=bearer(created["value"]))
    assert after.status_code == 401


@pytest.mark.parametrize(
    ("who", "status"), [("nobody", 401), ("eve", 403), ("bob", 403), ("ada reads", 403)]
)
async def test_only_administrators_see_and_cut_off_tokens(
    client: httpx2.AsyncClient, database: Database, engines: None, who: str, status: int
) -> None:
    headers: Headers = {}
    if who == "ada reads":
        headers = await sign_in(database, "ada", role=TokenRole.read)
    elif who != "nobody":
        headers = await sign_in(database, who)

    assert (await client.get(PATH, headers=headers)).status_code == status
    posted = await client.post(f"{PATH}/{'a' * 24}/revoke", headers=headers)
    assert posted.status_code == status


async def test_scopes_do_not_reach_the_tokens_of_an_organization(
    client: httpx2.AsyncClient, database: Database, engines: None
) -> None:
    ada = await sign_in(database, "ada", scopes=["manage-repos", "read-memberships"])

    assert (await client.get(PATH, headers=ada)).status_code == 403


async def test_another_process_hears_of_it_at_once(
    client: httpx2.AsyncClient, database: Database, ada: Headers, engines: None
) -> None:
    value = await a_token(database, "bob")
    other = CallerCache(database)
    remembered = await other.find(value)

    await client.post(f"{PATH}/revoke", headers=ada, json={"token": value})

    assert remembered is not None
    assert not remembered.blocked
    now_found = await other.find(value)
    assert now_found is not None
    assert [each.organization_name for each in now_found.blocked] == ["engines"]
    await other.stop()
