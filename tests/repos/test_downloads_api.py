"""Downloads: whole files, parts, versions, headers, refusals."""

import httpx2
import pytest
from fastapi import FastAPI

from hublet.core.database import Database
from hublet.repos.git import trees
from people import Headers, sign_in
from repos.content import pointer, put, put_blob, sha256
from repos.git_objects import git_sha1
from repositories import a_repo

RESOLVE = "/ada/engine/resolve/main"
SMALL = b"0123456789"
LARGE = bytes(range(256)) * 8192


@pytest.fixture
async def repo_id(client: httpx2.AsyncClient, ada: Headers) -> str:
    return await a_repo(client, ada, "ada/engine")


@pytest.fixture
async def commit(database: Database, repo_id: str) -> str:
    """A small file and a large one, in a commit on main."""
    await put_blob(database, repo_id, LARGE)
    return await put(database, repo_id, {"d/small.txt": SMALL, "model.bin": pointer(LARGE)})


def headers_of(response: httpx2.Response, *names: str) -> dict[str, str]:
    return {name: response.headers.get(name, "") for name in names}


async def test_a_small_file_comes_with_what_the_client_reads(
    client: httpx2.AsyncClient, commit: str
) -> None:
    response = await client.get(f"{RESOLVE}/d/small.txt")

    assert (response.status_code, response.content) == (200, SMALL)
    assert headers_of(
        response, "x-repo-commit", "etag", "content-length", "accept-ranges", "x-linked-size"
    ) == {
        "x-repo-commit": commit,
        "etag": f'"{git_sha1(SMALL)}"',
        "content-length": "10",
        "accept-ranges": "bytes",
        "x-linked-size": "",
    }


async def test_a_large_file_is_named_by_its_content(
    client: httpx2.AsyncClient, commit: str
) -> None:
    response = await client.get(f"{RESOLVE}/model.bin")

    assert (response.status_code, response.content) == (200, LARGE)
    assert headers_of(
        response, "x-repo-commit", "etag", "content-length", "x-linked-etag", "x-linked-size"
    ) == {
        "x-repo-commit": commit,
        "etag": f'"{sha256(LARGE)}"',
        "content-length": str(len(LARGE)),
        "x-linked-etag": f'"{sha256(LARGE)}"',
        "x-linked-size": str(len(LARGE)),
    }


@pytest.mark.parametrize(("name", "size"), [("d/small.txt", 10), ("model.bin", len(LARGE))])
async def test_head_tells_the_same_and_reads_nothing(
    client: httpx2.AsyncClient,
    commit: str,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    size: int,
) -> None:
    whole = await client.get(f"{RESOLVE}/{name}")
    monkeypatch.setattr(trees, "read_blob", None)
    monkeypatch.setattr("os.pread", None)

    head = await client.head(f"{RESOLVE}/{name}", headers={"range": "bytes=0-0"})

    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == str(size)
    passing = {"date", "x-request-id", "ratelimit", "ratelimit-policy"}
    kept = [
        {name: value for name, value in each.headers.items() if name not in passing}
        for each in (head, whole)
    ]
    assert kept[0] == kept[1]


@pytest.mark.parametrize("name", ["d/small.txt", "model.bin"])
@pytest.mark.parametrize(
    ("requested", "start", "end"),
    [
        pytest.param("bytes=2-4", 2, 5, id="both ends"),
        pytest.param("bytes=7-", 7, None, id="an open end"),
        pytest.param("bytes=-3", -3, None, id="the last bytes"),
        pytest.param("bytes=0-0", 0, 1, id="one byte, as the JavaScript client asks"),
    ],
)
async def test_a_part_is_sent(
    client: httpx2.AsyncClient, commit: str, name: str, requested: str, start: int, end: int | None
) -> None:
    content = SMALL if name == "d/small.txt" else LARGE
    expected = content[start:end]
    first = start % len(content)

    response = await client.get(f"{RESOLVE}/{name}", headers={"range": requested})

    assert (response.status_code, response.content) == (206, expected)
    assert headers_of(response, "content-range", "content-length") == {
        "content-range": f"bytes {first}-{first + len(expected) - 1}/{len(content)}",
        "content-length": str(len(expected)),
    }


