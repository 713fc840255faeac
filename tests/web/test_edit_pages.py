"""Files are edited, created, moved and deleted in the browser, as commits or pull requests."""

import httpx2
import pytest
from pygit2.enums import FileMode

from hublet.accounts.records import Role
from hublet.core.database import Database
from hublet.events import RepoContentUpdated
from hublet.repos.git import bare_repos
from hublet.repos.git.trees import get_commit
from login.login_pages import a_person, log_in, notices_in
from outbox_events import published_events
from people import Headers, an_organization, sign_in
from repos.content import pointer, put, put_blob
from repositories import a_ref, a_repo
from web.edit_forms import open_form, read_all, send
from web.file_pages import a_repo_with, get_page, read_page
from web.parsed_pages import HTML

FILES = {"README.md": b"# Engine\n", "src/train.py": b"step = 1\n"}
EDIT = "/ada/engine/edit/main/src/train.py"
NEW = "/ada/engine/new/main"
DELETE = "/ada/engine/delete/main/src/train.py"


@pytest.fixture
async def ada(client: httpx2.AsyncClient, database: Database) -> Headers:
    """Ada, signed in with a browser."""
    await a_person(database, "ada")
    await log_in(client, "ada")
    return await sign_in(database, "ada")


@pytest.fixture
async def repo_id(client: httpx2.AsyncClient, database: Database, ada: Headers) -> str:
    return (await a_repo_with(client, database, ada, FILES))[0]


async def as_reader(client: httpx2.AsyncClient, database: Database, name: str = "charles") -> None:
    await a_person(database, name)
    client.cookies.clear()
    await log_in(client, name)


async def last_commit(client: httpx2.AsyncClient, headers: Headers) -> dict[str, object]:
    found = (await client.get("/api/models/ada/engine/commits/main", headers=headers)).json()
    commit: dict[str, object] = found[0]
    return commit


