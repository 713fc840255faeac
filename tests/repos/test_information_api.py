"""What is told of one repository, and to whom."""

from typing import Any

import httpx2
import pygit2
import pytest
from fastapi import FastAPI

from hublet.accounts.records import OrganizationPlan, Role
from hublet.app import with_edge
from hublet.core.database import Database
from hublet.repos.browse import information
from hublet.repos.git import bare_repos
from hublet.repos.git.trees import pointer_to
from people import Headers, an_organization, sign_in
from repos.git_objects import git_sha1
from repositories import a_push, a_ref, a_repo, a_resource_group, disable

MODEL = "/api/models/ada/engine"
CARD = {
    "license": "mit",
    "pipeline_tag": "text-generation",
    "library_name": "torch",
    "model-index": [{"name": "engine"}],
    "sdk": "gradio",
}


async def info(client: httpx2.AsyncClient, path: str, headers: Headers | None = None) -> Any:
    response = await client.get(path, headers=headers or {})
    assert response.status_code == 200, response.text
    return response.json()


async def test_a_new_model_is_described_to_anybody(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")

    found = await info(client, MODEL)

    assert found == {
        "_id": repo_id,
        "id": "ada/engine",
        "author": "ada",
        "sha": found["sha"],
        "createdAt": found["createdAt"],
        "lastModified": found["createdAt"],
        "private": False,
        "gated": False,
        "disabled": False,
        "downloads": 0,
        "likes": 0,
        "tags": [],
        "usedStorage": 0,
        "siblings": [{"rfilename": ".gitattributes"}],
    }


async def test_a_card_fills_what_models_have(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    commit = await a_push(database, repo_id, {"README.md": b"x"}, card=CARD, tags=["license:mit"])

    found = await info(client, MODEL)

    assert found["sha"] == commit
    assert found["cardData"] == CARD
    assert found["tags"] == ["license:mit"]
    assert found["usedStorage"] == 7
    assert (found["pipeline_tag"], found["library_name"]) == ("text-generation", "torch")
    assert "sdk" not in found


async def test_a_space_tells_its_sdk_and_that_nothing_runs(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/app", type="space", sdk="static")

    found = await info(client, "/api/spaces/ada/app")
    await a_push(database, repo_id, {"README.md": b"x"}, card=CARD)
    changed = await info(client, "/api/spaces/ada/app")

    assert (found["sdk"], changed["sdk"]) == ("static", "gradio")
    assert found["runtime"] == {
        "stage": "STOPPED",
        "hardware": {"current": None, "requested": None},
    }
    assert "pipeline_tag" not in changed


async def test_files_have_sizes_and_digests_with_blobs(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    pointer = pointer_to("ab" * 32, 12345)
    await a_push(database, repo_id, {"a/b.txt": b"hello", "c.bin": pointer})

    plain = await info(client, MODEL)
    full = await info(client, f"{MODEL}?blobs=true")

    assert plain["siblings"] == [{"rfilename": "a/b.txt"}, {"rfilename": "c.bin"}]
    assert full["siblings"] == [
        {"rfilename": "a/b.txt", "size": 5, "blobId": git_sha1(b"hello")},
        {
            "rfilename": "c.bin",
            "size": 12345,
            "blobId": git_sha1(pointer),
            "lfs": {"size": 12345, "sha256": "ab" * 32, "pointerSize": len(pointer)},
        },
    ]


async def test_every_revision_has_its_own_sha_and_files(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    first = (await info(client, MODEL))["sha"]
    side = await a_push(database, repo_id, {"side": b""}, ref="refs/heads/feat/x")
    tagged = await a_push(database, repo_id, {"tagged": b""}, ref="refs/tags/v1")
    request = await a_push(database, repo_id, {"pr": b""}, ref="refs/pr/2")

    found = {
        revision: await info(client, f"{MODEL}/revision/{revision}")
        for revision in ("main", "feat%2Fx", "feat/x", "v1", "refs%2Fpr%2F2", side)
    }

    assert {revision: each["sha"] for revision, each in found.items()} == {
        "main": first,
        "feat%2Fx": side,
        "feat/x": side,
        "v1": tagged,
        "refs%2Fpr%2F2": request,
        side: side,
    }
    assert found["v1"]["siblings"] == [{"rfilename": "tagged"}]
    assert (await info(client, MODEL))["sha"] == first


@pytest.mark.parametrize(
    "revision", ["nothing", "f" * 40, "refs%2Fpr%2F7", "%2E%2E%2Fx", "main%20x"]
)
@pytest.mark.parametrize("query", ["", "?expand=likes"])
async def test_an_unknown_revision_has_its_code(
    client: httpx2.AsyncClient, ada: Headers, revision: str, query: str
) -> None:
    await a_repo(client, ada, "ada/engine")

    response = await client.get(f"{MODEL}/revision/{revision}{query}")

    assert (response.status_code, response.headers["x-error-code"]) == (404, "RevisionNotFound")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("expand=likes", {"likes": 0}, id="one"),
        pytest.param("expand=likes&expand=author", {"likes": 0, "author": "ada"}, id="two"),
        pytest.param("expand%5B%5D=private", {"private": False}, id="in the form of an array"),
        pytest.param("expand=gated&expand=disabled", {"gated": False, "disabled": False}, id="no"),
        pytest.param(
            "expand=trendingScore&expand=downloadsAllTime",
            {"trendingScore": 0, "downloadsAllTime": 0},
            id="derived",
        ),
        pytest.param("expand=gguf&expand=config", {}, id="what this hub lacks"),
        pytest.param("expand=resourceGroup", {}, id="no group"),
        pytest.param(
            "expand=siblings", {"siblings": [{"rfilename": ".gitattributes"}]}, id="files"
        ),
        pytest.param(
            "expand=tags&securityStatus=true",
            {"tags": [], "securityRepoStatus": {"scansDone": False, "filesWithIssues": []}},
            id="no scans",
        ),
    ],
)
async def test_only_what_is_expanded_is_shown(
    client: httpx2.AsyncClient, ada: Headers, query: str, expected: dict[str, Any]
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")

    found = await info(client, f"{MODEL}?{query}")

    assert found == {"_id": repo_id, "id": "ada/engine"} | expected


async def test_what_nobody_knows_cannot_be_expanded(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")

    response = await client.get(f"{MODEL}?expand=colour")

    assert response.status_code == 400
    assert response.json()["error"].startswith("expand[0] must be one of 'author', ")


async def test_a_tag_with_a_message_is_the_commit_it_points_to(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    commit = (await info(client, MODEL))["sha"]
    folder = bare_repos.folder_of(database.hub.settings.database.data_dir, repo_id)
    who = pygit2.Signature("ada", "ada@example.com", 0, 0)
    kind = pygit2.enums.ObjectType.COMMIT
    tag = bare_repos.open_repository(folder).create_tag(
        "v1", pygit2.Oid(hex=commit), kind, who, "One."
    )
    await a_ref(database, repo_id, "refs/tags/v1", str(tag))

    assert str(tag) != commit
    assert (await info(client, f"{MODEL}/revision/v1"))["sha"] == commit


async def test_of_very_many_files_not_all_are_listed(
    client: httpx2.AsyncClient, database: Database, ada: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(information, "_MOST_FILES", 2)
    repo_id = await a_repo(client, ada, "ada/engine")
    await a_push(database, repo_id, {"a": b"", "b/c": b"", "d": b""})

    found = await info(client, MODEL)

    assert found["siblings"] == [{"rfilename": "a"}, {"rfilename": "b/c"}]


async def test_the_model_index_comes_from_the_card(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    await a_push(database, repo_id, {"README.md": b"x"}, card=CARD)

    found = await info(client, f"{MODEL}?expand=model-index")

    assert found["model-index"] == CARD["model-index"]


async def test_a_resource_group_is_shown_to_those_who_are_in_it(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    acme = await an_organization(
        database, "acme", plan=OrganizationPlan.team, members={"ada": Role.admin, "bob": Role.read}
    )
    group = await a_resource_group(database, acme)
    repo_id = await a_repo(client, ada, "acme/engine", resourceGroupId=group.id)
    path = "/api/models/acme/engine?expand=resourceGroup"
    bob = await sign_in(database, "bob")

    inside = await info(client, path, ada)
    outside = await info(client, path, bob)
    anonymous = await info(client, path)

    ids = {"_id": repo_id, "id": "acme/engine"}
    assert inside == ids | {"resourceGroup": {"id": group.id, "name": "rockets"}}
    assert outside == anonymous == ids


async def test_a_private_repository_is_described_to_its_owner_only(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine", private=True)
    bob = await sign_in(database, "bob")

    own = await info(client, MODEL, ada)
    others = [await client.get(MODEL, headers=headers) for headers in ({}, bob)]

    assert own["private"] is True
    for response in others:
        assert (response.status_code, response.headers["x-error-code"]) == (404, "RepoNotFound")
        assert response.json() == {"error": "Repository not found"}


async def test_types_do_not_mix(client: httpx2.AsyncClient, ada: Headers) -> None:
    await a_repo(client, ada, "ada/engine")

    response = await client.get("/api/datasets/ada/engine")

    assert response.headers["x-error-code"] == "RepoNotFound"


async def test_a_name_without_an_owner_is_not_found(client: httpx2.AsyncClient) -> None:
    response = await client.get("/api/models/gpt2")

    assert (response.status_code, response.headers["x-error-code"]) == (404, "RepoNotFound")


@pytest.mark.parametrize("path", ["zero-gpu/quota", "ada/engine/runtime"])
async def test_what_the_public_service_has_there_stays_a_gap(app: FastAPI, path: str) -> None:
    # Gaps are not described, so this caller does not hold answers against the description.
    transport = httpx2.ASGITransport(app=with_edge(app))
    async with httpx2.AsyncClient(transport=transport, base_url="http://hub.test") as caller:
        response = await caller.get(f"/api/spaces/{path}")

    assert response.status_code == 501


async def test_head_asks_whether_a_repository_exists(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")

    there, missing = await client.head(MODEL), await client.head("/api/models/ada/motor")

    assert (there.status_code, missing.status_code) == (200, 404)


async def test_a_disabled_user_keeps_repositories(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")

    await disable(database, "ada")

    assert (await info(client, MODEL))["author"] == "ada"


READ, WRITE = "/api/models/acme/engine/auth-check", "/api/models/acme/engine/auth-check/write"


@pytest.mark.parametrize(
    ("body", "read", "write"),
    [
        pytest.param({}, (200, None), (403, None), id="public"),
        pytest.param({"private": True}, (404, "RepoNotFound"), (404, "RepoNotFound"), id="private"),
    ],
)
async def test_a_stranger_checks_access(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    *,
    body: dict[str, Any],
    read: tuple[int, str | None],
    write: tuple[int, str | None],
) -> None:
    await an_organization(database, "acme", members={"ada": Role.admin})
    await a_repo(client, ada, "acme/engine", **body)
    bob = await sign_in(database, "bob")

    for headers in ({}, bob):
        answers = [await client.get(path, headers=headers) for path in (READ, WRITE)]
        found = [(each.status_code, each.headers.get("x-error-code")) for each in answers]
        assert found == [read, write]


@pytest.mark.parametrize(
    ("role", "write"), [(Role.read, 403), (Role.contributor, 403), (Role.write, 200)]
)
async def test_a_member_checks_access(
    client: httpx2.AsyncClient, database: Database, ada: Headers, role: Role, write: int
) -> None:
    await an_organization(database, "acme", members={"ada": Role.admin, "bob": role})
    await a_repo(client, ada, "acme/engine", private=True)
    bob = await sign_in(database, "bob")

    answers = [await client.get(path, headers=bob) for path in (READ, WRITE)]

    assert [each.status_code for each in answers] == [200, write]


async def test_a_gate_stands_before_the_content(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(database, "acme", members={"ada": Role.admin})
    await a_repo(client, ada, "acme/engine")
    await client.put("/api/models/acme/engine/settings", headers=ada, json={"gated": "manual"})
    bob = await sign_in(database, "bob")

    refused = await client.get(READ, headers=bob)
    own = await client.get(READ, headers=ada)
    described = await info(client, "/api/models/acme/engine?expand=gated")

    assert (refused.status_code, refused.headers["x-error-code"]) == (403, "GatedRepo")
    assert refused.json() == {
        "error": "Access to model acme/engine is restricted and you are not in the authorized list: "
        "ask for access on its page; its owner decides."
    }
    assert own.json() == {}
    assert described["gated"] == "manual"
