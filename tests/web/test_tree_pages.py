"""Pages of folders: rows, last commits, menus, README, large and new folders."""

from urllib.parse import quote, unquote

import httpx2
import pytest

from hublet.core.database import Database
from login.login_pages import a_person, log_in
from people import Headers, sign_in
from repos.content import pointer, put, put_blob
from repositories import a_ref, a_repo
from web.file_pages import a_repo_with, get_page, read_page
from web.parsed_pages import HTML

FILES = {
    "README.md": b"---\nlicense: mit\n---\n# Engine\n\n![plot](plot.png) and [code](src/a.py)",
    "src/a.py": b"print(1)\n",
    "src/deep/b.txt": b"b",
    "z.bin": b"\0\1",
}


async def test_a_folder_lists_folders_first_with_sizes_and_links(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo_with(client, database, ada, FILES)

    page = await get_page(client, "/ada/engine/tree/main")

    names = [text for text in page.texts if text in {"src", "README.md", "z.bin"}]
    assert names[:3] == ["src", "README.md", "z.bin"]
    assert page.links["src"] == "/ada/engine/tree/main/src"
    assert page.links["z.bin"] == "/ada/engine/blob/main/z.bin"
    assert "2 B" in page.texts
    assert page.root.all("a", href="/ada/engine/resolve/main/z.bin?download=true")


@pytest.mark.parametrize("kind", ["dataset", "space", "kernel"])
async def test_every_kind_with_git_has_folders(
    client: httpx2.AsyncClient, database: Database, ada: Headers, kind: str
) -> None:
    await a_repo_with(client, database, ada, FILES, type=kind)

    page = await get_page(client, f"/{kind}s/ada/engine/tree/main/src")

    assert page.links["a.py"] == f"/{kind}s/ada/engine/blob/main/src/a.py"
    assert page.links[".. folder above"] == f"/{kind}s/ada/engine/tree/main"


async def test_the_readme_of_a_folder_is_drawn_below_its_rows(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo_with(client, database, ada, FILES)

    page = await get_page(client, "/ada/engine/tree/main")

    assert page.root.all("img", src="/ada/engine/resolve/main/plot.png")
    assert page.links["code"] == "/ada/engine/blob/main/src/a.py"
    assert "license" not in page.text


async def test_last_commits_come_when_asked_for_and_then_at_once(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id, _ = await a_repo_with(client, database, ada, FILES)
    commit = await put(database, repo_id, FILES | {"z.bin": b"new"}, message="Louder.", at=10**9)

    cold = await get_page(client, "/ada/engine/tree/main")
    fragment = await client.get("/ada/engine/tree/main", headers=HTML | {"Fragment": "rows"})
    warm = await get_page(client, "/ada/engine/tree/main")

    assert cold.root.one("table", id="rows").attributes.keys() >= {"data-later"}
    assert cold.links["Show the last commit of each file"] == "?commits=true"
    rows = read_page(fragment)
    assert rows.root.one("table").attributes == {"class": "rows", "id": "rows"}
    assert rows.links["Louder."] == f"/ada/engine/commit/{commit}"
    assert "Add files." in rows.texts
    assert "Add files." in warm.texts
    assert not warm.root.one("table", id="rows").attributes.keys() & {"data-later"}


async def test_last_commits_come_without_script(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo_with(client, database, ada, FILES)

    page = await get_page(client, "/ada/engine/tree/main?commits=true")

    assert page.texts.count("Add files.") == 4


async def test_the_menu_names_branches_and_tags_with_the_same_folder(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id, commit = await a_repo_with(client, database, ada, FILES)
    for ref in ("refs/heads/feat/x", "refs/tags/v1", "refs/pr/7"):
        await a_ref(database, repo_id, ref, commit)

    page = await get_page(client, "/ada/engine/tree/main/src")

    assert page.links["feat/x"] == "/ada/engine/tree/feat%2Fx/src"
    assert page.links["v1"] == "/ada/engine/tree/v1/src"
    assert "refs/pr/7" not in page.text


@pytest.mark.parametrize(
    ("address", "link"),
    [
        pytest.param("feat%2Fx", "feat%2Fx", id="a branch with a slash, encoded"),
        pytest.param("refs/pr/7", "refs/pr/7", id="a pull request, verbatim"),
        pytest.param("refs%2Fpr%2F7", "refs/pr/7", id="a pull request, encoded"),
        pytest.param("{commit}", "{commit}", id="a commit"),
    ],
)
async def test_revisions_are_found_as_clients_write_them(
    client: httpx2.AsyncClient, database: Database, ada: Headers, address: str, link: str
) -> None:
    repo_id, commit = await a_repo_with(client, database, ada, FILES)
    for ref in ("refs/heads/feat/x", "refs/pr/7"):
        await a_ref(database, repo_id, ref, commit)

    page = await get_page(client, f"/ada/engine/tree/{address.format(commit=commit)}/src")

    assert page.links["a.py"] == f"/ada/engine/blob/{link.format(commit=commit)}/src/a.py"


async def test_a_large_folder_comes_page_by_page(
    client: httpx2.AsyncClient, database: Database, ada: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hublet.web.files.folders.ROWS_ON_A_PAGE", 2)
    repo_id, _ = await a_repo_with(client, database, ada, {f"f{n}": b"" for n in range(5)})

    first = await get_page(client, "/ada/engine/tree/main")
    # All pages show the commit that the first one showed.
    await put(database, repo_id, {"other": b""})
    second = await get_page(client, first.links["More files"])
    third = await get_page(client, second.links["More files"])

    assert "f2" in second.links
    assert "f4" in third.links
    assert "More files" not in third.links


async def test_files_outside_of_git_are_marked(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    await put_blob(database, repo_id, b"weights" * 1000)
    await put(database, repo_id, {"w.safetensors": pointer(b"weights" * 1000)})

    page = await get_page(client, "/ada/engine/tree/main")

    assert "LFS" in page.texts
    assert "7 kB" in page.texts


async def test_a_new_repository_says_how_to_fill_it(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine", type="dataset")

    page = await get_page(client, "/datasets/ada/engine/tree/main")

    assert "Nothing here yet" in page.texts
    assert "hf upload ada/engine . --repo-type dataset" in page.text
    assert "git clone http://hub.test/datasets/ada/engine" in page.text
    assert 'repo_type="dataset"' in page.text


async def test_an_address_of_the_other_kind_leads_on(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo_with(client, database, ada, FILES)

    tree = await client.get("/ada/engine/tree/main/src/a.py", headers=HTML)
    bare = await client.get("/ada/engine/tree", headers=HTML)

    assert tree.headers["location"] == "/ada/engine/blob/main/src/a.py"
    assert bare.headers["location"] == "/ada/engine/tree/main"


@pytest.mark.parametrize("path", ["main/nothing", "nothing", "main/..%2F..", "main//src"])
async def test_what_is_not_there_is_not_found(
    client: httpx2.AsyncClient, database: Database, ada: Headers, path: str
) -> None:
    await a_repo_with(client, database, ada, FILES)

    response = await client.get(f"/ada/engine/tree/{path}", headers=HTML)

    assert response.status_code == 404
    assert "text/html" in response.headers["content-type"]


async def test_a_wrong_cursor_is_refused_with_a_sentence(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo_with(client, database, ada, FILES)

    response = await client.get("/ada/engine/tree/main?cursor=nonsense", headers=HTML)

    assert response.status_code == 400
    assert "cursor must be taken" in response.text


HOSTILE_NAMES = [
    "a'b\"c.txt",
    "<script>alert(1)</script>.md",
    "ünïcode ☃.txt",
    "bidi\u202etxt.exe",
    "100%25 %2F done?.txt",
    "c#.cs#L1",
    "new\nline.txt",
    "javascript:alert(1)",
    " lead and trail ",
    "folder <b>/x&amp;y.txt",
]


@pytest.mark.parametrize("name", HOSTILE_NAMES)
async def test_hostile_names_are_text_and_their_links_work(
    client: httpx2.AsyncClient, database: Database, ada: Headers, name: str
) -> None:
    await a_repo_with(client, database, ada, {name: b"inside"})
    folder = name.rpartition("/")[0]

    page = await get_page(client, f"/ada/engine/tree/main/{quote(folder)}")
    [link] = [href for href in page.links.values() if href.startswith("/ada/engine/blob/main/")]
    file = await get_page(client, link)

    assert unquote(link) == f"/ada/engine/blob/main/{name}"
    assert "inside" in file.texts
    assert all("src" in script.attributes for script in page.root.all("script"))


async def test_a_private_repository_looks_absent(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo_with(client, database, ada, FILES, name="ada/secret", private=True)

    hidden = await client.get("/ada/secret/tree/main", headers=HTML)
    absent = await client.get("/ada/absent/tree/main", headers=HTML)
    await a_person(database, "grace")
    await log_in(client, "grace")
    stranger = await client.get("/ada/secret/tree/main", headers=HTML)

    assert {hidden.status_code, absent.status_code, stranger.status_code} == {404}
    assert hidden.text.replace("secret", "") == absent.text.replace("absent", "")
    assert "README" not in stranger.text


async def test_an_owner_sees_a_private_repository(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await a_person(database, "ada")
    await a_repo_with(client, database, await sign_in(database, "ada"), FILES, private=True)
    await log_in(client)

    page = await get_page(client, "/ada/engine/tree/main")

    assert "z.bin" in page.links


async def test_names_of_a_gated_repository_are_open_and_its_readme_is_not(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo_with(client, database, ada, FILES)
    await client.put("/api/models/ada/engine/settings", headers=ada, json={"gated": "manual"})

    page = await get_page(client, "/ada/engine/tree/main")

    assert "z.bin" in page.links
    assert not page.root.all("img", src="/ada/engine/resolve/main/plot.png")


async def test_a_page_that_did_not_change_is_not_sent_again(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id, _ = await a_repo_with(client, database, ada, FILES)
    first = await client.get("/ada/engine/tree/main", headers=HTML)

    again = HTML | {"If-None-Match": first.headers["etag"]}
    same = await client.get("/ada/engine/tree/main", headers=again)
    await put(database, repo_id, FILES | {"new": b""})
    changed = await client.get("/ada/engine/tree/main", headers=again)

    assert (same.status_code, changed.status_code) == (304, 200)
