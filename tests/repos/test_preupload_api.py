"""What a client hears before it uploads."""

from typing import Any

import httpx2
import pytest

from hublet.core.database import Database
from people import Headers, sign_in
from repos.commits import ARepo, a_repo, file
from repos.git_objects import git_sha1


@pytest.fixture
async def repo(client: httpx2.AsyncClient, database: Database, ada: Headers) -> ARepo:
    return await a_repo(client, database, ada)


def a_file(path: str) -> dict[str, Any]:
    return {"path": path, "sample": "QUJD", "size": 3}


async def advice(repo: ARepo, who: Headers, *paths: str, **more: object) -> Any:
    response = await repo.client.post(
        f"{repo.path}/preupload/main",
        headers=who,
        json={"files": [a_file(path) for path in paths], **more},
    )
    assert response.status_code == 200, response.text
    return response.json()


async def test_every_file_is_uploaded_in_the_same_way(ada: Headers, repo: ARepo) -> None:
    await repo.commit(ada, file("there.txt", "one"), file("folder/x", "two"))

    assert await advice(repo, ada, "there.txt", "model.safetensors", "folder") == {
        "files": [
            {
                "path": "there.txt",
                "uploadMode": "regular",
                "shouldIgnore": False,
                "oid": git_sha1(b"one"),
            },
            {"path": "model.safetensors", "uploadMode": "regular", "shouldIgnore": False},
            {"path": "folder", "uploadMode": "regular", "shouldIgnore": False},
        ]
    }


async def test_a_large_file_is_known_by_its_content_not_by_its_pointer(
    ada: Headers, repo: ARepo
) -> None:
    content = b"x" * 11_000_000
    await repo.commit(ada, file("big", content))

    [fetched] = (await advice(repo, ada, "big"))["files"]

    assert fetched["oid"] == git_sha1(content)


async def test_a_large_file_of_unknown_name_has_none(
    database: Database, ada: Headers, repo: ARepo
) -> None:
    await repo.commit(ada, file("big", b"x" * 11_000_000))
    async with database.transaction() as conn:
        await conn.execute("UPDATE blobs SET git_sha1 = NULL")

    [fetched] = (await advice(repo, ada, "big"))["files"]

    assert "oid" not in fetched


async def test_the_repositorys_own_rules_leave_files_out(ada: Headers, repo: ARepo) -> None:
    await repo.commit(ada, file(".gitignore", "*.log\n!keep.log\n"))

    fetched = await advice(repo, ada, "a.log", "keep.log", "a.txt")

    assert [each["shouldIgnore"] for each in fetched["files"]] == [True, False, False]


async def test_the_rules_of_the_request_come_first(ada: Headers, repo: ARepo) -> None:
    await repo.commit(ada, file(".gitignore", "*.log\n"))

    fetched = await advice(repo, ada, "a.log", "a.txt", gitIgnore="*.txt", gitAttributes="")

    assert [each["shouldIgnore"] for each in fetched["files"]] == [False, True]


async def test_a_call_may_have_as_many_files_as_the_client_sends(ada: Headers, repo: ARepo) -> None:
    paths = [f"folder/{number}" for number in range(256)]

    fetched = await advice(repo, ada, *paths)

    assert [each["path"] for each in fetched["files"]] == paths


@pytest.mark.parametrize(
    ("revision", "status", "code"),
    [("nothing", 404, "RevisionNotFound"), ("refs%2Fpr%2F7", 404, "RevisionNotFound")],
)
async def test_a_branch_that_does_not_exist_takes_no_upload(
    client: httpx2.AsyncClient, ada: Headers, repo: ARepo, revision: str, status: int, code: str
) -> None:
    response = await client.post(
        f"{repo.path}/preupload/{revision}", headers=ada, json={"files": []}
    )

    assert (response.status_code, response.headers["x-error-code"]) == (status, code)


async def test_only_who_may_commit_is_advised(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo: ARepo
) -> None:
    bob = await sign_in(database, "bob")
    path = f"{repo.path}/preupload/main"

    assert (await client.post(path, headers=bob, json={"files": []})).status_code == 403
    assert (await client.post(path, json={"files": []})).status_code == 401
    proposing = await client.post(f"{path}?create_pr=1", headers=bob, json={"files": []})
    assert (proposing.status_code, proposing.json()) == (200, {"files": []})