@pytest.mark.parametrize("name", ["d/small.txt", "model.bin"])
async def test_a_part_behind_the_end_is_416(
    client: httpx2.AsyncClient, commit: str, name: str
) -> None:
    size = 10 if name == "d/small.txt" else len(LARGE)

    response = await client.get(f"{RESOLVE}/{name}", headers={"range": f"bytes={size}-"})

    assert (response.status_code, response.headers["content-range"]) == (416, f"bytes */{size}")
    assert response.json() == {"error": f"The range lies outside the file, which has {size} bytes."}


@pytest.mark.parametrize("name", ["d/small.txt", "model.bin"])
async def test_a_part_is_only_sent_of_the_version_that_is_known(
    client: httpx2.AsyncClient, commit: str, name: str
) -> None:
    etag = (await client.head(f"{RESOLVE}/{name}")).headers["etag"]

    statuses = [
        (
            await client.get(
                f"{RESOLVE}/{name}", headers={"range": "bytes=1-2", "if-range": version}
            )
        ).status_code
        for version in (etag, '"another"', "Sun, 15 Nov 2026 01:44:56 GMT")
    ]

    assert statuses == [206, 200, 200]


@pytest.mark.parametrize("name", ["d/small.txt", "model.bin"])
async def test_a_known_version_is_not_sent_again(
    client: httpx2.AsyncClient, commit: str, name: str
) -> None:
    etag = (await client.head(f"{RESOLVE}/{name}")).headers["etag"]

    response = await client.get(f"{RESOLVE}/{name}", headers={"if-none-match": f'"x", W/{etag}'})

    assert (response.status_code, response.content) == (304, b"")
    assert headers_of(response, "etag", "x-repo-commit") == {"etag": etag, "x-repo-commit": commit}


