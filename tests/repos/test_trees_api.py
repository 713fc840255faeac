"""Files and folders of a revision, page by page."""

from typing import Any

import httpx2
import pytest

from hublet.core.database import Database
from hublet.core.paging import write_cursor
from people import Headers, an_organization, sign_in
from repos.content import pointer, put, put_blob, sha256
from repos.git_objects import git_sha1
from repositories import a_repo

PATH = "/api/models/ada/engine/tree"
LARGE = b"large " * 1000
FILES = {"README.md": b"# Engine\n", "src/a.py": b"a = 1\n", "src/deep/b.py": b"", "z.txt": b"z"}


@pytest.fixture
async def repo_id(client: httpx2.AsyncClient, ada: Headers) -> str:
    return await a_repo(client, ada, "ada/engine")


def paths(response: httpx2.Response) -> list[str]:
    assert response.status_code == 200, response.text
    return [entry["path"] for entry in response.json()]


async def all_pages(client: httpx2.AsyncClient, url: str) -> list[list[str]]:
    pages = []
    while url:
        response = await client.get(url)
        pages.append(paths(response))
        url = response.links.get("next", {}).get("url", "")
    return pages


async def test_the_top_of_a_revision_has_files_and_folders(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    await put(database, repo_id, FILES | {"model.bin": pointer(LARGE)})

    response = await client.get(f"{PATH}/main")

    entries = response.json()
    assert entries == [
        {"type": "file", "oid": git_sha1(b"# Engine\n"), "size": 9, "path": "README.md"},
        {
            "type": "file",
            "oid": git_sha1(pointer(LARGE)),
            "size": 6000,
            "path": "model.bin",
            "lfs": {"oid": sha256(LARGE), "size": 6000, "pointerSize": 129},
        },
        {"type": "directory", "oid": entries[2]["oid"], "size": 0, "path": "src"},
        {"type": "file", "oid": git_sha1(b"z"), "size": 1, "path": "z.txt"},
    ]
    assert "link" not in response.headers


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        pytest.param("main/src", ["src/a.py", "src/deep"], id="a folder"),
        pytest.param("main/src/", ["src/a.py", "src/deep"], id="a folder with a slash behind"),
        pytest.param("main/src%2Fdeep", ["src/deep/b.py"], id="a folder with an encoded slash"),
        pytest.param("main/src/deep", ["src/deep/b.py"], id="a folder with a plain slash"),
        pytest.param("feat%2Fx/src", ["src/new.py"], id="a branch with a slash"),
        pytest.param("refs%2Fpr%2F1", ["pr.txt"], id="a pull request"),
        pytest.param("refs/pr/1", ["pr.txt"], id="a pull request with plain slashes"),
        pytest.param("refs%2Fheads%2Ffeat%2Fx", ["src"], id="a whole ref"),
        pytest.param("v1", ["tagged.txt"], id="a tag"),
    ],
)
async def test_revision_and_path_are_told_apart(
    client: httpx2.AsyncClient,
    database: Database,
    repo_id: str,
    address: str,
    expected: list[str],
) -> None:
    await put(database, repo_id, FILES)
    await put(database, repo_id, {"src/new.py": b""}, ref="refs/heads/feat/x")
    await put(database, repo_id, {"pr.txt": b""}, ref="refs/pr/1")
    await put(database, repo_id, {"tagged.txt": b""}, ref="refs/tags/v1")

    assert paths(await client.get(f"{PATH}/{address}")) == expected


