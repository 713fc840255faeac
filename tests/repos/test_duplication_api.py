"""Copies of repositories: what they hold, what stays behind, who may make them."""

import asyncio
from pathlib import Path

import httpx2
import pygit2
import pytest

from hublet.accounts.records import OrganizationPlan, Role
from hublet.core.database import Database
from hublet.events import RepoCreated
from hublet.repos import lifecycle
from hublet.repos.errors import StorageUnavailable
from hublet.repos.git import bare_repos
from hublet.tokens.records import TokenRole
from outbox_events import published_events
from people import Headers, a_token, an_organization, revoke, sign_in
from repos.commits import ARepo, a_repo, file, header, ndjson
from repositories import a_repo as a_repo_of_any_type
from repositories import a_resource_group

CARD = "---\nlicense: mit\n---\n"
LARGE = b"x" * 11_000_000


@pytest.fixture
async def repo(client: httpx2.AsyncClient, database: Database, ada: Headers) -> ARepo:
    return await a_repo(client, database, ada)


@pytest.fixture
async def bob(database: Database) -> Headers:
    return await sign_in(database, "bob")


async def duplicate(
    client: httpx2.AsyncClient, who: Headers, source: str = "models/ada/engine", **body: object
) -> httpx2.Response:
    return await client.post(f"/api/{source}/duplicate", headers=who, json=body)


def folders(database: Database) -> set[Path]:
    return set((database.hub.settings.database.data_dir / "repos").glob("*/*.git"))


async def branches(client: httpx2.AsyncClient, path: str) -> dict[str, object]:
    refs: dict[str, object] = (await client.get(f"/api/models/{path}/refs?include_prs=1")).json()
    return refs


async def test_a_copy_holds_branches_tags_history_and_large_files(
    client: httpx2.AsyncClient, database: Database, ada: Headers, bob: Headers, repo: ARepo
) -> None:
    await repo.commit(ada, file("README.md", CARD), file("large.bin", LARGE))
    await client.post(f"{repo.path}/branch/dev", headers=ada, json={})
    await client.post(f"{repo.path}/tag/main", headers=ada, json={"tag": "v1"})
    await repo.commit(ada, file("a", "1"))

    response = await duplicate(client, bob, repository="bob/motor")

    assert (response.status_code, response.json()) == (200, {"url": "http://hub.test/bob/motor"})
    assert await branches(client, "bob/motor") == await branches(client, "ada/engine")
    copy, original = [
        (await client.get(f"/api/models/{name}?blobs=true")).json()
        for name in ("bob/motor", "ada/engine")
    ]
    for key in ("sha", "siblings", "tags", "cardData", "usedStorage", "private", "gated"):
        assert copy[key] == original[key]
    history = [
        (await client.get(f"/api/models/{name}/commits/main")).json()
        for name in ("bob/motor", "ada/engine")
    ]
    assert history[0] == history[1]
    assert (await client.get("/bob/motor/resolve/v1/large.bin")).content == LARGE
    event = (await published_events(database, RepoCreated))[-1]
    assert (event["repo"]["name"], event["repo"]["head_sha"]) == ("bob/motor", copy["sha"])


async def test_original_and_copy_go_their_own_ways(
    client: httpx2.AsyncClient, database: Database, ada: Headers, bob: Headers, repo: ARepo
) -> None:
    await repo.commit(ada, file("large.bin", LARGE))
    await duplicate(client, bob)
    copy = ARepo(client, database, (await client.get("/api/models/bob/engine")).json()["_id"])
    copy.path = "/api/models/bob/engine"

    await copy.commit(bob, file("a", "1"))
    await client.request("DELETE", "/api/repos/delete", headers=ada, json={"name": "ada/engine"})

    assert (await copy.files())["a"] == b"1"
    assert (await client.get("/bob/engine/resolve/main/large.bin")).content == LARGE


async def test_pull_requests_and_what_nothing_points_to_stay_behind(
    client: httpx2.AsyncClient, database: Database, ada: Headers, bob: Headers, repo: ARepo
) -> None:
    secret = await repo.commit(ada, file("secret", "1"))
    await client.post(f"{repo.path}/super-squash/main", headers=ada, json={})
    proposed = await repo.send(ada, ndjson(header(), file("b", "2")), query="?create_pr=1")

    await duplicate(client, bob)

    refs = await branches(client, "bob/engine")
    assert (len(refs["branches"]), refs["pullRequests"]) == (1, [])  # type: ignore[arg-type]
    for commit in (secret, proposed.json()["commitOid"]):
        assert (await client.get(f"{repo.path}/tree/{commit}")).status_code == 200
        assert (await client.get(f"/api/models/bob/engine/tree/{commit}")).status_code == 404
    assert (await client.get("/api/models/bob/engine/discussions")).json()["count"] == 0


