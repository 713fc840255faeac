"""Trusted publishers (interface 5.5): who manages them, and the exchange of ID tokens, with its attacks."""

import hmac
import json
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from ipaddress import ip_network
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from hublet.accounts.organizations import audit_store as audit
from hublet.accounts.organizations import security
from hublet.accounts.records import OPERATOR, AuditFilter, OrganizationPlan, Role
from hublet.accounts.users import store as users
from hublet.core import clock
from hublet.core.config import Settings
from hublet.core.database import Database
from hublet.oauth import pruning
from hublet.oauth.publishers import service
from oauth.id_token_issuer import (
    GITHUB_CLAIMS,
    GITLAB_CLAIMS,
    IdTokenIssuer,
    ec_key,
    rsa_key,
    running_issuer,
)
from oauth.token_flows import EXCHANGE, TOKEN
from people import Headers, an_organization, sign_in
from repos.commits import file, header, ndjson
from repositories import a_repo, disable

PATH = "/api/models/ada/engine/trusted-publishers"
REFUSED = {
    "error": "invalid_grant",
    "error_description": "The ID token is not accepted for this resource.",
}
Answer = dict[str, Any]


@pytest.fixture
def issuer() -> Iterator[IdTokenIssuer]:
    with running_issuer() as issuer:
        yield issuer


@pytest.fixture
def settings(settings: Settings, issuer: IdTokenIssuer) -> Settings:
    """A hub that trusts the issuer of the test, on this machine, and itself by a mistake."""
    issuers = (issuer.url, f"{issuer.url}/other", "http://hub.test", "https://gitlab.com")
    return replace(
        settings,
        oauth=replace(settings.oauth, publisher_issuers=issuers),
        outgoing=replace(settings.outgoing, allow=(ip_network("127.0.0.0/8"),)),
    )


def body(issuer: IdTokenIssuer, **more: Any) -> Answer:
    claims = {"repository": "acme/engine", **more.pop("claims", {})}
    return {"provider": "github", "issuer": issuer.url, "claims": claims} | more


@pytest.fixture
async def publisher(client: httpx2.AsyncClient, ada: Headers, issuer: IdTokenIssuer) -> Answer:
    """What ada/engine trusts: any run of acme/engine."""
    await a_repo(client, ada, "ada/engine", private=True)
    return await add(client, ada, body(issuer))


async def add(
    client: httpx2.AsyncClient, who: Headers, body: Answer, *, path: str = PATH
) -> Answer:
    response = await client.post(path, headers=who, json=body)
    assert response.status_code == 201, response.text
    answer: Answer = response.json()
    return answer


async def exchange(
    client: httpx2.AsyncClient, id_token: str, resource: str = "ada/engine", **more: str
) -> httpx2.Response:
    """Exchange as the public client does: JSON, without any credentials."""
    parameters = {
        "grant_type": EXCHANGE,
        "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
        "subject_token": id_token,
        "resource": resource,
    }
    return await client.post(TOKEN, json=parameters | more)


async def token_for(client: httpx2.AsyncClient, issuer: IdTokenIssuer, **changes: Any) -> Headers:
    response = await exchange(client, issuer.token(**changes))
    assert response.status_code == 200, response.text
    return {"Authorization": f"Bearer {response.json()['access_token']}"}


async def commit(
    client: httpx2.AsyncClient, who: Headers, repo: str = "models/ada/engine"
) -> httpx2.Response:
    return await client.post(
        f"/api/{repo}/commit/main",
        headers=who | {"content-type": "application/x-ndjson"},
        content=ndjson(header("Release"), file("weights.txt", "1")),
    )


async def test_a_run_exchanges_its_id_token_and_writes_the_repository(
    client: httpx2.AsyncClient, ada: Headers, publisher: Answer, issuer: IdTokenIssuer
) -> None:
    response = await exchange(client, issuer.token())

    given = response.json()
    assert response.status_code == 200
    assert given == {
        "access_token": given["access_token"],
        "token_type": "bearer",
        "expires_in": 900,
        "scope": "write-repos",
        "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
    }
    assert given["access_token"].startswith("hf_jwt_")
    made = await commit(client, {"Authorization": f"Bearer {given['access_token']}"})
    assert made.status_code == 200, made.text
    history = (await client.get("/api/models/ada/engine/commits/main", headers=ada)).json()
    assert history[0]["authors"] == [
        {"user": f"[OIDC] repo:acme/engine:ref:refs/heads/main ({issuer.url[7:]})"}
    ]
    shown = (await client.get(f"{PATH}/{publisher['id']}", headers=ada)).json()
    assert shown["pinnedIds"] == {"repository_id": "22", "repository_owner_id": "11"}
    assert shown["lastSubject"] == GITHUB_CLAIMS["sub"]
    assert "lastUsedAt" in shown


