"""Files of git repositories that were uploaded through Xet: commits, headers, trees, downloads."""

from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from hublet.core.database import Database
from people import Headers, sign_in
from repos.commits import ARepo, a_repo, file, header, lfs_file, ndjson
from repos.content import pointer, put_blob, sha256
from repos.xet import CONTENT, FILE, CasClient, cas_of

RESOLVE = "/ada/engine/resolve/main/model.bin"
FILE_INFO = "application/vnd.xet-fileinfo+json"


@pytest.fixture
async def repo(client: httpx2.AsyncClient, database: Database, ada: Headers) -> ARepo:
    return await a_repo(client, database, ada)


@pytest.fixture
async def commit(client: httpx2.AsyncClient, ada: Headers, repo: ARepo) -> str:
    """A commit with model.bin, uploaded through Xet."""
    await (await cas_of(client, ada)).upload()
    return await repo.commit(ada, lfs_file("model.bin", sha256(CONTENT), size=len(CONTENT)))


def links(response: httpx2.Response) -> dict[str, str]:
    return {str(rel): str(link["url"]) for rel, link in response.links.items()}


async def test_git_holds_a_pointer_to_what_came_through_xet(repo: ARepo, commit: str) -> None:
    assert await repo.files(commit) == {"model.bin": pointer(CONTENT)}


async def test_content_that_was_not_uploaded_cannot_be_committed(ada: Headers, repo: ARepo) -> None:
    line = lfs_file("model.bin", sha256(CONTENT), size=len(CONTENT))

    response = await repo.send(ada, ndjson(header(), line))

    assert response.status_code == 400
    assert response.json()["error"] == (
        f"model.bin: there is no content {sha256(CONTENT)} in this repository; "
        "upload it through Xet or LFS first."
    )


async def test_what_another_repository_has_cannot_be_committed(
    client: httpx2.AsyncClient, database: Database, commit: str
) -> None:
    bob = await sign_in(database, "bob")
    created = await client.post("/api/repos/create", headers=bob, json={"name": "copy"})
    copy = ARepo(client, database, created.json()["id"])
    copy.path = "/api/models/bob/copy"

    response = await copy.send(bob, ndjson(header(), lfs_file("model.bin", sha256(CONTENT))))

    assert response.status_code == 400


@pytest.mark.parametrize("method", ["HEAD", "GET"])
async def test_headers_lead_the_client_to_the_cas(
    client: httpx2.AsyncClient, repo: ARepo, commit: str, method: str
) -> None:
    response = await client.request(method, RESOLVE)

    found = {name: value for name, value in response.headers.items() if name.startswith("x-")}
    assert response.status_code == 200
    assert response.headers["etag"] == f'"{sha256(CONTENT)}"'
    assert {name: found[name] for name in found if "linked" in name or "xet" in name} == {
        "x-linked-etag": f'"{sha256(CONTENT)}"',
        "x-linked-size": str(len(CONTENT)),
        "x-xet-hash": FILE,
    }
    assert found["x-repo-commit"] == commit
    assert links(response) == {
        "xet-auth": f"http://hub.test/api/models/ada/engine/xet-read-token/{commit}",
        "xet-reconstruction-info": f"http://hub.test/cas/{repo.id}-0/v1/reconstructions/{FILE}",
    }


async def test_the_links_of_a_file_work(client: httpx2.AsyncClient, commit: str) -> None:
    response = await client.head(RESOLVE)

    token = await client.get(links(response)["xet-auth"])
    cas = CasClient(client, token.json())

    assert await cas.download(response.headers["x-xet-hash"]) == CONTENT
    info = links(response)["xet-reconstruction-info"]
    assert (await cas.get(info.removeprefix(cas.url))).status_code == 200


async def test_a_revision_with_a_slash_is_named_by_its_commit(
    client: httpx2.AsyncClient, ada: Headers, repo: ARepo, commit: str
) -> None:
    await client.post(f"{repo.path}/branch/feat%2Fx", headers=ada, json={})

    response = await client.head("/ada/engine/resolve/feat%2Fx/model.bin")

    assert links(response)["xet-auth"].endswith(f"/xet-read-token/{commit}")