async def test_a_changed_text_becomes_a_commit_and_an_event(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    before = await published_events(database, RepoContentUpdated)

    response = await send(
        client,
        EDIT,
        {"text": "step = 2\r\n", "title": "Longer", "description": "One more\r\nstep."},
    )

    assert response.status_code == 303, response.text
    assert response.headers["location"] == "/ada/engine/blob/main/src/train.py"
    assert (await read_all(database, repo_id))["src/train.py"] == b"step = 2\n"
    commit = await last_commit(client, ada)
    assert (commit["title"], commit["message"]) == ("Longer", "One more\nstep.")
    [author] = commit["authors"]  # type: ignore[misc]
    assert author["user"] == "ada"
    assert len(await published_events(database, RepoContentUpdated)) == len(before) + 1
    page = await get_page(client, response.headers["location"])
    assert f"Commit {str(commit['id'])[:7]} is in main." in page.text


@pytest.mark.usefixtures("repo_id")
async def test_the_form_has_the_text_as_it_is_and_a_blank_title_gets_one(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    page = await client.get(EDIT, headers=HTML)

    assert '<textarea id="text"' in page.text
    assert ">\nstep = 1\n</textarea>" in page.text
    await send(client, EDIT, {"text": "step = 2\n"})
    assert (await last_commit(client, ada))["title"] == "Update src/train.py"


@pytest.mark.parametrize("kind", ["dataset", "space", "kernel"])
async def test_every_kind_with_git_is_edited(
    client: httpx2.AsyncClient, database: Database, ada: Headers, kind: str
) -> None:
    repo_id, _ = await a_repo_with(client, database, ada, FILES, type=kind)

    response = await send(client, f"/{kind}s{EDIT}", {"text": "step = 3"})

    assert response.headers["location"] == f"/{kind}s/ada/engine/blob/main/src/train.py"
    assert (await read_all(database, repo_id))["src/train.py"] == b"step = 3"


@pytest.mark.parametrize(
    ("stored", "typed", "expected"),
    [
        pytest.param(b"a\r\nb\r\n", "a\r\nx\r\n", b"a\r\nx\r\n", id="CR LF"),
        pytest.param(b"a\nb", "a\r\nx", b"a\nx", id="no end of the last line"),
        pytest.param(b"a\n", "a\r\n\r\nb", b"a\n\nb", id="an end was taken away"),
        pytest.param(b"\n\na\n", "\r\n\r\nb\r\n", b"\n\nb\n", id="blank lines first"),
        pytest.param(b"\xef\xbb\xbfa\n", "\ufeffb\r\n", b"\xef\xbb\xbfb\n", id="byte order mark"),
    ],
)
async def test_the_line_ends_stay_those_of_the_file(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    stored: bytes,
    typed: str,
    expected: bytes,
) -> None:
    repo_id, _ = await a_repo_with(client, database, ada, {"a.txt": stored})

    await send(client, "/ada/engine/edit/main/a.txt", {"text": typed})

    assert (await read_all(database, repo_id))["a.txt"] == expected


@pytest.mark.usefixtures("repo_id")
async def test_nothing_changed_is_no_commit(client: httpx2.AsyncClient) -> None:
    for way in ("commit", "propose"):
        response = await send(client, EDIT, {"text": "step = 1\r\n", "way": way})

        assert response.status_code == 422
        assert notices_in(response) == ["Nothing was changed: neither the text nor the path."]


async def test_another_path_moves_the_file(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    response = await send(client, EDIT, {"text": "step = 1\r\n", "path": "lib/run.py"})

    assert response.headers["location"] == "/ada/engine/blob/main/lib/run.py"
    files = await read_all(database, repo_id)
    assert files["lib/run.py"] == b"step = 1\n"
    assert "src/train.py" not in files
    assert (await last_commit(client, ada))["title"] == "Rename src/train.py to lib/run.py"


async def test_a_program_stays_executable_under_another_path(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    folder = bare_repos.folder_of(database.hub.settings.database.data_dir, repo_id)
    repository = bare_repos.open_repository(folder)
    async with database.read() as conn:
        head = await conn.fetch_value("SELECT sha FROM repo_refs WHERE repo_id = $1", repo_id)
    builder = repository.TreeBuilder()
    builder.insert("run", repository.create_blob(b"echo one\n"), FileMode.BLOB_EXECUTABLE)
    who = get_commit(repository, head).author
    commit = repository.create_commit(None, who, who, "m", builder.write(), [head])
    async with database.transaction() as conn:
        await conn.execute("UPDATE repo_refs SET sha = $1", str(commit))

    page = "/ada/engine/edit/main/run"
    await send(client, page, {"text": "echo two\n", "path": "start"})

    async with database.read() as conn:
        head = await conn.fetch_value("SELECT sha FROM repo_refs WHERE repo_id = $1", repo_id)
    items = {item.name: item.filemode for item in get_commit(repository, head).tree}
    assert items == {"start": FileMode.BLOB_EXECUTABLE}


async def test_a_file_moves_into_a_folder_of_its_own_name(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    response = await send(client, EDIT, {"text": "step = 1\r\n", "path": "src/train.py/main.py"})

    assert response.status_code == 303, response.text
    assert (await read_all(database, repo_id))["src/train.py/main.py"] == b"step = 1\n"


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        pytest.param("", "The path must not be empty.", id="empty"),
        pytest.param("../x", "none of its parts is '.' or '..'", id="a folder above"),
        pytest.param("a/../x", "none of its parts is '.' or '..'", id="a folder above, within"),
        pytest.param(".git/config", "git's own folder", id="git's folder"),
        pytest.param("a/.GIT/x", "git's own folder", id="git's folder in capitals"),
        pytest.param("/etc/passwd", "neither begins nor ends with '/'", id="from the root"),
        pytest.param("a\\b", "no backslash", id="a backslash"),
        pytest.param("a\x1b", "no control characters", id="a control character"),
        pytest.param("README.md", "there is a file of this name already", id="a file"),
        pytest.param("src", "there is a folder of this name already", id="a folder"),
        pytest.param("README.md/x", "README.md is a file", id="through a file"),
    ],
)
async def test_paths_keep_the_rules_of_commits(
    client: httpx2.AsyncClient, database: Database, repo_id: str, path: str, sentence: str
) -> None:
    before = await read_all(database, repo_id)
    for page in (EDIT, NEW):
        response = await send(client, page, {"path": path, "text": "typed here", "title": "Why"})

        assert response.status_code == 422, (page, response.status_code)
        assert sentence in notices_in(response)[0]
        shown = read_page(response).root
        assert shown.one("textarea", name="text").text == "typed here"
        assert shown.one("input", name="title").attributes["value"] == "Why"
    assert await read_all(database, repo_id) == before


async def test_who_committed_meanwhile_is_named_and_what_was_typed_is_kept(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    page = await open_form(client, EDIT)
    await put(database, repo_id, FILES | {"src/train.py": b"step = 9\n"}, message="Nine steps")

    response = await send(client, page, {"text": "step = 2\r\n", "title": "Two"})

    assert response.status_code == 409
    shown = read_page(response)
    [notice] = [each.text for each in shown.root.all("p", class_="notice")]
    assert "src/train.py: it was changed since the page was opened." in notice
    assert "Nine steps" in notice
    assert shown.links["See the newer version"] == "/ada/engine/blob/main/src/train.py"
    assert shown.root.one("textarea", name="text").text == "step = 2"
    assert (await read_all(database, repo_id))["src/train.py"] == b"step = 9\n"
    # Who has read that may go on.
    again = await send(client, shown.root, {"path": "src/train.py", "text": "step = 2\r\n"})
    assert again.status_code == 303, again.text
    assert (await read_all(database, repo_id))["src/train.py"] == b"step = 2\n"


async def test_a_file_that_was_deleted_meanwhile_is_created_anew(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    page = await open_form(client, EDIT)
    await put(database, repo_id, {"README.md": b"# Engine\n"})

    response = await send(client, page, {"path": "src/train.py", "text": "step = 2\r\n"})

    assert response.status_code == 409
    shown = read_page(response)
    assert "it was deleted since the page was opened" in shown.text
    again = await send(client, shown.root, {"path": "src/train.py", "text": "step = 2\r\n"})
    assert again.status_code == 303, again.text
    assert (await read_all(database, repo_id))["src/train.py"] == b"step = 2\n"


async def test_a_commit_of_other_files_meanwhile_is_no_conflict(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    page = await open_form(client, EDIT)
    await put(database, repo_id, FILES | {"other.txt": b"new"})

    fields = {"path": "src/train.py", "text": "step = 2\r\n"}
    response = await send(client, page, fields)

    assert response.status_code == 303, response.text
    files = await read_all(database, repo_id)
    assert (files["src/train.py"], files["other.txt"]) == (b"step = 2\n", b"new")
    # The same form sent twice is one commit.
    repeated = await send(client, page, fields)
    assert repeated.status_code == 303, repeated.text


async def test_a_reader_proposes_a_pull_request(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    await as_reader(client, database)
    page = await open_form(client, EDIT)
    assert "You cannot write here, so this becomes a pull request" in page.text

    response = await send(
        client, page, {"path": "src/train.py", "text": "step = 2\r\n", "title": "Two"}
    )

    assert response.status_code == 303, response.text
    assert response.headers["location"] == "/ada/engine/discussions/1"
    assert "Pull request #1 is open." in (await get_page(client, "/ada/engine/discussions/1")).text
    assert (await read_all(database, repo_id))["src/train.py"] == b"step = 1\n"
    proposed = await read_all(database, repo_id, "refs/pr/1")
    assert proposed["src/train.py"] == b"step = 2\n"
    thread = (await client.get("/api/models/ada/engine/discussions/1", headers=ada)).json()
    assert (thread["title"], thread["author"]["name"]) == ("Two", "charles")


async def test_a_reader_cannot_commit_even_with_a_form_of_their_own(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    await as_reader(client, database)
    for page in (EDIT, NEW, "/ada/engine/upload/main"):
        fields = {"path": "x", "text": "changed", "way": "commit"}

        response = await send(client, page, fields, files=[("y", b"y")])

        assert response.status_code == 403, page
        assert "you have no write access to it" in notices_in(response)[0]
    form = await open_form(client, DELETE)
    assert (await send(client, form, {"way": "commit"})).status_code == 403
    assert await read_all(database, repo_id) == FILES


async def test_a_writer_may_propose_as_well(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    response = await send(client, NEW, {"path": "a.txt", "text": "a", "way": "propose"})

    assert response.headers["location"] == "/ada/engine/discussions/1"
    assert "a.txt" in await read_all(database, repo_id, "refs/pr/1")
    assert "a.txt" not in await read_all(database, repo_id)


async def test_the_author_goes_on_in_their_pull_request(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    await as_reader(client, database)
    await send(client, NEW, {"path": "a.txt", "text": "a"})

    response = await send(client, "/ada/engine/edit/refs/pr/1/a.txt", {"text": "b"})

    assert response.status_code == 303, response.text
    assert (await read_all(database, repo_id, "refs/pr/1"))["a.txt"] == b"b"
    await as_reader(client, database, "grace")
    assert (await client.get("/ada/engine/edit/refs/pr/1/a.txt", headers=HTML)).status_code == 403


async def test_tags_and_commits_are_not_changed(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    commit = await put(database, repo_id, FILES)
    await a_ref(database, repo_id, "refs/tags/v1", commit)
    for name in ("v1", commit):
        page = await get_page(client, f"/ada/engine/blob/{name}/README.md")
        assert "Edit" not in page.links
        response = await client.get(f"/ada/engine/edit/{name}/README.md", headers=HTML)
        assert response.status_code == 400
        assert "only branches can be changed" in response.text


async def test_a_visitor_is_sent_to_the_login_and_a_stranger_sees_nothing(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    client.cookies.clear()
    for page in (EDIT, NEW, DELETE, "/ada/engine/upload/main"):
        response = await client.get(page, headers=HTML)
        assert (response.status_code, response.headers["location"].partition("?")[0]) == (
            303,
            "/login",
        )
    assert "Edit" not in (await get_page(client, "/ada/engine/blob/main/README.md")).links

    await client.put("/api/models/ada/engine/settings", headers=ada, json={"private": True})
    await as_reader(client, database)
    for page in (EDIT, NEW, DELETE, "/ada/engine/upload/main"):
        private = await client.get(page, headers=HTML)
        absent = await client.get(page.replace("engine", "nothing"), headers=HTML)
        assert private.status_code == absent.status_code == 404
        assert "engine" not in private.text.replace(page, "")


async def test_the_gate_and_closed_discussions_count(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    settings = "/api/models/ada/engine/settings"
    await client.put(settings, headers=ada, json={"gated": "manual"})
    await as_reader(client, database)
    assert (await client.get(EDIT, headers=HTML)).status_code == 403

    await client.put(settings, headers=ada, json={"gated": False, "discussionsDisabled": True})
    assert (await client.get(EDIT, headers=HTML)).status_code == 403
    assert "New file" not in (await get_page(client, "/ada/engine/tree/main")).links


async def test_members_of_an_organization_write_by_their_role(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_person(database, "charles")
    await an_organization(database, "lab", members={"ada": Role.admin, "charles": Role.read})
    await a_repo_with(client, database, ada, FILES, name="lab/engine")
    page = await open_form(client, "/lab/engine/edit/main/README.md")
    assert page.all("input", type="radio", value="commit")

    await as_reader(client, database)
    page = await open_form(client, "/lab/engine/edit/main/README.md")
    assert not page.all("input", type="radio")


@pytest.mark.usefixtures("repo_id")
@pytest.mark.parametrize("token", ["", "00ff", "ab" * 64])
async def test_a_form_without_its_token_is_refused(
    client: httpx2.AsyncClient, database: Database, token: str
) -> None:
    for page in (EDIT, NEW, "/ada/engine/upload/main"):
        fields = {"form_token": token, "path": "x", "text": "y"}
        response = await send(client, page, fields, files=[("y", b"y")])
        assert response.status_code == 403, page
    response = await send(client, DELETE, {"form_token": token})
    assert response.status_code == 403


async def test_a_form_of_another_site_is_refused(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    origin = {"Origin": "https://elsewhere.example"}

    response = await send(client, NEW, {"path": "x", "text": "y"}, **origin)

    assert response.status_code == 403
    assert await read_all(database, repo_id) == FILES


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        pytest.param(b"\0\1", "This file is no text in UTF-8.", id="binary"),
        pytest.param(b"caf\xe9", "This file is no text in UTF-8.", id="another encoding"),
        pytest.param(b"a" * (2**20 + 1), "more than 1 MB", id="long"),
    ],
)
async def test_what_is_no_short_text_is_uploaded_anew(
    client: httpx2.AsyncClient, database: Database, ada: Headers, content: bytes, sentence: str
) -> None:
    await a_repo_with(client, database, ada, {"data/a.bin": content})

    page = await get_page(client, "/ada/engine/edit/main/data/a.bin")

    assert sentence in page.text
    assert page.links["Upload a new version"] == "/ada/engine/upload/main/data"
    assert not page.root.all("textarea")


async def test_a_long_text_is_taken_and_a_longer_one_refused(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    # More bytes than any other form may have.
    text = "ä\n" * 349_000
    response = await send(client, NEW, {"path": "a.txt", "text": text})
    assert response.status_code == 303, response.text[:2000]
    assert (await read_all(database, repo_id))["a.txt"].decode() == text

    response = await send(client, NEW, {"path": "b.txt", "text": "a" * (2**20 + 1)})
    assert response.status_code == 413
    assert "at most 1 MB" in notices_in(response)[0]


async def test_a_text_in_lfs_stays_there(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/engine")
    await put_blob(database, repo_id, b"a,b\n")
    attributes = b"*.csv filter=lfs diff=lfs merge=lfs -text\n"
    files = {".gitattributes": attributes, "a.csv": pointer(b"a,b\n")}
    await put(database, repo_id, files)
    page = await open_form(client, "/ada/engine/edit/main/a.csv")
    assert page.one("textarea", name="text").text == "a,b"

    response = await send(client, page, {"path": "a.csv", "text": "a,b\r\n1,2\r\n"})

    assert response.status_code == 303, response.text
    stored = (await read_all(database, repo_id))["a.csv"]
    assert stored.startswith(b"version https://git-lfs.github.com/spec/v1\n")
    content = await client.get("/ada/engine/resolve/main/a.csv", headers=ada)
    assert content.content == b"a,b\n1,2\n"


@pytest.mark.usefixtures("repo_id")
async def test_markdown_has_a_preview_in_its_place(client: httpx2.AsyncClient) -> None:
    path = "/ada/engine/edit/main/README.md"
    fields = {
        "path": "README.md",
        "text": "# New\r\n\r\n[code](src/train.py)<script>x</script>",
        "preview": "1",
    }

    whole = await send(client, path, fields)
    alone = await send(client, path, fields, Fragment="preview")

    for response in (whole, alone):
        assert response.status_code == 200
        page = read_page(response)
        drawn = page.root.one("div", id="preview")
        assert "New" in drawn.text
        assert page.links["code"] == "/ada/engine/blob/main/src/train.py"
        assert not drawn.all("script")
    assert read_page(whole).root.one("textarea", name="text").text.startswith("# New")
    assert "<html" not in alone.text
    assert not (await open_form(client, EDIT)).all("button", name="preview")


@pytest.mark.usefixtures("repo_id")
async def test_metadata_that_is_wrong_is_shown_with_the_text(client: httpx2.AsyncClient) -> None:
    text = "---\r\nlicense: [\r\n---\r\n# Engine"

    response = await send(client, "/ada/engine/edit/main/README.md", {"text": text})

    assert response.status_code == 422
    assert "The metadata in README.md is not valid" in notices_in(response)[0]
    assert "license: [" in read_page(response).root.one("textarea", name="text").text


async def test_a_new_file_is_created_in_a_folder_and_on_a_branch(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    await a_ref(database, repo_id, "refs/heads/feat/x", await put(database, repo_id, FILES))
    page = await open_form(client, "/ada/engine/new/feat%2Fx/src?path=a%20b.txt")
    assert page.one("input", name="path").attributes["value"] == "src/a b.txt"

    response = await send(client, page, {"path": "src/a b.txt", "text": "1\r\n2"})

    assert response.headers["location"] == "/ada/engine/blob/feat%2Fx/src/a%20b.txt"
    assert (await read_all(database, repo_id, "refs/heads/feat/x"))["src/a b.txt"] == b"1\n2"
    assert "src/a b.txt" not in await read_all(database, repo_id)


async def test_a_file_is_deleted_after_a_question(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    page = await open_form(client, DELETE)
    assert "is deleted. Earlier commits still have it." in page.text

    response = await send(client, page)

    # Its folder is gone with it.
    assert response.headers["location"] == "/ada/engine/tree/main"
    assert list(await read_all(database, repo_id)) == ["README.md"]
    assert (await last_commit(client, ada))["title"] == "Delete src/train.py"


async def test_a_folder_is_deleted_with_everything_in_it(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    await put(database, repo_id, FILES | {"src/deep/a": b"a"})
    page = await open_form(client, "/ada/engine/delete/main/src")
    assert "with everything in it" in page.text

    await send(client, page)

    assert list(await read_all(database, repo_id)) == ["README.md"]


async def test_what_changed_since_the_question_is_not_deleted(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    page = await open_form(client, DELETE)
    await put(database, repo_id, FILES | {"src/train.py": b"step = 9\n"})

    response = await send(client, page)

    assert response.status_code == 409
    assert notices_in(response) == ["src/train.py: it was changed since the page was opened."]
    assert (await read_all(database, repo_id))["src/train.py"] == b"step = 9\n"
    again = await send(client, read_page(response).root)
    assert again.status_code == 303
    gone = await send(client, page)
    assert gone.status_code == 409
    assert notices_in(gone) == ["src/train.py: it was deleted since the page was opened."]
    assert (await client.get(DELETE, headers=HTML)).status_code == 404


@pytest.mark.usefixtures("repo_id")
async def test_pages_of_files_lead_to_the_forms(client: httpx2.AsyncClient) -> None:
    tree = await get_page(client, "/ada/engine/tree/main/src")
    assert tree.links["New file"] == "/ada/engine/new/main/src"
    assert tree.links["Upload files"] == "/ada/engine/upload/main/src"
    for path in ("README.md", "src/train.py"):
        page = await get_page(client, f"/ada/engine/blob/main/{path}")
        assert page.links["Edit"] == f"/ada/engine/edit/main/{path}"
        assert page.root.all("a", href=f"/ada/engine/delete/main/{path}")


async def test_an_empty_repository_offers_to_create_its_readme(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/empty")
    for path in ("/ada/empty", "/ada/empty/tree/main"):
        page = await get_page(client, path)
        address = page.links["Create a README"]
        assert address == "/ada/empty/new/main?path=README.md"
    form = await open_form(client, address)
    response = await send(client, form, {"path": "README.md", "text": "# Hello"})
    assert response.status_code == 303
    assert "Hello" in (await get_page(client, "/ada/empty")).text
