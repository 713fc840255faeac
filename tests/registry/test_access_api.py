"""Who may pull and push: tokens, their repositories, rights of this very moment."""

from base64 import b64encode
from datetime import timedelta

import httpx2
import pytest

from hublet.accounts.organizations import service as organizations
from hublet.accounts.organizations import store as memberships
from hublet.accounts.records import OPERATOR, Role
from hublet.core import clock
from hublet.core.database import Database
from hublet.core.sealing import KeyRing
from hublet.registry.records import ImageName
from hublet.registry.tokens import TOKEN_LIFE, RegistryToken, new_job_token, sign_token
from hublet.tokens import service as tokens
from hublet.tokens.delegations import Delegation
from hublet.tokens.format import TokenKind
from hublet.tokens.records import Grants, Scope, ScopedGrant, TokenRole
from people import Headers, a_token, a_user, an_organization, sign_in
from repositories import a_repo, a_resource_group, disable

TOKEN = "/api/registry/token"
LOGIN = 'Bearer realm="http://hub.test/api/registry/token",service="hub.test"'
PULL = "repository:ada/tool:pull"


async def login(client: httpx2.AsyncClient, headers: Headers | None, *scopes: str) -> Headers:
    """Ask for a token as a client does; return the headers of requests with it."""
    response = await client.get(TOKEN, params={"scope": list(scopes)}, headers=headers)
    assert response.status_code == 200, response.text
    return {"Authorization": f"Bearer {response.json()['token']}"}


async def read(
    client: httpx2.AsyncClient, headers: Headers | None, name: str = "ada/tool"
) -> httpx2.Response:
    return await client.get(f"/v2/{name}/tags/list", headers=headers)


async def push(
    client: httpx2.AsyncClient, headers: Headers | None, name: str = "ada/tool", query: str = ""
) -> httpx2.Response:
    return await client.post(f"/v2/{name}/blobs/uploads/{query}", headers=headers)


def code(response: httpx2.Response) -> tuple[int, str]:
    return response.status_code, response.json()["errors"][0]["code"]


async def a_container(
    client: httpx2.AsyncClient, headers: Headers, name: str = "ada/tool", **body: object
) -> None:
    await a_repo(client, headers, name, type="container", **body)


async def test_a_client_logs_in_pushes_and_pulls(client: httpx2.AsyncClient, ada: Headers) -> None:
    challenged = await client.get("/v2/")
    assert challenged.status_code == 401
    assert challenged.headers["WWW-Authenticate"] == LOGIN

    token = await login(client, ada, "repository:ada/tool:pull,push")

    assert (await client.get("/v2/", headers=token)).status_code == 200
    assert (await push(client, token)).status_code == 202
    assert (await read(client, token)).status_code == 200