async def test_a_tag_that_is_an_object_is_copied(
    client: httpx2.AsyncClient, database: Database, ada: Headers, bob: Headers, repo: ARepo
) -> None:
    folder = bare_repos.folder_of(database.hub.settings.database.data_dir, repo.id)
    who = pygit2.Signature("ada", "ada@example.com", 0, 0)
    tag = bare_repos.open_repository(folder).create_tag(
        "v1", pygit2.Oid(hex=await repo.head()), pygit2.enums.ObjectType.COMMIT, who, "One."
    )
    async with database.transaction() as conn:
        await conn.execute(
            "INSERT INTO repo_refs (repo_id, name, sha, updated_at) VALUES ($1, $2, $3, 0)",
            repo.id, "refs/tags/v1", str(tag),
        )  # fmt: skip

    await duplicate(client, bob)

    assert (await client.get("/api/models/bob/engine/tree/v1")).status_code == 200


@pytest.mark.parametrize("kind", ["model", "dataset", "space", "kernel"])
async def test_every_type_with_git_is_copied_under_its_own_name(
    client: httpx2.AsyncClient, ada: Headers, bob: Headers, kind: str
) -> None:
    await a_repo_of_any_type(client, ada, "ada/tool", type=kind)

    response = await duplicate(client, bob, f"{kind}s/ada/tool", hardware="t4-small", secrets=[])

    prefix = "" if kind == "model" else f"{kind}s/"
    assert response.json() == {"url": f"http://hub.test/{prefix}bob/tool"}
    copy = (await client.get(f"/api/{kind}s/bob/tool")).json()
    assert copy["id"] == "bob/tool"
    assert copy.get("sdk") == ("static" if kind == "space" else None)


async def test_a_bucket_is_not_copied(client: httpx2.AsyncClient, ada: Headers) -> None:
    await client.post("/api/buckets/ada/store", headers=ada, json={})

    response = await duplicate(client, ada, "buckets/ada/store", repository="ada/other")

    assert response.status_code in {404, 405}


@pytest.mark.parametrize(
    ("body", "private"),
    [({}, True), ({"private": False}, False), ({"visibility": "public"}, False)],
)
async def test_a_copy_is_as_private_as_its_original_unless_asked(
    client: httpx2.AsyncClient, ada: Headers, body: dict[str, object], *, private: bool
) -> None:
    await a_repo_of_any_type(client, ada, "ada/secret", private=True)

    await duplicate(client, ada, "models/ada/secret", repository="ada/copy", **body)

    copy = await client.get("/api/models/ada/copy", headers=ada)
    assert copy.json()["private"] is private


async def test_only_who_reads_the_original_copies_it(
    client: httpx2.AsyncClient, ada: Headers, bob: Headers, repo: ARepo
) -> None:
    settings = f"{repo.path}/settings"
    await client.put(settings, headers=ada, json={"gated": "manual"})

    gated = await duplicate(client, bob)
    await client.put(settings, headers=ada, json={"gated": False, "private": True})
    private = await duplicate(client, bob)
    anonymous = await duplicate(client, {})
    missing = await duplicate(client, bob, "models/ada/nothing")

    assert (gated.status_code, gated.headers["x-error-code"]) == (403, "GatedRepo")
    assert (private.status_code, private.headers["x-error-code"]) == (404, "RepoNotFound")
    assert anonymous.status_code == 401
    assert (missing.status_code, missing.json()) == (404, {"error": "Repository not found"})


async def test_the_copy_of_a_gated_repository_is_gated(
    client: httpx2.AsyncClient, ada: Headers, bob: Headers, repo: ARepo
) -> None:
    await client.put(f"{repo.path}/settings", headers=ada, json={"gated": "manual"})
    grant = f"{repo.path}/user-access-request/grant"
    await client.post(grant, headers=ada, json={"user": "bob"})

    await duplicate(client, bob)

    copy = (await client.get("/api/models/bob/engine")).json()
    assert copy["gated"] == "manual"
    refused = await client.get("/bob/engine/resolve/main/.gitattributes")
    assert refused.status_code == 403


async def test_only_who_may_create_there_puts_a_copy_there(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo: ARepo
) -> None:
    await an_organization(database, "acme", members={"eve": Role.read, "eda": Role.contributor})
    eve, eda = await sign_in(database, "eve"), await sign_in(database, "eda")
    reader = {"Authorization": f"Bearer {await a_token(database, 'eda', role=TokenRole.read)}"}
    before = folders(database)

    refused = [
        await duplicate(client, eve, repository="acme/engine"),
        await duplicate(client, eda, repository="ada/other"),
        await duplicate(client, reader, repository="eda/engine"),
    ]
    made = await duplicate(client, eda, repository="acme/engine")

    assert [response.status_code for response in refused] == [403, 403, 403]
    assert made.status_code == 200
    assert len(folders(database) - before) == 1


