"""What to send and to get over Git LFS, and where."""

from typing import Any

import httpx2
import pytest

from hublet.core.database import Database
from people import Headers, sign_in
from repos.content import put_blob, sha256
from repos.lfs import basic, batch, object_requests
from repositories import a_repo

CONTENT = b"large " * 100
TOKEN_HEADERS = {"X-Xet-Cas-Url", "X-Xet-Access-Token", "X-Xet-Token-Expiration"}


@pytest.fixture
async def repo_id(client: httpx2.AsyncClient, ada: Headers) -> str:
    return await a_repo(client, ada, "ada/engine")


async def test_a_new_object_gets_an_address_to_send_it_to(
    client: httpx2.AsyncClient, ada: Headers, repo_id: str
) -> None:
    response = await batch(client, ada, object_requests(CONTENT))

    assert response.headers["content-type"] == "application/vnd.git-lfs+json"
    href = response.json()["objects"][0]["actions"]["upload"]["href"]
    assert href.startswith(f"http://hub.test/api/lfs/{repo_id}/{sha256(CONTENT)}?size=600&expires=")
    assert response.json() == {
        "transfer": "basic",
        "objects": [
            {
                "oid": sha256(CONTENT),
                "size": 600,
                "actions": {
                    "upload": {"href": href, "expires_in": 43200},
                    "verify": {"href": "http://hub.test/ada/engine.git/info/lfs/objects/verify"},
                },
            }
        ],
        "hash_algo": "sha256",
    }


async def test_what_the_repository_has_is_not_sent_again(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    await put_blob(database, repo_id, CONTENT)

    response = await batch(client, ada, object_requests(CONTENT))

    assert response.json()["objects"] == object_requests(CONTENT)


async def test_what_another_repository_has_must_be_sent_to_prove_possession(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    other = await a_repo(client, ada, "ada/other")
    await put_blob(database, other, CONTENT)

    up = await batch(client, ada, object_requests(CONTENT))
    down = await batch(client, ada, object_requests(CONTENT), operation="download")

    assert "upload" in up.json()["objects"][0]["actions"]
    assert down.json()["objects"] == [
        object_requests(CONTENT)[0]
        | {"error": {"code": 404, "message": "There is no such object in this repository."}}
    ]


@pytest.mark.parametrize(
    ("requested", "message"),
    [
        pytest.param(
            {"oid": "x", "size": 1},
            "oid must be a SHA-256 in lower-case hexadecimal.",
            id="no digest",
        ),
        pytest.param(
            {"oid": "AB" * 32, "size": 1},
            "oid must be a SHA-256 in lower-case hexadecimal.",
            id="upper case",
        ),
        pytest.param({"oid": "ab" * 32, "size": -1}, "size must be at least 0.", id="negative"),
        pytest.param(
            {"oid": "ab" * 32, "size": 2**60},
            "A file may have at most 53687091200 bytes.",
            id="too large",
        ),
        pytest.param(
            {"oid": sha256(CONTENT), "size": 599},
            f"size must be that of the object {sha256(CONTENT)}.",
            id="another size than it has",
        ),
    ],
)
async def test_a_wrong_object_is_refused_alone(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    repo_id: str,
    requested: dict[str, Any],
    message: str,
) -> None:
    await put_blob(database, repo_id, CONTENT)

    response = await batch(client, ada, [requested, *object_requests(b"other")])

    refused, other = response.json()["objects"]
    assert refused == requested | {"error": {"code": 422, "message": message}}
    assert "actions" in other


async def test_a_download_has_an_address_as_well(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    await put_blob(database, repo_id, CONTENT)

    response = await batch(client, {}, object_requests(CONTENT), operation="download", ref=None)
    wrong = await batch(client, {}, [{"oid": sha256(CONTENT), "size": 1}], operation="download")

    [answer] = response.json()["objects"]
    assert list(answer["actions"]) == ["download"]
    assert answer["actions"]["download"]["expires_in"] == 3600
    got = await client.get(answer["actions"]["download"]["href"], headers={"range": "bytes=6-"})
    assert (got.status_code, got.content) == (206, CONTENT[6:])
    assert wrong.json()["objects"][0]["error"]["code"] == 422


async def test_the_fields_of_other_clients_are_taken(
    client: httpx2.AsyncClient, ada: Headers, repo_id: str
) -> None:
    response = await batch(
        client,
        ada,
        [object_requests(CONTENT)[0] | {"name": "a", "path": "b", "authenticated": True}],
        hash_algo="sha_256",
        transfers=["basic", "xet"],
        ref={"name": "refs/heads/main"},
    )

    assert response.status_code == 200


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"hash_algo": "md5"}, "hash_algo must be one of 'sha256' or 'sha_256'."),
        ({"operation": "erase"}, "operation must be one of 'upload' or 'download'."),
        ({"objects": object_requests(b"") * 1001}, "objects must have at most 1000 items."),
    ],
)
async def test_a_wrong_question_is_refused_as_a_whole(
    client: httpx2.AsyncClient, ada: Headers, repo_id: str, more: dict[str, Any], sentence: str
) -> None:
    body = {"operation": "upload", "objects": []} | more

    response = await client.post("/ada/engine/info/lfs/objects/batch", headers=ada, json=body)

    assert (response.status_code, response.json()) == (400, {"error": sentence})


