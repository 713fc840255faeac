"""Access to the CAS: who gets a token, what it is good for, and when it ends."""

from datetime import timedelta

import httpx2
import pytest

from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import OPERATOR, Role
from hublet.core import clock
from hublet.core.database import Database
from hublet.repos.xet.tokens import TOKEN_LIFE
from hublet.storage.epochs import begin_epoch
from hublet.tokens import service as tokens
from hublet.tokens.records import TokenRole
from people import Headers, a_token, a_user, an_organization, sign_in
from repos.xet import CHUNKS, CONTENT, FILE, XORB, XORB_NAME, CasClient, cas_of, xet_token
from repositories import a_repo


@pytest.fixture
async def repo_id(client: httpx2.AsyncClient, ada: Headers) -> str:
    return await a_repo(client, ada, "ada/engine")


@pytest.mark.parametrize("right", ["read", "write"])
async def test_body_and_headers_of_a_token_say_the_same(
    client: httpx2.AsyncClient, ada: Headers, repo_id: str, right: str
) -> None:
    response = await xet_token(client, ada, right)

    token = response.json()
    assert (response.status_code, sorted(token)) == (200, ["accessToken", "casUrl", "exp"])
    assert token["casUrl"] == f"http://hub.test/cas/{repo_id}-0"
    assert token["exp"] - clock.micros() // 1_000_000 in range(3590, 3601)
    assert response.headers["X-Xet-Cas-Url"] == token["casUrl"]
    assert response.headers["X-Xet-Access-Token"] == token["accessToken"]
    assert response.headers["X-Xet-Token-Expiration"] == str(token["exp"])
    assert response.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("kind", ["model", "dataset", "space", "kernel", "bucket", "container"])
async def test_every_type_of_repository_has_a_cas(
    client: httpx2.AsyncClient, ada: Headers, kind: str
) -> None:
    await a_repo(client, ada, "ada/thing", type=kind)
    cas = await cas_of(client, ada, repo=f"{kind}s/ada/thing")
    file = await cas.upload()
    reader = await cas_of(client, ada, "read", repo=f"{kind}s/ada/thing")
    assert await reader.download(file) == CONTENT


@pytest.mark.parametrize("revision", ["None?create_pr=1", "main?create_pr=1", "refs%2Fpr%2F1"])
async def test_a_token_is_for_any_revision(
    client: httpx2.AsyncClient, ada: Headers, repo_id: str, revision: str
) -> None:
    response = await client.get(f"/api/models/ada/engine/xet-write-token/{revision}", headers=ada)
    assert response.json()["casUrl"].endswith(f"/cas/{repo_id}-0")


async def test_everybody_may_read_what_is_public_and_nobody_writes_without_a_token(
    client: httpx2.AsyncClient, ada: Headers, repo_id: str
) -> None:
    file = await (await cas_of(client, ada)).upload()
    anybody = await cas_of(client, {}, "read")
    assert await anybody.download(file) == CONTENT
    assert (await xet_token(client, {}, "write")).status_code == 401
    assert (await anybody.upload_xorb()).status_code == 403