async def test_an_empty_file_is_empty(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    await put(database, repo_id, {"empty": b""})

    response = await client.get(f"{RESOLVE}/empty")

    assert (response.status_code, response.content) == (200, b"")
    assert response.headers["content-length"] == "0"


@pytest.mark.parametrize(
    "address",
    [
        pytest.param("/ada/engine/resolve/feat%2Fx/d%2Fa.txt", id="encoded"),
        pytest.param("/ada/engine/resolve/feat%2Fx/d/a.txt", id="a plain path"),
        pytest.param("/ada/engine/raw/refs%2Fheads%2Ffeat%2Fx/d/a.txt", id="raw"),
        pytest.param("/api/resolve-cache/models/ada/engine/feat%2Fx/d/a.txt", id="cached"),
    ],
)
async def test_a_file_has_several_addresses(
    client: httpx2.AsyncClient, database: Database, repo_id: str, address: str
) -> None:
    await put(database, repo_id, {"d/a.txt": b"here"}, ref="refs/heads/feat/x")

    response = await client.get(address)

    assert (response.status_code, response.content) == (200, b"here")


async def test_raw_shows_the_pointer_of_a_large_file(
    client: httpx2.AsyncClient, commit: str
) -> None:
    response = await client.get("/ada/engine/raw/main/model.bin")

    assert (response.status_code, response.content) == (200, pointer(LARGE))
    assert headers_of(response, "etag", "content-type", "x-repo-commit") == {
        "etag": f'"{git_sha1(pointer(LARGE))}"',
        "content-type": "text/plain; charset=utf-8",
        "x-repo-commit": commit,
    }


async def test_nobody_can_put_a_page_on_the_hubs_own_origin(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    await put(database, repo_id, {"page.html": b"<script>alert(1)</script>"})

    response = await client.get(f"{RESOLVE}/page.html")

    assert headers_of(
        response, "content-type", "x-content-type-options", "content-security-policy"
    ) == {
        "content-type": "text/plain; charset=utf-8",
        "x-content-type-options": "nosniff",
        "content-security-policy": "default-src 'none'; sandbox",
    }


async def test_a_browser_saves_a_file_under_its_name(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    await put(database, repo_id, {'d/ü "x".txt': b"x"})
    address = f"{RESOLVE}/d/%C3%BC%20%22x%22.txt"

    inline = await client.get(address)
    saved = await client.get(f"{address}?download=true")

    names = "filename=\"_ _x_.txt\"; filename*=UTF-8''%C3%BC%20%22x%22.txt"
    assert inline.headers["content-disposition"] == f"inline; {names}"
    assert saved.headers["content-disposition"] == f"attachment; {names}"


async def test_scripts_of_other_origins_may_download(
    client: httpx2.AsyncClient, commit: str
) -> None:
    response = await client.get(f"{RESOLVE}/model.bin", headers={"range": "bytes=0-0"})
    requested = await client.options(
        f"{RESOLVE}/model.bin", headers={"origin": "https://app.example"}
    )

    assert response.headers["access-control-allow-origin"] == "*"
    assert "X-Repo-Commit" in response.headers["access-control-expose-headers"]
    assert "Range" in requested.headers["access-control-allow-headers"]


@pytest.mark.parametrize(
    ("address", "code"),
    [
        pytest.param("/ada/engine/resolve/main/none", "EntryNotFound", id="no such file"),
        pytest.param("/ada/engine/resolve/main/d", "EntryNotFound", id="a folder"),
        pytest.param("/ada/engine/resolve/main/", "EntryNotFound", id="no path"),
        pytest.param("/ada/engine/raw/main/none", "EntryNotFound", id="no raw file"),
        pytest.param(
            "/ada/engine/resolve/main/..%2F..%2Fx", "EntryNotFound", id="a path that leads out"
        ),
        pytest.param("/ada/engine/resolve/nowhere/a", "RevisionNotFound", id="no such branch"),
        pytest.param(f"/ada/engine/resolve/{'0' * 40}/a", "RevisionNotFound", id="no such commit"),
        pytest.param("/ada/none/resolve/main/a", "RepoNotFound", id="no such repository"),
        pytest.param("/datasets/ada/engine/resolve/main/a", "RepoNotFound", id="another type"),
    ],
)
async def test_what_is_not_there_is_told_by_its_code(
    client: httpx2.AsyncClient, commit: str, address: str, code: str
) -> None:
    response = await client.get(address)
    head = await client.head(address)

    assert (response.status_code, response.headers["x-error-code"]) == (404, code)
    assert response.headers.get("x-repo-commit") == (commit if code == "EntryNotFound" else None)
    assert (head.status_code, head.headers["x-error-code"]) == (404, code)


async def test_a_pointer_alone_gives_no_right_to_the_content(
    client: httpx2.AsyncClient, database: Database, ada: Headers, commit: str
) -> None:
    other = await a_repo(client, ada, "ada/other")
    await put(database, other, {"stolen.bin": pointer(LARGE)})

    response = await client.get("/ada/other/resolve/main/stolen.bin")

    assert response.status_code == 404
    assert response.json() == {
        "error": "The content of stolen.bin is not here: its pointer was pushed without it, "
        "or it was deleted for good."
    }
    # With a code the client would remember that there is no such file.
    assert "x-error-code" not in response.headers


async def test_a_private_repository_is_downloaded_by_its_members_only(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/secret", visibility="private")
    await put(database, repo_id, {"a.txt": b"secret"})
    bob = await sign_in(database, "bob")

    found = [
        await client.get("/ada/secret/resolve/main/a.txt", headers=headers)
        for headers in (ada, bob, {}, {"Authorization": "Bearer hf_wrong"})
    ]

    assert [response.status_code for response in found] == [200, 404, 404, 401]
    assert found[0].content == b"secret"


async def test_an_old_name_leads_to_the_new_one(
    client: httpx2.AsyncClient, ada: Headers, commit: str
) -> None:
    moved = {"fromRepo": "ada/engine", "toRepo": "ada/motor", "type": "model"}
    assert (await client.post("/api/repos/move", headers=ada, json=moved)).status_code == 200

    response = await client.get("/ada/engine/resolve/main/d%2Fsmall.txt?download=true")

    assert (response.status_code, response.headers["location"]) == (
        307,
        "/ada/motor/resolve/main/d%2Fsmall.txt?download=true",
    )


async def test_one_caller_counts_once_for_all_files(
    app: FastAPI, client: httpx2.AsyncClient, database: Database, ada: Headers, commit: str
) -> None:
    bob = await sign_in(database, "bob")
    await client.head(f"{RESOLVE}/model.bin")
    await client.get(f"{RESOLVE}/model.bin", headers={"range": "bytes=5-"})
    await client.get(f"{RESOLVE}/model.bin", headers={"if-none-match": "*"})
    assert await downloads(app, database) == 0

    for headers in (ada, ada, bob, {}):
        await client.get(f"{RESOLVE}/model.bin", headers=headers)
        await client.get(f"{RESOLVE}/d/small.txt", headers=headers | {"range": "bytes=0-3"})

    assert await downloads(app, database) == 3


async def downloads(app: FastAPI, database: Database) -> int:
    await app.state.downloads.flush()
    async with database.read() as conn:
        count: int = await conn.fetch_value("SELECT downloads FROM repos")
        return count