async def test_a_publisher_is_shown_as_it_was_added(
    client: httpx2.AsyncClient, ada: Headers, publisher: Answer, issuer: IdTokenIssuer
) -> None:
    assert publisher == {
        "id": publisher["id"],
        "provider": "github",
        "issuer": issuer.url,
        "claims": {"repository": "acme/engine"},
        "pinnedIds": {},
        "createdAt": publisher["createdAt"],
        "createdBy": "ada",
        "updatedAt": publisher["updatedAt"],
    }
    assert (await client.get(PATH, headers=ada)).json() == [publisher]
    assert (await client.get(f"{PATH}/{publisher['id']}", headers=ada)).json() == publisher


@pytest.mark.parametrize("kind", ["datasets", "spaces", "kernels"])
async def test_every_type_of_repository_has_publishers(
    client: httpx2.AsyncClient, ada: Headers, issuer: IdTokenIssuer, kind: str
) -> None:
    await a_repo(client, ada, "ada/works", type=kind.removesuffix("s"))
    await add(client, ada, body(issuer), path=f"/api/{kind}/ada/works/trusted-publishers")

    response = await exchange(client, issuer.token(), f"{kind}/ada/works")

    assert response.status_code == 200, response.text
    headers = {"Authorization": f"Bearer {response.json()['access_token']}"}
    assert (await commit(client, headers, f"{kind}/ada/works")).status_code == 200


async def test_buckets_have_publishers_too(
    client: httpx2.AsyncClient, ada: Headers, issuer: IdTokenIssuer
) -> None:
    await client.post("/api/buckets/ada/store", headers=ada, json={})
    await add(client, ada, body(issuer), path="/api/buckets/ada/store/trusted-publishers")

    response = await exchange(client, issuer.token(), "buckets/ada/store")

    headers = {"Authorization": f"Bearer {response.json()['access_token']}"}
    put = await client.put("/api/buckets/ada/store/files/a.txt", headers=headers, content=b"1")
    assert put.status_code < 300, put.text


# What the token may, and what not.


async def test_the_token_reaches_nothing_but_its_repository(
    client: httpx2.AsyncClient, ada: Headers, publisher: Answer, issuer: IdTokenIssuer
) -> None:
    await a_repo(client, ada, "ada/secret", private=True)
    await a_repo(client, ada, "ada/open")
    headers = await token_for(client, issuer)

    assert (await client.get("/api/models/ada/secret", headers=headers)).status_code == 404
    assert (await commit(client, headers, "models/ada/secret")).status_code == 404
    assert (await commit(client, headers, "models/ada/open")).status_code == 403
    assert (await client.get("/api/models/ada/engine", headers=headers)).status_code == 200
    assert (await client.get("/api/models/ada/open", headers=headers)).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "sent"),
    [
        ("GET", PATH, None),
        ("POST", PATH, {"provider": "github", "claims": {"repository": "evil/engine"}}),
        ("PUT", "/api/models/ada/engine/settings", {"private": False}),
        ("DELETE", "/api/repos/delete", {"name": "engine", "organization": "ada", "type": "model"}),
        ("POST", "/api/repos/create", {"name": "another"}),
        ("POST", "/api/repos/create", {"name": "ada/another"}),
        ("POST", "/api/repos/move", {"fromRepo": "ada/engine", "toRepo": "ada/b", "type": "model"}),
        ("POST", "/api/models/ada/engine/discussions", {"title": "Hello", "description": "x"}),
        ("DELETE", "/api/models/ada/engine/discussions/1", None),
        ("POST", "/api/models/ada/engine/discussions/1/pin", {"pinned": True}),
        ("POST", "/api/models/ada/engine/like", None),
        ("GET", "/api/settings/tokens", None),
        ("POST", "/api/settings/tokens", {"name": "mine", "role": "write"}),
        ("GET", "/api/settings/webhooks", None),
        ("GET", "/api/notifications", None),
        ("GET", "/api/jobs/ada", None),
    ],
)
async def test_the_token_manages_nothing(
    client: httpx2.AsyncClient,
    publisher: Answer,
    issuer: IdTokenIssuer,
    method: str,
    path: str,
    sent: Answer | None,
) -> None:
    headers = await token_for(client, issuer)

    response = await client.request(method, path, headers=headers, json=sent)

    assert response.status_code == 403, response.text


async def test_the_token_says_who_it_is(
    client: httpx2.AsyncClient, publisher: Answer, issuer: IdTokenIssuer
) -> None:
    answer = (await client.get("/api/whoami-v2", headers=await token_for(client, issuer))).json()

    assert answer["type"] == "service-account"
    assert answer["name"] == f"[OIDC] {issuer.url[7:]} acme/engine"
    assert answer["orgs"] == []


async def test_a_publisher_is_nobodys_account(
    client: httpx2.AsyncClient, database: Database, admin: Headers, publisher: Answer
) -> None:
    async with database.read() as conn:
        names = [user.name for user in await users.list_all(conn)]

    listed = (await client.get("/api/admin/users", headers=admin)).json()
    assert sorted(names) == ["ada", "root"]
    assert "OIDC" not in str(listed)
    assert (await client.get(f"/api/users/{publisher['id']}/overview")).status_code == 404