async def test_whoever_may_open_a_pull_request_may_upload(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    grace = await sign_in(database, "grace")
    assert await (await cas_of(client, grace)).upload() == FILE


async def test_strangers_upload_neither_to_buckets_nor_without_discussions(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    grace = await sign_in(database, "grace")
    await a_repo(client, ada, "ada/store", type="bucket")
    await client.put(
        "/api/models/ada/engine/settings", headers=ada, json={"discussionsDisabled": True}
    )
    for repo in ("buckets/ada/store", "models/ada/engine"):
        response = await xet_token(client, grace, repo=repo)
        assert response.status_code == 403
        assert "you have no write access to it" in response.json()["error"]


@pytest.mark.parametrize("right", ["read", "write"])
async def test_a_private_repository_is_not_found_by_strangers(
    client: httpx2.AsyncClient, database: Database, ada: Headers, right: str
) -> None:
    await a_repo(client, ada, "ada/secret", visibility="private")
    grace = await sign_in(database, "grace")
    response = await xet_token(client, grace, right, repo="models/ada/secret")
    assert (response.status_code, response.headers["X-Error-Code"]) == (404, "RepoNotFound")


async def test_a_gated_repository_needs_access(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    await client.put("/api/models/ada/engine/settings", headers=ada, json={"gated": "manual"})
    grace = await sign_in(database, "grace")
    response = await xet_token(client, grace, "read")
    assert (response.status_code, response.headers["X-Error-Code"]) == (403, "GatedRepo")


async def test_a_token_for_reading_does_not_write(
    client: httpx2.AsyncClient, ada: Headers, repo_id: str
) -> None:
    reader = await cas_of(client, ada, "read")
    for response in [
        await reader.upload_xorb(),
        await reader.register(b""),
        await reader.register(b"", version=2),
        await reader.post(f"/v1/xorb-grants/default/{XORB_NAME}"),
    ]:
        assert response.status_code == 403
        assert response.json() == {"error": "The access token is only for reading."}


async def _statuses(cas: CasClient) -> set[int]:
    """Return the statuses of all that a token is good for."""
    return {
        (await cas.get(f"/v1/chunks/default/{XORB_NAME}")).status_code,
        (await cas.get(f"/v1/reconstructions/{FILE}")).status_code,
        (await cas.get(f"/v2/reconstructions/{FILE}")).status_code,
        (await cas.post(f"/v1/xorb-grants/default/{XORB_NAME}")).status_code,
        (await cas.post(f"/v1/xorbs/default/{XORB_NAME}", XORB)).status_code,
        (await cas.register(b"")).status_code,
        (await cas.register(b"", version=2)).status_code,
    }


async def test_the_cas_needs_a_token_of_its_own(
    client: httpx2.AsyncClient, ada: Headers, repo_id: str
) -> None:
    cas = await cas_of(client, ada)
    token = cas.headers["Authorization"]
    for refused in (
        "",
        "Basic YTpi",
        ada["Authorization"],
        token[:-1],
        token[:-1] + "x",
        "Bearer .",
    ):
        cas.headers = {"Authorization": refused} if refused else {}
        assert await _statuses(cas) == {401}, refused


async def test_an_expired_token_is_refused(
    client: httpx2.AsyncClient, ada: Headers, repo_id: str
) -> None:
    cas = await cas_of(client, ada)
    clock.move(TOKEN_LIFE - timedelta(seconds=10))
    try:
        assert (await cas.upload_xorb()).status_code == 200
        clock.move(timedelta(seconds=12))
        assert await _statuses(cas) == {401}
        response = await cas.upload_xorb()
        assert response.json() == {
            "error": "The access token has expired; ask the hub for a new one."
        }
    finally:
        clock.reset()


async def test_a_token_is_for_one_repository(
    client: httpx2.AsyncClient, ada: Headers, repo_id: str
) -> None:
    other = await a_repo(client, ada, "ada/other")
    cas = await cas_of(client, ada)
    for domain in (f"{other}-0", f"{repo_id}-1", repo_id, f"{repo_id}-00", "x", f"{repo_id}-0 "):
        cas.url = f"http://hub.test/cas/{domain}"
        assert await _statuses(cas) == {403}, domain


async def test_a_new_epoch_ends_all_tokens(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    cas = await cas_of(client, ada)
    async with database.transaction() as conn:
        await begin_epoch(conn)
    assert await _statuses(cas) == {403}
    assert await (await cas_of(client, ada)).upload() == FILE


async def test_a_revoked_credential_ends_its_tokens_at_once(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    grace = await a_user(database, "grace")
    async with database.transaction() as conn:
        record, value = await tokens.issue(
            conn, user_id=grace.id, name="laptop", role=TokenRole.write
        )
    cas = await cas_of(client, {"Authorization": f"Bearer {value}"})
    assert (await cas.upload_xorb()).status_code == 200
    async with database.transaction() as conn:
        await tokens.revoke(conn, token_id=record.id, user_id=grace.id, reason="lost")
    assert await _statuses(cas) == {401}


async def test_a_right_that_was_taken_away_ends_at_once(
    client: httpx2.AsyncClient, database: Database
) -> None:
    company = await an_organization(database, "company", members={"ada": Role.admin})
    ada = {"Authorization": f"Bearer {await a_token(database, 'ada')}"}
    await a_repo(client, ada, "company/plans", type="bucket", visibility="private")
    grace = await a_user(database, "grace")
    async with database.transaction() as conn:
        await organizations.set_member(conn, OPERATOR, company, grace, Role.write)
    headers = {"Authorization": f"Bearer {await a_token(database, 'grace')}"}
    cas = await cas_of(client, headers, repo="buckets/company/plans")
    await cas.upload()

    async with database.transaction() as conn:
        await organizations.set_member(conn, OPERATOR, company, grace, Role.read)
    assert (await cas.get(f"/v1/reconstructions/{FILE}")).status_code == 200
    refused = await cas.upload_xorb()
    assert (refused.status_code, refused.json()) == (
        403, {"error": "You may no longer write the repository of this access token."},
    )  # fmt: skip

    async with database.transaction() as conn:
        await organizations.remove_member(conn, OPERATOR, company, grace)
    assert await _statuses(cas) == {403}


async def test_a_deleted_repository_has_no_cas(
    client: httpx2.AsyncClient, ada: Headers, repo_id: str
) -> None:
    cas = await cas_of(client, ada)
    await cas.upload(CHUNKS)
    await client.request("DELETE", "/api/repos/delete", headers=ada, json={"name": "ada/engine"})
    assert await _statuses(cas) == {404}


async def test_a_repository_keeps_its_cas_under_a_new_name(
    client: httpx2.AsyncClient, ada: Headers, repo_id: str
) -> None:
    cas = await cas_of(client, ada)
    await cas.upload()
    await client.post(
        "/api/repos/move", headers=ada, json={"fromRepo": "ada/engine", "toRepo": "ada/motor"}
    )
    assert await cas.download(FILE) == CONTENT
    moved = await xet_token(client, ada)
    assert (moved.status_code, moved.headers["Location"]) == (
        307, "/api/models/ada/motor/xet-write-token/main",
    )  # fmt: skip