async def test_a_copy_is_put_into_a_resource_group(
    client: httpx2.AsyncClient, database: Database
) -> None:
    organization = await an_organization(
        database, "acme", members={"eda": Role.write}, plan=OrganizationPlan.enterprise
    )
    group = await a_resource_group(database, organization, members={"eda": Role.write})
    eda = await sign_in(database, "eda")
    await a_repo_of_any_type(client, eda, "eda/engine")

    made = await duplicate(
        client, eda, "models/eda/engine", repository="acme/engine", resourceGroupId=group.id
    )

    assert made.status_code == 200
    shown = await client.get("/api/models/acme/engine/resource-group", headers=eda)
    assert shown.json()["resourceGroup"]["id"] == group.id


async def test_a_name_that_is_taken_is_left_alone(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo: ARepo
) -> None:
    before = folders(database)

    response = await duplicate(client, ada)

    assert (response.status_code, response.json()) == (
        409,
        {
            "error": "A model repository called ada/engine already exists.",
            "url": "http://hub.test/ada/engine",
        },
    )
    assert folders(database) == before


async def test_of_two_copies_at_once_one_is_made(
    client: httpx2.AsyncClient, database: Database, bob: Headers, repo: ARepo
) -> None:
    before = folders(database)

    answers = await asyncio.gather(*(duplicate(client, bob) for _ in range(2)))

    assert sorted(answer.status_code for answer in answers) == [200, 409]
    assert len(folders(database) - before) == 1


@pytest.mark.parametrize(
    "body",
    [
        {"repository": "a--b"},
        {"repository": "a/b/c"},
        {"repository": ""},
        {"visibility": "protected"},
        {"visibility": "public", "private": True},
        {"resourceGroupId": "x"},
    ],
)
async def test_what_makes_no_sense_is_refused(
    client: httpx2.AsyncClient,
    database: Database,
    bob: Headers,
    repo: ARepo,
    body: dict[str, object],
) -> None:
    before = folders(database)

    assert (await duplicate(client, bob, **body)).status_code == 400
    assert folders(database) == before


async def test_a_copy_that_fails_leaves_nothing_behind(
    client: httpx2.AsyncClient,
    database: Database,
    bob: Headers,
    repo: ARepo,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail(*_: object) -> None:
        raise StorageUnavailable

    before = folders(database)
    monkeypatch.setattr(lifecycle, "add_or_refuse", fail)

    assert (await duplicate(client, bob)).status_code == 503
    assert folders(database) == before
    assert (await client.get("/api/models/bob/engine")).status_code == 404


async def test_an_original_that_vanishes_meanwhile_is_missing(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    bob: Headers,
    repo: ARepo,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copy = bare_repos.create_copy

    async def delete_first(folder: Path, *, of: Path, shas: list[str]) -> None:
        await copy(folder, of=of, shas=shas)
        gone = {"name": "ada/engine"}
        await client.request("DELETE", "/api/repos/delete", headers=ada, json=gone)
        await a_repo_of_any_type(client, ada, "ada/engine")

    monkeypatch.setattr(bare_repos, "create_copy", delete_first)

    response = await duplicate(client, bob)

    assert (response.status_code, response.headers["x-error-code"]) == (404, "RepoNotFound")
    assert (await client.get("/api/models/bob/engine")).status_code == 404


async def test_a_token_that_is_revoked_meanwhile_leaves_no_copy(
    client: httpx2.AsyncClient,
    database: Database,
    bob: Headers,
    repo: ARepo,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copy, before = bare_repos.create_copy, folders(database)

    async def revoke_first(folder: Path, *, of: Path, shas: list[str]) -> None:
        await copy(folder, of=of, shas=shas)
        await revoke(database, bob)

    monkeypatch.setattr(bare_repos, "create_copy", revoke_first)

    assert (await duplicate(client, bob)).status_code == 401
    assert folders(database) == before
    assert (await client.get("/api/models/bob/engine")).status_code == 404


async def test_a_copy_is_complete_as_soon_as_it_is_seen(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo_of_any_type(client, ada, "ada/engine", visibility="private")
    bob = await sign_in(database, "bob")

    own = await client.get("/api/models/ada/engine/duplicate/status", headers=ada)
    foreign = await client.get("/api/models/ada/engine/duplicate/status", headers=bob)

    assert own.json() == {"status": "completed"}
    assert foreign.status_code == 404