async def test_the_token_ends_after_fifteen_minutes(
    client: httpx2.AsyncClient,
    publisher: Answer,
    issuer: IdTokenIssuer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    headers = await token_for(client, issuer)
    micros = clock.micros
    monkeypatch.setattr("hublet.tokens.cache.micros", lambda: micros() + 901 * 1_000_000)

    assert (await client.get("/api/whoami-v2", headers=headers)).status_code == 401


@pytest.mark.parametrize("how", ["delete", "change", "repository"])
async def test_tokens_end_with_what_they_came_from(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    publisher: Answer,
    issuer: IdTokenIssuer,
    how: str,
) -> None:
    headers = await token_for(client, issuer)
    one = f"{PATH}/{publisher['id']}"
    if how == "delete":
        await client.delete(one, headers=ada)
    elif how == "change":
        await client.put(one, headers=ada, json=body(issuer, claims={"branch": "main"}))
    else:
        await client.request(
            "DELETE", "/api/repos/delete", headers=ada, json={"name": "engine", "type": "model"}
        )

    assert (await client.get("/api/whoami-v2", headers=headers)).status_code == 401
    if how != "change":
        async with database.read() as conn:
            assert await service.store.is_issuer_used(conn, issuer.url) is False


# Attacks: everything is refused with the same words.


async def refusal(client: httpx2.AsyncClient, id_token: str, resource: str = "ada/engine") -> None:
    response = await exchange(client, id_token, resource)
    assert (response.status_code, response.json()) == (400, REFUSED)


@pytest.mark.parametrize(
    "changes",
    [
        {"repository": "evil/engine", "job_workflow_ref": "evil/engine/.github/workflows/a.yml@x"},
        {"repository": None},
        {"event_name": "pull_request_target"},
        {"event_name": None},
        {"job_workflow_ref": "evil/tools/.github/workflows/release.yml@refs/heads/main"},
        {"job_workflow_ref": "acme/engine/.github/workflows/release.yml@refs/heads/old"},
        {"job_workflow_ref": None},
        {"repository_id": None},
        {"repository_owner_id": None},
        {"aud": "https://pypi.org"},
        {"aud": ["http://hub.test"]},
        {"aud": ["http://hub.test", "https://pypi.org"]},
        {"aud": "http://hub.test/"},
        {"aud": None},
        {"exp": 1_000_000_000},
        {"exp": None},
        {"exp": "tomorrow"},
        {"exp": 10**30},
        {"iat": None},
        {"iat": 8_000_000_000},
        {"nbf": 8_000_000_000},
        {"sub": None},
        {"sub": 7},
        {"jti": 7},
        {"iss": "https://elsewhere.example"},
        {"iss": "https://gitlab.com"},
        {"iss": "http://hub.test"},
    ],
    ids=str,
)
async def test_a_wrong_claim_is_refused(
    client: httpx2.AsyncClient, publisher: Answer, issuer: IdTokenIssuer, changes: Answer
) -> None:
    await refusal(client, issuer.token(**changes))


async def test_a_name_that_changed_hands_has_other_ids(
    client: httpx2.AsyncClient, ada: Headers, publisher: Answer, issuer: IdTokenIssuer
) -> None:
    """Resurrection: an account is deleted, and somebody else takes its name."""
    await token_for(client, issuer)

    await refusal(client, issuer.token(repository_owner_id="99", repository_id="98"))
    await refusal(client, issuer.token(repository_id="98"))
    await token_for(client, issuer)

    # Whoever manages the repository may reset what was pinned.
    one = f"{PATH}/{publisher['id']}"
    assert (await client.put(one, headers=ada, json=body(issuer))).json()["pinnedIds"] == {}
    await token_for(client, issuer, repository_owner_id="99", repository_id="98")


async def test_ids_that_were_typed_count_from_the_start(
    client: httpx2.AsyncClient, ada: Headers, issuer: IdTokenIssuer
) -> None:
    await a_repo(client, ada, "ada/engine")
    await add(client, ada, body(issuer, pinnedIds={"repository_owner_id": "12"}))

    await refusal(client, issuer.token())
    await token_for(client, issuer, repository_owner_id="12")


async def test_a_token_is_exchanged_once(
    client: httpx2.AsyncClient, publisher: Answer, issuer: IdTokenIssuer
) -> None:
    token = issuer.token()
    assert (await exchange(client, token)).status_code == 200

    await refusal(client, token)
    await refusal(client, issuer.token(jti=token_id(issuer, token)))


def token_id(issuer: IdTokenIssuer, token: str) -> str:
    """Another token with the same id is the same token."""
    claims = service.issuers.read_unverified(token)[1]
    return str(claims["jti"])


async def test_a_token_without_an_id_is_known_by_what_was_signed(
    client: httpx2.AsyncClient, publisher: Answer, issuer: IdTokenIssuer
) -> None:
    token = issuer.token(jti=None)
    assert (await exchange(client, token)).status_code == 200

    await refusal(client, token)
    assert (await exchange(client, issuer.token(jti=None, iat=1))).status_code == 200


async def test_the_memory_of_tokens_ends_with_them(
    client: httpx2.AsyncClient,
    database: Database,
    publisher: Answer,
    issuer: IdTokenIssuer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await token_for(client, issuer)
    later = clock.now() + timedelta(days=8)
    monkeypatch.setattr(clock, "now", lambda: later)
    monkeypatch.setattr(service.store, "micros", lambda: clock.to_micros(later))

    await pruning.sweep_accesses(database)

    async with database.read() as conn:
        assert await conn.fetch_value("SELECT count(*) FROM used_id_tokens") == 0
        kinds = await conn.fetch_all("SELECT kind FROM tokens")
    assert "publisher" not in {row["kind"] for row in kinds}


async def test_a_branch_is_not_a_tag_or_a_pull_request_of_the_same_name(
    client: httpx2.AsyncClient, ada: Headers, issuer: IdTokenIssuer
) -> None:
    await a_repo(client, ada, "ada/engine")
    await add(client, ada, body(issuer, claims={"branch": "main"}))

    for ref, kind in (
        ("refs/tags/main", "tag"),
        ("refs/heads/main", "tag"),
        ("refs/pull/main", "branch"),
        ("refs/heads/Main", "branch"),
        ("main", "branch"),
    ):
        at = f"acme/engine/.github/workflows/release.yml@{ref}"
        await refusal(client, issuer.token(ref=ref, ref_type=kind, job_workflow_ref=at))
    await token_for(client, issuer)


async def test_an_environment_is_compared_as_the_provider_does(
    client: httpx2.AsyncClient, ada: Headers, issuer: IdTokenIssuer
) -> None:
    await a_repo(client, ada, "ada/engine")
    await add(client, ada, body(issuer, claims={"environment": "prod"}))

    for environment in (None, "staging", "\u0440rod", "prod "):
        await refusal(client, issuer.token(environment=environment))
    # GitHub takes Prod and prod for the same environment.
    await token_for(client, issuer, environment="Prod")


async def test_a_reusable_workflow_is_trusted_only_by_its_own_name(
    client: httpx2.AsyncClient, ada: Headers, issuer: IdTokenIssuer
) -> None:
    ref = "acme/tools/.github/workflows/publish.yml@refs/tags/v1"
    await a_repo(client, ada, "ada/engine")
    await add(client, ada, body(issuer, claims={"workflow": "release.yml"}))
    await refusal(client, issuer.token(job_workflow_ref=ref))

    await add(client, ada, body(issuer, claims={"job_workflow_ref": ref}))

    await token_for(client, issuer, job_workflow_ref=ref)


async def test_gitlab_has_its_own_rules(
    client: httpx2.AsyncClient, ada: Headers, issuer: IdTokenIssuer
) -> None:
    host = issuer.url[7:]
    issuer.claims = GITLAB_CLAIMS | {
        "environment": "prod",
        "ci_config_ref_uri": f"{host}/acme/engine//.gitlab-ci.yml@refs/heads/main",
    }
    claims = {"project": "Acme/engine", "branch": "main", "environment": "prod"}
    await a_repo(client, ada, "ada/engine")
    bound = claims | {"workflow": ".gitlab-ci.yml"}
    await add(client, ada, {"provider": "gitlab", "issuer": issuer.url, "claims": bound})

    for changes in (
        {"project_path": "evil/engine"},
        {"sub": "project_path:acme/engine2:ref_type:branch:ref:main"},
        {"ref_type": "tag"},
        {"ref": "other"},
        {"environment": "Prod"},
        {"ci_config_ref_uri": f"{host}/evil/engine//.gitlab-ci.yml@refs/heads/main"},
        {"ci_config_ref_uri": f"{host}/acme/engine//other.yml@refs/heads/main"},
        {"ci_config_ref_uri": None},
        {"project_id": None},
    ):
        await refusal(client, issuer.token(**changes))
    await token_for(client, issuer)
    # GitLab's own gap: a path that changed hands.
    await refusal(client, issuer.token(project_id="98"))
    await refusal(client, issuer.token(namespace_id="98"))


async def test_another_issuer_is_bound_by_any_claims(
    client: httpx2.AsyncClient, ada: Headers, issuer: IdTokenIssuer
) -> None:
    issuer.claims = {"sub": "pipeline:7", "team": "rockets", "protected": True}
    await a_repo(client, ada, "ada/engine")
    bound = {"sub": "pipeline:7", "team": "rockets", "protected": "true"}
    await add(client, ada, {"provider": "custom", "issuer": issuer.url, "claims": bound})

    for changes in ({"team": "Rockets"}, {"team": ["rockets"]}, {"protected": False}, {"sub": "7"}):
        await refusal(client, issuer.token(**changes))
    await token_for(client, issuer)


async def test_the_claims_of_one_issuer_count_for_no_other(
    client: httpx2.AsyncClient, ada: Headers, issuer: IdTokenIssuer
) -> None:
    """Another server of the same provider could say that a run is of acme/engine."""
    await a_repo(client, ada, "ada/engine")
    await a_repo(client, ada, "ada/other")
    await add(client, ada, body(issuer) | {"issuer": f"{issuer.url}/other"})
    await add(client, ada, body(issuer), path="/api/models/ada/other/trusted-publishers")

    await refusal(client, issuer.token())
    assert (await exchange(client, issuer.token(), "ada/other")).status_code == 200


@pytest.mark.parametrize(
    "header",
    [
        {"kid": None},
        {"kid": "unknown"},
        {"kid": ""},
        {"crit": ["exp"], "exp": 1},
        {"alg": "none"},
        {"alg": "HS256"},
    ],
    ids=str,
)
async def test_a_header_that_is_not_plain_is_refused(
    client: httpx2.AsyncClient, publisher: Answer, issuer: IdTokenIssuer, header: Answer
) -> None:
    _, claims, signature = issuer.token().split(".")
    fields = {"alg": "RS256", "kid": "one"} | header
    first = encoded({name: value for name, value in fields.items() if value is not None})

    await refusal(client, f"{first}.{claims}.{signature}")
    await refusal(client, f"{first}.{claims}.")


def encoded(value: object) -> str:
    return urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


async def test_a_token_cannot_bring_its_own_key(
    client: httpx2.AsyncClient, publisher: Answer, issuer: IdTokenIssuer
) -> None:
    mine = rsa_key("mine")
    for fields in (
        {"kid": "one", "jwk": mine.as_dict(private=False)},
        {"kid": "one", "jku": f"{issuer.url}/mine"},
        {"kid": "one", "x5u": f"{issuer.url}/mine"},
        {"kid": "mine"},
    ):
        await refusal(client, issuer.token(key=mine, header=fields))
    assert "/mine" not in issuer.asked


async def test_the_public_key_is_no_shared_secret(
    client: httpx2.AsyncClient, publisher: Answer, issuer: IdTokenIssuer
) -> None:
    """Key confusion: a token that is signed with the published key as if it were a password."""
    header_and_claims = f"{encoded({'alg': 'HS256', 'kid': 'one'})}.{issuer.token().split('.')[1]}"
    secret = rsa_key("one").as_pem(private=False)
    signature = hmac.digest(secret, header_and_claims.encode(), "sha256")

    await refusal(
        client, f"{header_and_claims}.{urlsafe_b64encode(signature).decode().rstrip('=')}"
    )


async def test_an_algorithm_must_fit_the_key(
    client: httpx2.AsyncClient, publisher: Answer, issuer: IdTokenIssuer
) -> None:
    issuer.keys = [rsa_key("one"), ec_key("curve")]
    await refusal(client, issuer.token(key=ec_key("curve"), header={"kid": "one"}))

    await token_for(client, issuer, key=ec_key("curve"))


@pytest.mark.parametrize(
    "token", ["x", "a.b.c", "e30.e30.e30", "e30.e30", "..", "W10.W10.", "é.é.é"]
)
async def test_what_is_no_token_is_refused(
    client: httpx2.AsyncClient, publisher: Answer, token: str
) -> None:
    await refusal(client, token)


async def test_nobody_learns_which_repositories_exist(
    client: httpx2.AsyncClient, ada: Headers, publisher: Answer, issuer: IdTokenIssuer
) -> None:
    await a_repo(client, ada, "ada/secret", private=True)

    for resource in ("ada/secret", "ada/nothing", "nobody/nothing", "datasets/ada/engine", "ada"):
        await refusal(client, issuer.token(), resource)


@pytest.mark.parametrize("resource", ["a/b/c/d", "/", "papers/ada/engine", "https://hub.test/a/b"])
async def test_a_resource_must_have_a_known_form(
    client: httpx2.AsyncClient, issuer: IdTokenIssuer, resource: str
) -> None:
    response = await exchange(client, issuer.token(), resource)

    assert response.status_code == 400
    assert response.json()["error"] == "invalid_request"


async def test_a_disabled_owner_has_no_publishers(
    client: httpx2.AsyncClient, database: Database, publisher: Answer, issuer: IdTokenIssuer
) -> None:
    await disable(database, "ada")

    await refusal(client, issuer.token())


async def test_limits_are_by_address_and_resource(
    app: FastAPI, client: httpx2.AsyncClient, publisher: Answer, issuer: IdTokenIssuer
) -> None:
    for _ in range(service.REFUSALS.quota):
        await exchange(client, "x.y.z")

    response = await exchange(client, issuer.token())

    assert response.status_code == 429
    assert response.json()["error"] == "slow_down"
    # Other resources are not concerned, and what succeeds does not count as refused.
    assert (await exchange(client, "x.y.z", "ada/other")).status_code == 400
    left = app.state.limiter.count(service.EXCHANGES_OF_RESOURCE, "model ada/engine")
    assert left.remaining == service.EXCHANGES_OF_RESOURCE.quota - service.REFUSALS.quota - 1


# Management.


async def rights_of(client: httpx2.AsyncClient, who: Headers, path: str, body: Answer) -> list[int]:
    unknown = f"{path}/{'a' * 24}"
    responses = [
        await client.get(path, headers=who),
        await client.post(path, headers=who, json=body),
        await client.get(unknown, headers=who),
        await client.put(unknown, headers=who, json=body),
        await client.delete(unknown, headers=who),
    ]
    return [response.status_code for response in responses]


async def test_who_may_manage_publishers(
    client: httpx2.AsyncClient, database: Database, ada: Headers, issuer: IdTokenIssuer
) -> None:
    roles = {"ada": Role.admin, "eve": Role.read, "max": Role.contributor, "wu": Role.write}
    await an_organization(database, "acme", members=roles)
    await a_repo(client, ada, "acme/open")
    await a_repo(client, ada, "acme/secret", private=True)
    scopes = {"read": ["read-repos"], "write": ["write-repos"], "manage": ["manage-repos"]}
    callers = {
        "anonymous": {},
        "stranger": await sign_in(database, "mallory"),
        "reader": await sign_in(database, "eve"),
        "member": await sign_in(database, "max"),
        "writer": await sign_in(database, "wu"),
        **{name: await sign_in(database, "wu", scopes=each) for name, each in scopes.items()},
    }
    found: dict[str, tuple[list[int], list[int]]] = {}
    for name, who in callers.items():
        request = body(issuer, claims={"environment": name})
        found[name] = (
            await rights_of(client, who, "/api/models/acme/open/trusted-publishers", request),
            await rights_of(client, who, "/api/models/acme/secret/trusted-publishers", request),
        )

    assert found == {
        "anonymous": ([401] * 5, [401] * 5),
        "stranger": ([403] * 5, [404] * 5),
        "reader": ([403] * 5, [403] * 5),
        "member": ([403] * 5, [403] * 5),
        "writer": ([200, 201, 404, 404, 404], [200, 201, 404, 404, 404]),
        "read": ([403] * 5, [403] * 5),
        "write": ([403] * 5, [403] * 5),
        "manage": ([200, 201, 404, 404, 404], [200, 201, 404, 404, 404]),
    }


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"issuer": "https://evil.example"}, "issuer must be one that this hub trusts: "),
        ({"provider": "custom", "issuer": "https://gitlab.com"}, "provider must be gitlab for"),
        ({"claims": {}}, "claims must name 1 to 20 claims."),
        ({"claims": {"branch": "main"}}, "claims.repository is needed for the provider github."),
        ({"claims": {"repository": "acme"}}, "claims.repository must look like owner/repository."),
        ({"claims": {"repository": "acme/*"}}, "claims.repository must look like"),
        (
            {"claims": {"repository": "a/b", "workflow": "x/y.yml"}},
            "claims.workflow must look like",
        ),
        ({"claims": {"repository": "a/b", "branch": "a b"}}, "claims.branch must look like main."),
        (
            {"claims": {"repository": "a/b", "environment": "\u0440rod"}},
            "claims.environment must have",
        ),
        ({"claims": {"repository": "a/b", "environment": "p\n"}}, "claims.environment must have"),
        ({"claims": {"repository": "a/b", "environment": " p"}}, "claims.environment must have"),
        ({"claims": {"repository": "a/b", "aud": "me"}}, "claims.aud is checked for every"),
        ({"claims": {"repository": "a/b", "a b": "c"}}, "claims: a name has at most 100"),
        ({"pinnedIds": {"project_id": "1"}}, "pinnedIds may name repository_owner_id and"),
        ({"pinnedIds": {"repository_id": "x"}}, "pinnedIds.repository_id must be a number."),
    ],
    ids=str,
)
async def test_a_publisher_that_breaks_a_rule_is_refused(
    client: httpx2.AsyncClient, ada: Headers, issuer: IdTokenIssuer, changes: Answer, sentence: str
) -> None:
    await a_repo(client, ada, "ada/engine")

    response = await client.post(PATH, headers=ada, json=body(issuer) | changes)

    assert response.status_code == 400
    assert response.json()["error"].startswith(sentence)
    assert (await client.get(PATH, headers=ada)).json() == []


