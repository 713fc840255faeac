"""What a client hears before it uploads."""

import base64
from typing import Any

import httpx2
import pytest

from hublet.core.database import Database
from people import Headers, sign_in
from repos.commits import ARepo, a_repo, deleted_file, file
from repos.content import sha256
from repos.git_objects import git_sha1


@pytest.fixture
async def repo(client: httpx2.AsyncClient, database: Database, ada: Headers) -> ARepo:
    return await a_repo(client, database, ada)


def a_file(path: str, content: bytes = b"ABC", **more: object) -> dict[str, Any]:
    sample = base64.b64encode(content[:512]).decode()
    return {"path": path, "sample": sample, "size": len(content), **more}


async def advice_on(repo: ARepo, who: Headers, files: list[dict[str, Any]], **more: object) -> Any:
    response = await repo.client.post(
        f"{repo.path}/preupload/main", headers=who, json={"files": files, **more}
    )
    assert response.status_code == 200, response.text
    return response.json()


async def advice(repo: ARepo, who: Headers, *paths: str, **more: object) -> Any:
    return await advice_on(repo, who, [a_file(path) for path in paths], **more)


async def modes(repo: ARepo, who: Headers, *files: dict[str, Any], **more: object) -> list[str]:
    fetched = await advice_on(repo, who, list(files), **more)
    return [each["uploadMode"] for each in fetched["files"]]


async def test_small_text_goes_into_git_and_other_files_to_lfs(ada: Headers, repo: ARepo) -> None:
    await repo.commit(ada, file("there.txt", "one"), file("folder/x", "two"))

    assert await advice(repo, ada, "there.txt", "model.safetensors", "folder") == {
        "files": [
            {
                "path": "there.txt",
                "uploadMode": "regular",
                "shouldIgnore": False,
                "oid": git_sha1(b"one"),
            },
            {"path": "model.safetensors", "uploadMode": "lfs", "shouldIgnore": False},
            {"path": "folder", "uploadMode": "regular", "shouldIgnore": False},
        ]
    }


@pytest.mark.parametrize(
    ("offered", "mode"),
    [
        pytest.param(a_file("a.txt", b"text\n"), "regular", id="text"),
        pytest.param(a_file("a.txt", "ü€😀".encode()), "regular", id="text beyond ASCII"),
        pytest.param(a_file("a.txt", b"x" + "😀".encode() * 500), "regular", id="a cut letter"),
        pytest.param(a_file("a.txt", "ü".encode()[:1]), "lfs", id="a letter without its end"),
        pytest.param(a_file("a.png", b"\x89PNG\r\n"), "lfs", id="no UTF-8"),
        pytest.param(a_file("a", b"one\0two"), "lfs", id="a NUL"),
        pytest.param(a_file("a.txt", size=10 << 20), "regular", id="10 MiB of text"),
        pytest.param(a_file("a.txt", size=(10 << 20) + 1), "lfs", id="more than 10 MiB"),
        pytest.param(a_file("a.bin", b"text"), "lfs", id="text that .gitattributes names"),
        pytest.param(a_file("a.bin", b""), "regular", id="an empty file"),
        pytest.param({"path": "a.bin"}, "lfs", id="a name alone"),
        pytest.param({"path": "a.txt"}, "regular", id="another name alone"),
    ],
)
async def test_name_size_and_first_bytes_decide(
    ada: Headers, repo: ARepo, offered: dict[str, Any], mode: str
) -> None:
    assert await modes(repo, ada, offered) == [mode]


async def test_the_attributes_of_the_revision_count(ada: Headers, repo: ARepo) -> None:
    await repo.commit(ada, file(".gitattributes", "* filter=lfs\n*.bin -filter\n"))

    fetched = await modes(repo, ada, a_file("a.txt"), a_file("a.bin"), a_file(".gitattributes"))

    assert fetched == ["lfs", "regular", "regular"]


async def test_without_attributes_binary_files_go_to_lfs(ada: Headers, repo: ARepo) -> None:
    await repo.commit(ada, deleted_file(".gitattributes"))

    assert await modes(repo, ada, a_file("a.bin"), a_file("b", b"\0")) == ["regular", "lfs"]


async def test_a_sample_that_is_no_base64_is_refused(
    client: httpx2.AsyncClient, ada: Headers, repo: ARepo
) -> None:
    body = {"files": [{"path": "a", "sample": "A?=="}]}

    response = await client.post(f"{repo.path}/preupload/main", headers=ada, json=body)

    assert response.status_code == 400
    assert "sample: must be base64" in response.json()["error"]


async def test_a_large_file_is_known_by_its_content_not_by_its_pointer(
    ada: Headers, repo: ARepo
) -> None:
    content = b"x" * 11_000_000
    await repo.commit(ada, file("big", content))

    # That it is in LFS stands in .gitattributes by now.
    [in_lfs] = (await advice(repo, ada, "big"))["files"]
    [in_git] = (await advice(repo, ada, "big", gitAttributes=""))["files"]

    assert (in_lfs["uploadMode"], in_lfs["oid"]) == ("lfs", sha256(content))
    assert (in_git["uploadMode"], in_git["oid"]) == ("regular", git_sha1(content))


async def test_a_large_file_of_unknown_name_has_none(
    database: Database, ada: Headers, repo: ARepo
) -> None:
    await repo.commit(ada, file("big", b"x" * 11_000_000))
    async with database.transaction() as conn:
        await conn.execute("UPDATE repo_blobs SET git_sha1 = NULL")

    [fetched] = (await advice(repo, ada, "big", gitAttributes=""))["files"]

    assert "oid" not in fetched


async def test_content_that_the_repository_lost_must_be_uploaded_again(
    database: Database, ada: Headers, repo: ARepo
) -> None:
    await repo.commit(ada, file("big", b"x" * 11_000_000))
    async with database.transaction() as conn:
        await conn.execute("DELETE FROM repo_blobs")

    [fetched] = (await advice(repo, ada, "big"))["files"]

    assert "oid" not in fetched


async def test_a_file_in_git_has_no_digest_for_lfs(ada: Headers, repo: ARepo) -> None:
    await repo.commit(ada, file("a.bin", "in git"))

    [fetched] = (await advice(repo, ada, "a.bin"))["files"]

    assert fetched == {"path": "a.bin", "uploadMode": "lfs", "shouldIgnore": False}


async def test_the_repositorys_own_rules_leave_files_out(ada: Headers, repo: ARepo) -> None:
    await repo.commit(ada, file(".gitignore", "*.log\n!keep.log\n"))

    fetched = await advice(repo, ada, "a.log", "keep.log", "a.txt")

    assert [each["shouldIgnore"] for each in fetched["files"]] == [True, False, False]


async def test_the_rules_of_the_request_come_first(ada: Headers, repo: ARepo) -> None:
    await repo.commit(ada, file(".gitignore", "*.log\n"))

    more = {"gitIgnore": "*.txt", "gitAttributes": "*.log filter=lfs"}
    fetched = await advice(repo, ada, "a.log", "a.txt", "a.bin", **more)

    assert [each["shouldIgnore"] for each in fetched["files"]] == [False, True, False]
    assert [each["uploadMode"] for each in fetched["files"]] == ["lfs", "regular", "regular"]


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