async def test_everybody_without_a_token_is_challenged_where_all_is_public(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await a_container(client, ada)

    assert (await client.get("/v2/")).status_code == 401
    assert (await client.get("/v2/", headers=await login(client, None, PULL))).status_code == 200
    assert (await read(client, await login(client, None, PULL))).status_code == 200
    assert (await read(client, None)).status_code == 200


@pytest.mark.parametrize("password", [False, True])
async def test_a_token_of_the_hub_works_by_itself(
    client: httpx2.AsyncClient, database: Database, *, password: bool
) -> None:
    value = await a_token(database, "ada")
    basic = b64encode(f"ada:{value}".encode()).decode()
    headers = {"Authorization": f"Basic {basic}" if password else f"Bearer {value}"}

    assert (await client.get("/v2/", headers=headers)).status_code == 200
    assert (await push(client, headers)).status_code == 202


async def test_a_private_image_is_as_good_as_none(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_container(client, ada, private=True)
    bob = await sign_in(database, "bob")

    for name in ("ada/tool", "ada/nothing"):
        scope = f"repository:{name}:pull"
        for nobody in (None, await login(client, None, scope)):
            response = await read(client, nobody, name)
            assert code(response) == (401, "UNAUTHORIZED")
            assert response.headers["WWW-Authenticate"] == f'{LOGIN},scope="{scope}"'
        response = await read(client, await login(client, bob, scope), name)
        assert code(response) == (404, "NAME_UNKNOWN")
        assert code(await push(client, bob, name)) == (403, "DENIED")


async def test_who_may_read_may_not_push(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_container(client, ada)
    bob = await login(client, await sign_in(database, "bob"), "repository:ada/tool:pull,push")

    assert (await read(client, bob)).status_code == 200
    assert code(await push(client, bob)) == (403, "DENIED")
    response = await push(client, None)
    assert code(response) == (401, "UNAUTHORIZED")
    assert response.headers["WWW-Authenticate"].endswith(',scope="repository:ada/tool:pull,push"')


async def test_a_token_is_for_the_repositories_that_it_was_asked_for(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await a_container(client, ada)
    await a_container(client, ada, "ada/other")
    token = await login(client, ada, PULL)

    response = await read(client, token, "ada/other")

    assert code(response) == (401, "UNAUTHORIZED")
    needed = 'scope="repository:ada/other:pull",error="insufficient_scope"'
    assert response.headers["WWW-Authenticate"] == f"{LOGIN},{needed}"
    assert (await read(client, token, "ada/tool/gpu")).status_code != 401


async def test_the_actions_that_were_asked_for_do_not_bind_who_may_more(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    # oras-py uses the token of its first request, which reads, for the push as well.
    assert (await push(client, await login(client, ada, PULL))).status_code == 202


@pytest.mark.parametrize("joined", [False, True])
async def test_a_mount_needs_a_token_for_both_repositories(
    client: httpx2.AsyncClient, ada: Headers, *, joined: bool
) -> None:
    await a_container(client, ada, "ada/old", private=True)
    query = f"?mount=sha256:{'0' * 64}&from=ada%2Fold"
    scopes = ["repository:ada/tool:pull,push", "repository:ada/old:pull"]

    refused = await push(client, await login(client, ada, scopes[0]), query=query)
    assert code(refused) == (401, "UNAUTHORIZED")
    assert f'scope="{" ".join(scopes)}"' in refused.headers["WWW-Authenticate"]

    token = await login(client, ada, *([" ".join(scopes)] if joined else scopes))
    assert (await push(client, token, query=query)).status_code == 202


async def test_a_mount_from_what_one_may_not_read_is_an_ordinary_upload(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_container(client, ada, "ada/old", private=True)
    bob = await sign_in(database, "bob")
    for source in ("ada/old", "ada/nothing"):
        token = await login(client, bob, "repository:bob/new:push", f"repository:{source}:pull")
        query = f"?mount=sha256:{'0' * 64}&from={source}"
        assert (await push(client, token, "bob/new", query)).status_code == 202


async def test_a_token_expires_and_its_challenge_says_so(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await a_container(client, ada, private=True)
    token = await login(client, ada, PULL)
    clock.move(TOKEN_LIFE - timedelta(seconds=10))
    try:
        assert (await read(client, token)).status_code == 200
        clock.move(timedelta(seconds=12))
        response = await read(client, token)
    finally:
        clock.reset()
    assert code(response) == (401, "UNAUTHORIZED")
    assert response.headers["WWW-Authenticate"].endswith(f',scope="{PULL}",error="invalid_token"')


async def test_a_revoked_token_of_the_hub_ends_what_it_was_exchanged_for(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await a_container(client, ada)
    token = await login(client, ada, PULL)
    assert (await read(client, token)).status_code == 200
    [own] = (await client.get("/api/settings/tokens", headers=ada)).json()
    await client.delete(f"/api/settings/tokens/{own['id']}", headers=ada)

    assert code(await read(client, token)) == (401, "UNAUTHORIZED")


async def test_a_disabled_user_is_out(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_container(client, ada)
    token = await login(client, ada, PULL)
    await disable(database, "ada")

    assert code(await read(client, token)) == (401, "UNAUTHORIZED")


async def test_a_forged_token_is_refused(client: httpx2.AsyncClient, database: Database) -> None:
    forged = RegistryToken(credential_id=None, repositories=("ada/tool",), issued=2**40)
    text = sign_token(forged, KeyRing.new())
    good = sign_token(forged, database.hub.keys)
    for value in (text, "x", ".", good[:-1], good.partition(".")[0], f"{good}0", "é.é"):
        headers = {"Authorization": b"Bearer " + value.encode()}
        response = await client.get("/v2/", headers=headers)
        assert code(response) == (401, "UNAUTHORIZED")


async def test_a_role_counts_from_the_moment_it_changes(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    acme = await an_organization(database, "acme", members={"ada": Role.admin, "bob": Role.write})
    await a_container(client, ada, "acme/tool", private=True)
    token = await login(client, await sign_in(database, "bob"), "repository:acme/tool:pull,push")
    assert (await push(client, token, "acme/tool")).status_code == 202
    bob = await a_user(database, "bob")

    async with database.transaction() as conn:
        await organizations.set_member(conn, OPERATOR, acme, bob, Role.read)
    assert (await read(client, token, "acme/tool")).status_code == 200
    assert code(await push(client, token, "acme/tool")) == (403, "DENIED")

    async with database.transaction() as conn:
        await memberships.remove_member(conn, acme.id, user_id=bob.id)
    assert code(await read(client, token, "acme/tool")) == (404, "NAME_UNKNOWN")


async def test_in_a_resource_group_the_role_there_counts(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    roles = {"ada": Role.admin, "bob": Role.write, "eve": Role.read}
    acme = await an_organization(database, "acme", members=roles)
    group = await a_resource_group(database, acme, members={"eve": Role.write})
    await a_container(client, ada, "acme/tool", private=True, resourceGroupId=group.id)
    scope = "repository:acme/tool:pull,push"

    eve = await login(client, await sign_in(database, "eve"), scope)
    bob = await login(client, await sign_in(database, "bob"), scope)

    assert (await push(client, eve, "acme/tool")).status_code == 202
    assert code(await read(client, bob, "acme/tool")) == (404, "NAME_UNKNOWN")


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("read-repos", (200, 403, 403)),
        ("write-repos", (200, 202, 403)),
        ("manage-repos", (200, 202, 202)),
        ("jobs", (404, 403, 403)),
    ],
)
async def test_a_fine_grained_token_is_held_to_its_scopes(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    scope: str,
    expected: tuple[int, int, int],
) -> None:
    await a_container(client, ada, private=True)
    narrow = await sign_in(database, "ada", scopes=[scope])
    token = await login(client, narrow, PULL, "repository:ada/new:push")

    responses = (
        await read(client, token),
        await push(client, token),
        await push(client, token, "ada/new"),
    )

    assert tuple(response.status_code for response in responses) == expected


async def test_a_token_for_one_organization_reaches_no_other(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    acme = await an_organization(database, "acme", members={"ada": Role.admin})
    await a_container(client, ada, "acme/tool", private=True)
    await a_container(client, ada, private=True)
    scoped = ScopedGrant(
        entity_id=acme.id, entity_type="org", entity_name="acme", scopes=frozenset(
            {Scope.write_repos}
        )
    )  # fmt: skip
    async with database.transaction() as conn:
        _, value = await tokens.issue(
            conn, user_id=(await a_user_id(database)), name="app", role=TokenRole.fine_grained,
            grants=Grants(scoped=(scoped,)), kind=TokenKind.oauth,
        )  # fmt: skip
    app = {"Authorization": f"Bearer {value}"}
    token = await login(client, app, PULL, "repository:acme/tool:pull,push")

    assert (await push(client, token, "acme/tool")).status_code == 202
    assert code(await read(client, token)) == (404, "NAME_UNKNOWN")


async def a_user_id(database: Database) -> str:
    return (await a_user(database, "ada")).id


async def test_a_token_that_only_reads_does_not_push(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_container(client, ada)
    reader = await sign_in(database, "ada", role=TokenRole.read)
    token = await login(client, reader, "repository:ada/tool:pull,push")

    assert code(await push(client, token)) == (403, "DENIED")


async def test_the_first_push_creates_the_repository_as_its_organization_wants_it(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    acme = await an_organization(database, "acme", members={"ada": Role.contributor})
    async with database.transaction() as conn:
        await memberships.set_default_visibility(conn, acme.id, "private")

    assert (await push(client, ada, "acme/tool")).status_code == 202

    repo = (await client.get("/api/containers/acme/tool", headers=ada)).json()
    assert (repo["id"], repo["private"]) == ("acme/tool", True)
    assert (await client.get("/api/containers/acme/tool")).status_code == 404


@pytest.mark.parametrize("name", ["bob/tool", "nobody/tool"])
async def test_nobody_pushes_to_the_name_of_somebody_else(
    client: httpx2.AsyncClient, database: Database, ada: Headers, name: str
) -> None:
    await a_user(database, "bob")

    response = await push(client, ada, name)

    assert code(response) == (403, "DENIED")
    assert "neither you nor one of your organizations" in response.json()["errors"][0]["message"]


async def test_a_name_that_no_repository_can_have_is_refused(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    response = await push(client, ada, "ada/two--hyphens")

    assert code(response) == (400, "NAME_INVALID")
    assert response.json()["errors"][0]["message"] == (
        "The name of the image is not valid: it has no '--' and no '..'."
    )


async def test_a_former_name_is_enough_to_pull_and_not_to_push(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await a_container(client, ada)
    body = {"fromRepo": "ada/tool", "toRepo": "ada/Hammer", "type": "container"}
    moved = await client.post("/api/repos/move", headers=ada, json=body)
    assert moved.status_code == 200, moved.text

    assert (await read(client, ada)).status_code == 200
    assert (await read(client, ada, "ada/hammer")).status_code == 200
    response = await push(client, ada)
    assert code(response) == (404, "NAME_UNKNOWN")
    assert "push to ada/hammer" in response.json()["errors"][0]["message"]


async def test_the_token_of_a_job_is_its_password_and_only_pulls_the_image(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    user = await a_user(database, "ada")
    await a_container(client, ada, private=True)
    await a_container(client, ada, "ada/other", private=True)
    name = ImageName(namespace="ada", repo="tool")
    token = sign_token(new_job_token(Delegation(user_id=user.id), name), database.hub.keys)

    basic = b64encode(f"job:{token}".encode()).decode()
    pulling = await login(client, {"Authorization": f"Basic {basic}"}, PULL)

    assert (await read(client, pulling)).status_code == 200
    assert code(await push(client, pulling)) == (403, "DENIED")
    assert code(await read(client, pulling, "ada/other")) == (401, "UNAUTHORIZED")
    await disable(database, "ada")
    assert code(await read(client, pulling)) == (401, "UNAUTHORIZED")