async def test_the_same_publisher_is_there_once_and_there_are_few(
    client: httpx2.AsyncClient, ada: Headers, publisher: Answer, issuer: IdTokenIssuer
) -> None:
    again = await client.post(PATH, headers=ada, json=body(issuer))
    assert again.status_code == 409

    for number in range(service.MAX_PUBLISHERS - 1):
        await add(client, ada, body(issuer, claims={"branch": f"b{number}"}))
    last = await client.post(PATH, headers=ada, json=body(issuer, claims={"branch": "more"}))

    assert last.status_code == 409
    assert "20 trusted publishers" in last.json()["error"]


async def test_the_publisher_that_asks_for_most_is_used(
    client: httpx2.AsyncClient, ada: Headers, publisher: Answer, issuer: IdTokenIssuer
) -> None:
    special = await add(client, ada, body(issuer, claims={"environment": "prod"}))

    await token_for(client, issuer, environment="prod")

    used = [
        each["id"] for each in (await client.get(PATH, headers=ada)).json() if "lastUsedAt" in each
    ]
    assert used == [special["id"]]


async def test_publishers_stay_when_the_repository_moves(
    client: httpx2.AsyncClient, database: Database, ada: Headers, publisher: Answer,
    issuer: IdTokenIssuer,
) -> None:  # fmt: skip
    await an_organization(database, "acme", members={"ada": Role.admin})
    headers = await token_for(client, issuer)
    move = {"fromRepo": "ada/engine", "toRepo": "acme/motor", "type": "model"}
    assert (await client.post("/api/repos/move", headers=ada, json=move)).status_code == 200

    path = "/api/models/acme/motor/trusted-publishers"
    assert [each["id"] for each in (await client.get(path, headers=ada)).json()] == [
        publisher["id"]
    ]
    assert (await commit(client, headers, "models/acme/motor")).status_code == 200
    assert (await exchange(client, issuer.token(), "acme/motor")).status_code == 200