@pytest.mark.parametrize("kind", ["datasets", "spaces", "kernels"])
@pytest.mark.parametrize("end", ["", ".git"])
async def test_every_type_with_git_has_large_files(
    client: httpx2.AsyncClient, ada: Headers, kind: str, end: str
) -> None:
    await a_repo(client, ada, "ada/engine", type=kind.removesuffix("s"))

    response = await batch(client, ada, object_requests(CONTENT), repo=f"{kind}/ada/engine{end}")

    [answer] = response.json()["objects"]
    assert answer["actions"]["verify"]["href"] == (
        f"http://hub.test/{kind}/ada/engine.git/info/lfs/objects/verify"
    )


async def test_git_may_send_its_token_as_a_password(
    client: httpx2.AsyncClient, ada: Headers, repo_id: str
) -> None:
    assert (await batch(client, basic(ada), object_requests(CONTENT))).status_code == 200


async def test_who_shows_no_token_is_asked_for_one(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    await a_repo(client, ada, "ada/secret", visibility="private")

    up = await batch(client, {}, object_requests(CONTENT))
    down = await batch(
        client, {}, object_requests(CONTENT), operation="download", repo="ada/secret"
    )

    assert (up.status_code, down.status_code) == (401, 401)
    assert up.headers["www-authenticate"].startswith("Basic")


async def test_strangers_bring_files_for_pull_requests_only(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    bob = await sign_in(database, "bob")
    reader = await sign_in(database, "ada", scopes=["read-repos"])
    open_to_all = await batch(client, bob, object_requests(CONTENT))
    settings = {"discussionsDisabled": True}
    await client.put("/api/models/ada/engine/settings", headers=ada, json=settings)

    closed = await batch(client, bob, object_requests(CONTENT))
    without_scope = await batch(client, reader, object_requests(CONTENT))

    assert open_to_all.status_code == 200
    assert (closed.status_code, without_scope.status_code) == (403, 403)


async def test_who_cannot_read_a_repository_brings_no_files_for_pull_requests(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    await client.put("/api/models/ada/engine/settings", headers=ada, json={"gated": "manual"})

    response = await batch(client, await sign_in(database, "bob"), object_requests(CONTENT))

    assert response.status_code == 403


async def test_a_private_repository_has_no_large_files_for_strangers(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/secret", visibility="private")
    await put_blob(database, repo_id, CONTENT)
    bob = await sign_in(database, "bob")

    for operation in ("upload", "download"):
        response = await batch(
            client, bob, object_requests(CONTENT), operation=operation, repo="ada/secret"
        )
        assert (response.status_code, response.headers["x-error-code"]) == (404, "RepoNotFound")


async def test_the_gate_stands_before_downloads(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    await put_blob(database, repo_id, CONTENT)
    await client.put("/api/models/ada/engine/settings", headers=ada, json={"gated": "manual"})
    bob = await sign_in(database, "bob")

    response = await batch(client, bob, object_requests(CONTENT), operation="download")

    assert (response.status_code, response.headers["x-error-code"]) == (403, "GatedRepo")


async def test_an_upload_is_verified(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    await put_blob(database, repo_id, CONTENT)
    path = "/ada/engine.git/info/lfs/objects/verify"
    requested = [(sha256(CONTENT), 600), (sha256(CONTENT), 1), ("ab" * 32, 1)]

    answers = [
        await client.post(path, headers=ada, json={"oid": oid, "size": size})
        for oid, size in requested
    ]
    without_token = await client.post(path, json={"oid": sha256(CONTENT), "size": 600})

    assert [(each.status_code, each.json()) for each in answers] == [
        (200, {}),
        (400, {"error": f"size must be that of the object {sha256(CONTENT)}."}),
        (404, {"error": f"There is no object {'ab' * 32} in this repository."}),
    ]
    assert without_token.status_code == 401


async def test_there_are_no_locks(client: httpx2.AsyncClient, ada: Headers, repo_id: str) -> None:
    path = "/ada/engine.git/info/lfs/locks"

    listed = await client.get(f"{path}?path=a&refspec=refs/heads/main", headers=ada)
    verified = await client.post(
        f"{path}/verify", headers=ada, json={"ref": {"name": "refs/heads/main"}}
    )
    made = await client.post(path, headers=ada, json={"path": "a"})

    assert (listed.status_code, listed.json()) == (200, {"locks": []})
    assert (verified.status_code, verified.json()) == (200, {"ours": [], "theirs": []})
    assert made.status_code == 501


WITH_XET = {"transfers": ["basic", "multipart", "xet"], "hash_algo": "sha_256"}


async def test_who_knows_xet_gets_access_to_the_cas(
    client: httpx2.AsyncClient, ada: Headers, repo_id: str
) -> None:
    more = WITH_XET | {"ref": {"name": "feat/x"}}
    answer = (await batch(client, ada, object_requests(CONTENT), **more)).json()

    upload = answer["objects"][0]["actions"]["upload"]
    header = upload["header"]
    fetched = await client.get(upload["href"], headers=ada)
    assert answer == {
        "transfer": "xet",
        "objects": [{**object_requests(CONTENT)[0], "actions": {"upload": upload}}],
        "hash_algo": "sha256",
    }
    assert upload["href"] == "http://hub.test/api/models/ada/engine/xet-write-token/feat%2Fx"
    assert upload["expires_in"] == 3600
    assert set(header) == {*TOKEN_HEADERS, "X-Xet-Session-Id"}
    assert header["X-Xet-Cas-Url"] == f"http://hub.test/cas/{repo_id}-0"
    assert fetched.headers["x-xet-cas-url"] == header["X-Xet-Cas-Url"]


async def test_the_access_of_a_batch_is_for_uploads(
    client: httpx2.AsyncClient, ada: Headers, repo_id: str
) -> None:
    answer = (await batch(client, ada, object_requests(CONTENT), **WITH_XET)).json()
    header = answer["objects"][0]["actions"]["upload"]["header"]

    response = await client.post(
        f"{header['X-Xet-Cas-Url']}/v1/shards",
        headers={"Authorization": f"Bearer {header['X-Xet-Access-Token']}"},
        content=b"no shard",
    )

    # Whoever has no access is refused before their shard is read.
    assert response.status_code == 400


async def test_through_xet_too_only_what_is_missing_is_sent(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    await put_blob(database, repo_id, CONTENT)
    wrong = {"oid": "x", "size": 1}

    answer = (await batch(client, ada, [*object_requests(CONTENT), wrong], **WITH_XET)).json()

    message = "oid must be a SHA-256 in lower-case hexadecimal."
    assert answer["transfer"] == "xet"
    assert answer["objects"] == [
        *object_requests(CONTENT),
        {**wrong, "error": {"code": 422, "message": message}},
    ]


async def test_who_may_not_upload_gets_no_access_to_the_cas(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    settings = {"discussionsDisabled": True}
    await client.put("/api/models/ada/engine/settings", headers=ada, json=settings)
    bob = await sign_in(database, "bob")

    response = await batch(client, bob, object_requests(CONTENT), **WITH_XET)

    assert response.status_code == 403
    assert "xet" not in response.text.lower()


async def test_downloads_are_basic_whatever_a_client_knows(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    await put_blob(database, repo_id, CONTENT)

    answer = await batch(client, ada, object_requests(CONTENT), operation="download", **WITH_XET)

    assert answer.json()["transfer"] == "basic"