@pytest.mark.parametrize(
    ("part", "status", "content"),
    [
        pytest.param(None, 200, CONTENT, id="all"),
        pytest.param("bytes=20-40", 206, CONTENT[20:41], id="a part over chunks"),
        pytest.param("bytes=-5", 206, CONTENT[-5:], id="the end"),
        pytest.param("bytes=0-0", 206, CONTENT[:1], id="one byte"),
    ],
)
async def test_it_comes_by_plain_http_too(
    client: httpx2.AsyncClient, commit: str, part: str | None, status: int, content: bytes
) -> None:
    response = await client.get(RESOLVE, headers={} if part is None else {"Range": part})

    assert (response.status_code, response.content) == (status, content)
    assert response.headers["content-type"] == "application/octet-stream"


async def test_the_javascript_client_hears_that_it_can_use_xet(
    client: httpx2.AsyncClient, commit: str
) -> None:
    asked = {"Range": "bytes=0-0", "Accept": f"{FILE_INFO}, */*"}

    response = await client.get(RESOLVE, headers=asked)

    etag = f'"{sha256(CONTENT)}"'
    assert response.status_code == 200
    assert response.headers["content-type"] == FILE_INFO
    assert response.headers["vary"] == "Accept"
    assert response.headers["etag"] == response.headers["x-linked-etag"] == etag
    assert response.headers["x-linked-size"] == str(len(CONTENT))
    assert response.headers["x-xet-hash"] == FILE
    assert set(links(response)) == {"xet-auth", "xet-reconstruction-info"}
    assert response.json() == {"hash": FILE, "etag": etag, "size": len(CONTENT)}


async def test_a_file_that_is_not_cut_yet_is_for_plain_http_alone(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo: ARepo
) -> None:
    await put_blob(database, repo.id, b"plain")
    await repo.commit(ada, lfs_file("model.bin", sha256(b"plain")), file("a.txt", "small"))
    asked = {"Range": "bytes=0-0", "Accept": f"{FILE_INFO}, */*"}

    for path, first in ((RESOLVE, b"p"), ("/ada/engine/resolve/main/a.txt", b"s")):
        response = await client.get(path, headers=asked)
        assert (response.status_code, response.content) == (206, first)
        assert not {"x-xet-hash", "link"} & set(response.headers)


async def test_a_download_through_xet_counts_as_one(
    app: FastAPI, client: httpx2.AsyncClient, repo: ARepo, commit: str
) -> None:
    head = await client.head(RESOLVE)
    await client.get(RESOLVE, headers={"Accept": FILE_INFO})
    before = await downloads_of(app, client, repo)

    cas = CasClient(client, (await client.get(links(head)["xet-auth"])).json())
    await cas.download(FILE)

    assert (before, await downloads_of(app, client, repo)) == (0, 1)


async def downloads_of(app: FastAPI, client: httpx2.AsyncClient, repo: ARepo) -> int:
    await app.state.downloads.flush()
    count: int = (await client.get(repo.path)).json()["downloads"]
    return count


def by_path(entries: list[dict[str, Any]]) -> dict[str, Any]:
    return {entry["path"]: entry.get("xetHash") for entry in entries}


async def test_trees_and_paths_tell_the_hash_where_there_is_one(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo: ARepo, commit: str
) -> None:
    await put_blob(database, repo.id, b"plain")
    await repo.commit(ada, lfs_file("d/plain.bin", sha256(b"plain")), file("a.txt", "small"))
    expected = {".gitattributes": None, "a.txt": None, "d": None, "d/plain.bin": None}

    tree = await client.get(f"{repo.path}/tree/main?recursive=true")
    expanded = await client.get(f"{repo.path}/tree/main?recursive=true&expand=true")
    info = await client.post(
        f"{repo.path}/paths-info/main", data={"paths": ["model.bin", "d/plain.bin"]}
    )

    assert by_path(tree.json()) == by_path(expanded.json()) == expected | {"model.bin": FILE}
    assert by_path(info.json()) == {"model.bin": FILE, "d/plain.bin": None}
    assert all("xetHash" not in entry for entry in tree.json() if entry["path"] != "model.bin")


async def test_a_pointer_to_content_of_others_has_no_hash(
    client: httpx2.AsyncClient, database: Database, repo: ARepo, commit: str
) -> None:
    async with database.transaction() as conn:
        await conn.execute("DELETE FROM repo_blobs")

    tree = await client.get(f"{repo.path}/tree/main")

    assert by_path(tree.json())["model.bin"] is None