async def test_a_copy_trusts_nobody(
    client: httpx2.AsyncClient, ada: Headers, publisher: Answer, issuer: IdTokenIssuer
) -> None:
    copy = await client.post(
        "/api/models/ada/engine/duplicate", headers=ada, json={"repository": "ada/copy"}
    )
    assert copy.status_code == 200, copy.text

    assert (await client.get("/api/models/ada/copy/trusted-publishers", headers=ada)).json() == []
    await refusal(client, issuer.token(), "ada/copy")


async def test_the_audit_log_names_changes_exchanges_and_refusals(
    client: httpx2.AsyncClient, database: Database, ada: Headers, issuer: IdTokenIssuer
) -> None:
    acme = await an_organization(database, "acme", members={"ada": Role.admin, "bob": Role.write})
    await a_repo(client, ada, "acme/engine")
    path = "/api/models/acme/engine/trusted-publishers"
    bob = await sign_in(database, "bob")
    added = await add(client, bob, body(issuer), path=path)
    await exchange(client, issuer.token(), "acme/engine")
    await exchange(client, issuer.token(event_name="pull_request_target"), "acme/engine")
    await client.delete("/api/organizations/acme/members/bob", headers=ada)
    await client.put(f"{path}/{added['id']}", headers=ada, json=body(issuer))
    await client.delete(f"{path}/{added['id']}", headers=ada)

    async with database.read() as conn:
        lines = await audit.list_of(conn, acme.id, AuditFilter(), limit=50)
    ours = [line for line in reversed(lines) if line.action.startswith("trusted-publisher.")]
    assert [(line.action, line.actor_name, line.details.get("result")) for line in ours] == [
        ("trusted-publisher.add", "bob", None),
        ("trusted-publisher.exchange", author(issuer), "issued"),
        ("trusted-publisher.exchange", author(issuer), "refused: event_name"),
        ("trusted-publisher.creator-left", "hub", None),
        ("trusted-publisher.update", "ada", None),
        ("trusted-publisher.remove", "ada", None),
    ]
    assert {line.target for line in ours} == {"acme/engine"}
    assert "access_token" not in str(ours)