async def test_a_recursive_list_has_everything(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    sha = await put(database, repo_id, FILES)

    everything = ["README.md", "src", "src/a.py", "src/deep", "src/deep/b.py", "z.txt"]
    assert paths(await client.get(f"{PATH}/{sha}?recursive=true")) == everything
    assert paths(await client.get(f"{PATH}/main/src?recursive=true")) == everything[2:5]


async def test_pages_follow_each_other_without_gaps(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    files = {f"ö ü/{number:04}\u00a0.txt": b"" for number in range(5)}
    await put(database, repo_id, files)

    pages = await all_pages(client, f"{PATH}/main?recursive=true&limit=2")

    assert pages == [["ö ü", *list(files)[:1]], list(files)[1:3], list(files)[3:]]


async def test_the_link_keeps_every_filter_and_is_absolute(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    await put(database, repo_id, FILES, ref="refs/heads/feat/x")

    response = await client.get(f"{PATH}/feat%2Fx/src?recursive=true&expand=false&limit=1")

    url = response.links["next"]["url"]
    assert url.startswith(
        "http://hub.test/api/models/ada/engine/tree/feat%2Fx/src?recursive=true&expand=false&limit=1&cursor="
    )


async def test_later_pages_show_the_commit_of_the_first(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    await put(database, repo_id, {"a": b"", "b": b"", "c": b""})
    first = await client.get(f"{PATH}/main?limit=1")
    await put(database, repo_id, {"x": b""})

    rest = await client.get(first.links["next"]["url"])

    assert paths(rest) == ["b"]


async def test_a_page_has_a_thousand_entries_or_fifty_expanded_ones(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    await put(database, repo_id, {f"{number:04}": b"" for number in range(1001)})

    assert len(paths(await client.get(f"{PATH}/main"))) == 1000
    assert len(paths(await client.get(f"{PATH}/main?expand=true"))) == 50
    too_many = await client.get(f"{PATH}/main?limit=1001")
    assert (too_many.status_code, too_many.json()) == (
        400,
        {"error": "limit must be at most 1000."},
    )


@pytest.mark.parametrize(
    "position",
    [
        pytest.param("x", id="no commit"),
        pytest.param("main:a", id="a branch in place of a commit"),
    ],
)
async def test_a_cursor_of_our_own_form_is_needed(
    client: httpx2.AsyncClient, repo_id: str, position: str
) -> None:
    response = await client.get(f"{PATH}/main?cursor={write_cursor(position)}")

    assert response.status_code == 400
    assert response.json()["error"].startswith("cursor must be taken from the Link header")


async def test_expanding_tells_the_last_commit_of_each(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    first = await put(database, repo_id, {"a": b"1", "d/b": b"1"}, at=100, message="One.\n\nMore.")
    second = await put(database, repo_id, {"a": b"1", "d/b": b"2"}, at=200, message="Two.")

    entries = (await client.get(f"{PATH}/main?expand=true")).json()

    assert [entry["lastCommit"] for entry in entries] == [
        {"id": first, "title": "One.", "date": "1970-01-01T00:01:40.000Z"},
        {"id": second, "title": "Two.", "date": "1970-01-01T00:03:20.000Z"},
    ]
    unscanned = {"status": "unscanned", "avScan": None, "pickleImportScan": None}
    assert [entry.get("securityFileStatus") for entry in entries] == [unscanned, None]


@pytest.mark.parametrize(
    ("address", "code", "sentence"),
    [
        pytest.param(
            "nowhere",
            "RevisionNotFound",
            "Invalid rev id: there is no revision nowhere in this repository.",
            id="an unknown branch",
        ),
        pytest.param(
            "0" * 40,
            "RevisionNotFound",
            f"Invalid rev id: there is no revision {'0' * 40} in this repository.",
            id="an unknown commit",
        ),
        pytest.param(
            "main/nothing",
            "EntryNotFound",
            "There is no file or folder nothing in this revision.",
            id="an unknown folder",
        ),
        pytest.param(
            "main/z.txt",
            "EntryNotFound",
            "There is no file or folder z.txt in this revision.",
            id="a file in place of a folder",
        ),
    ],
)
async def test_what_is_not_there_is_told_by_its_code(
    client: httpx2.AsyncClient,
    database: Database,
    repo_id: str,
    address: str,
    code: str,
    sentence: str,
) -> None:
    await put(database, repo_id, FILES)

    response = await client.get(f"{PATH}/{address}")

    assert (response.status_code, response.json()) == (404, {"error": sentence})
    assert response.headers["x-error-code"] == code


async def test_a_private_repository_shows_its_tree_to_members_only(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/secret", visibility="private")
    bob = await sign_in(database, "bob")

    found = [
        await client.get("/api/models/ada/secret/tree/main", headers=headers)
        for headers in (ada, bob, {})
    ]

    assert [response.status_code for response in found] == [200, 404, 404]
    assert {response.headers["x-error-code"] for response in found[1:]} == {"RepoNotFound"}


async def test_the_names_in_a_gated_repository_are_open_and_its_content_is_not(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    await put(database, repo_id, FILES)
    await client.put("/api/models/ada/engine/settings", headers=ada, json={"gated": "manual"})

    tree = await client.get(f"{PATH}/main")
    file = await client.get("/ada/engine/resolve/main/README.md")
    own = await client.get("/ada/engine/resolve/main/README.md", headers=ada)

    assert len(paths(tree)) == 3
    assert (file.status_code, file.headers["x-error-code"]) == (403, "GatedRepo")
    assert (own.status_code, own.content) == (200, b"# Engine\n")


@pytest.mark.parametrize("kind", ["datasets", "spaces", "kernels"])
async def test_every_type_with_git_has_a_tree(
    client: httpx2.AsyncClient, database: Database, ada: Headers, kind: str
) -> None:
    await an_organization(database, "acme")
    repo_id = await a_repo(client, ada, "ada/engine", type=kind.removesuffix("s"))
    await put(database, repo_id, {"a.txt": b"a"})

    assert paths(await client.get(f"/api/{kind}/ada/engine/tree/main")) == ["a.txt"]
    download = await client.get(f"/{kind}/ada/engine/resolve/main/a.txt")
    assert (download.status_code, download.content) == (200, b"a")


async def test_the_size_of_a_folder_is_that_of_its_files(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    await put_blob(database, repo_id, LARGE)
    await put(database, repo_id, FILES | {"src/model.bin": pointer(LARGE)})

    async def size(address: str) -> Any:
        return (await client.get(f"/api/models/ada/engine/treesize/{address}")).json()

    assert await size("main") == {"path": "", "size": 6016}
    assert await size("main/src") == {"path": "src", "size": 6006}