def author(issuer: IdTokenIssuer) -> str:
    return f"[OIDC] {GITHUB_CLAIMS['sub']} ({issuer.url[7:]})"


async def test_the_hub_keeps_the_log_of_a_users_repository(
    client: httpx2.AsyncClient, database: Database, publisher: Answer, issuer: IdTokenIssuer
) -> None:
    await token_for(client, issuer)

    async with database.read() as conn:
        rows = await conn.fetch_all("SELECT action, target FROM hub_activity ORDER BY id")
    assert [(row["action"], row["target"]) for row in rows] == [
        ("trusted-publisher.add", "ada/engine"),
        ("trusted-publisher.exchange", "ada/engine"),
    ]


async def test_a_subject_cannot_forge_an_author(
    client: httpx2.AsyncClient, ada: Headers, publisher: Answer, issuer: IdTokenIssuer
) -> None:
    headers = await token_for(client, issuer, sub="a <ada@users.noreply.invalid>\nparent \u202e")
    await commit(client, headers)

    history = (await client.get("/api/models/ada/engine/commits/main", headers=ada)).json()
    assert history[0]["authors"] == [
        {"user": f"[OIDC] a--ada@users.noreply.invalid--parent-- ({issuer.url[7:]})"}
    ]


# Keys of issuers.


async def test_keys_are_fetched_once(
    client: httpx2.AsyncClient, publisher: Answer, issuer: IdTokenIssuer
) -> None:
    for _ in range(3):
        await token_for(client, issuer)
    await refusal(client, issuer.token(key=rsa_key("mine")))

    assert issuer.asked == ["/.well-known/openid-configuration", "/jwks"]


async def test_a_new_key_is_found_after_a_minute(
    client: httpx2.AsyncClient,
    publisher: Answer,
    issuer: IdTokenIssuer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await token_for(client, issuer)
    issuer.keys.insert(0, rsa_key("two"))
    await refusal(client, issuer.token())
    pass_time(monkeypatch, 61)

    await token_for(client, issuer)
    await token_for(client, issuer, key=rsa_key("one"))


def pass_time(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    monotonic = service.issuers.monotonic
    monkeypatch.setattr(service.issuers, "monotonic", lambda: monotonic() + seconds)


@pytest.mark.parametrize(
    "failure", ["status", "empty", "issuer", "jwks", "text", "large", "redirect"]
)
async def test_good_keys_stay_when_an_issuer_fails(
    client: httpx2.AsyncClient,
    publisher: Answer,
    issuer: IdTokenIssuer,
    monkeypatch: pytest.MonkeyPatch,
    failure: str,
) -> None:
    await token_for(client, issuer)
    configuration = "/.well-known/openid-configuration"
    issuer.status = {"status": 500, "redirect": 302}.get(failure, 200)
    issuer.documents = {
        "empty": {"/jwks": {"keys": []}},
        "issuer": {
            configuration: {"issuer": "https://x.example", "jwks_uri": f"{issuer.url}/jwks"}
        },
        "jwks": {configuration: {"issuer": issuer.url, "jwks_uri": "file:///etc/passwd"}},
        "text": {configuration: b"no json"},
        "large": {"/jwks": {"keys": ["x" * 70_000]}},
    }.get(failure, {})
    pass_time(monkeypatch, 3601)

    await token_for(client, issuer)
    assert len(issuer.asked) > 2
    assert "/elsewhere" not in issuer.asked


@pytest.mark.filterwarnings("ignore:Key size")
@pytest.mark.parametrize("weakness", ["bits", "use", "alg", "curve"])
async def test_a_weak_or_foreign_key_checks_nothing(
    client: httpx2.AsyncClient, publisher: Answer, issuer: IdTokenIssuer, weakness: str
) -> None:
    key = rsa_key("small", bits=1024) if weakness == "bits" else rsa_key("one")
    more = {"use": {"use": "enc"}, "alg": {"alg": "RS512"}, "curve": {"kty": "EC"}}
    jwk = key.as_dict(private=False) | more.get(weakness, {})
    issuer.documents["/jwks"] = {"keys": [7, {"kid": 7}, jwk]}

    await refusal(client, issuer.token(key=key))


async def test_an_issuer_that_no_publisher_names_is_not_asked(
    client: httpx2.AsyncClient, ada: Headers, publisher: Answer, issuer: IdTokenIssuer
) -> None:
    await client.delete(f"{PATH}/{publisher['id']}", headers=ada)

    await refusal(client, issuer.token())

    assert issuer.asked == []


async def test_an_issuer_inside_the_network_is_not_called_unless_allowed(
    client: httpx2.AsyncClient, database: Database, publisher: Answer, issuer: IdTokenIssuer
) -> None:
    """The guarded client refuses private addresses, whatever the operator named as an issuer."""
    settings = database.hub.settings
    guarded = replace(settings, outgoing=replace(settings.outgoing, allow=()))
    service.issuers.keys_of(database)._settings = guarded  # noqa: SLF001 - as if it were so

    await refusal(client, issuer.token())

    assert issuer.asked == []


async def test_the_networks_of_an_organization_bind_its_publishers_too(
    client: httpx2.AsyncClient, database: Database, issuer: IdTokenIssuer
) -> None:
    organization = await an_organization(
        database, "engines", plan=OrganizationPlan.enterprise, members={"eve": Role.admin}
    )
    eve = await sign_in(database, "eve")
    await a_repo(client, eve, "engines/one", private=True)
    path = "/api/models/engines/one/trusted-publishers"
    await add(client, eve, body(issuer), path=path)
    exchanged = await exchange(client, issuer.token(), "engines/one")
    token = {"Authorization": f"Bearer {exchanged.json()['access_token']}"}
    before = await commit(client, token, "models/engines/one")
    async with database.transaction() as conn:
        ranges = security.parse_ranges(["192.0.2.0/24"])
        await security.update(conn, OPERATOR, organization, ip_ranges=ranges, is_restricted=True)

    after = await commit(client, token, "models/engines/one")

    assert (before.status_code, after.status_code) == (200, 403)
    assert "only reached from its own networks" in after.json()["error"]
