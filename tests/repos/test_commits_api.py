"""Commits: what they change, and what comes of it."""

import hashlib

import httpx2
import pytest

from hublet.accounts.records import Role
from hublet.core.database import Database
from hublet.events import RepoContentUpdated
from hublet.repos.git import bare_repos, history, trees
from outbox_events import published_events
from people import Headers, an_organization, sign_in
from repos.commits import (
    ARepo,
    a_repo,
    deleted_file,
    deleted_folder,
    file,
    header,
    lfs_file,
    ndjson,
)


@pytest.fixture
async def repo(client: httpx2.AsyncClient, database: Database, ada: Headers) -> ARepo:
    return await a_repo(client, database, ada)


async def test_a_commit_adds_files_and_is_told(
    database: Database, ada: Headers, repo: ARepo
) -> None:
    before = await repo.head()

    response = await repo.send(
        ada,
        ndjson(
            header("Title", description="More."), file("a.txt", "one"), file("deep/er/b.txt", "two")
        ),
    )

    oid = await repo.head()
    assert response.json() == {
        "success": True,
        "commitUrl": f"http://hub.test/ada/engine/commit/{oid}",
        "commitOid": oid,
        "hookOutput": "",
    }
    assert await repo.files() == {"a.txt": b"one", "deep/er/b.txt": b"two"}
    [event] = await published_events(database, RepoContentUpdated)
    assert event["updated_refs"] == [{"ref": "refs/heads/main", "old_sha": before, "new_sha": oid}]
    assert event["repo"]["head_sha"] == oid


async def test_a_commit_says_who_made_it_and_why(
    database: Database, ada: Headers, repo: ARepo
) -> None:
    await repo.send(ada, ndjson(header("Title", description="More."), file("a", "one")))

    folder = bare_repos.folder_of(database.hub.settings.database.data_dir, repo.id)
    [made, first] = history.list_commits(folder, await repo.head())
    assert (made.title, made.message, made.author_name) == ("Title", "More.", "ada")
    assert made.parents == (first.id,)


async def test_files_are_replaced_and_deleted(ada: Headers, repo: ARepo) -> None:
    await repo.commit(ada, file("a", "1"), file("b/c", "2"), file("b/d", "3"), file("e/f/g", "4"))

    await repo.commit(
        ada, file("a", "5"), deleted_file("b/c"), deleted_folder("e"), file("new", "6")
    )

    assert await repo.files() == {"a": b"5", "b/d": b"3", "new": b"6"}


async def test_a_folder_goes_with_its_last_file(
    database: Database, ada: Headers, repo: ARepo
) -> None:
    await repo.commit(ada, file("a/b/c", "1"))

    await repo.commit(ada, deleted_file("a/b/c"))

    folder = bare_repos.folder_of(database.hub.settings.database.data_dir, repo.id)
    left = trees.list_tree(folder, await repo.head(), recursive=True)
    assert [entry.path for entry in left] == [".gitattributes"]


@pytest.mark.parametrize("path", ["b", "b/"])
async def test_a_folder_is_deleted_with_and_without_a_slash(
    ada: Headers, repo: ARepo, path: str
) -> None:
    await repo.commit(ada, file("a", "1"), file("b/c/d", "2"))

    await repo.commit(ada, deleted_folder(path))

    assert await repo.files() == {"a": b"1"}


async def test_a_folder_makes_room_for_what_the_same_commit_adds(ada: Headers, repo: ARepo) -> None:
    await repo.commit(ada, file("a/old", "1"), file("b", "2"))

    await repo.commit(
        ada, file("a/new", "3"), deleted_folder("a"), deleted_file("a/old"), file("b/c", "4"),
        deleted_file("b"),
    )  # fmt: skip

    assert await repo.files() == {"a/new": b"3", "b/c": b"4"}


async def test_a_large_file_lies_beside_git(database: Database, ada: Headers, repo: ARepo) -> None:
    content = b"0123456789abcdef" * 700_000
    digest = hashlib.sha256(content).hexdigest()

    await repo.commit(ada, file("weights.dat", content), file("model.safetensors", content))

    pointer = trees.pointer_to(digest, len(content))
    assert await repo.files() == {"weights.dat": pointer, "model.safetensors": pointer}
    lines = (await repo.attributes()).splitlines()
    # What a pattern covers already needs no line of its own.
    assert lines[-1] == "/weights.dat filter=lfs diff=lfs merge=lfs -text"
    assert not any("model.safetensors" in line for line in lines)
    data_dir = database.hub.settings.database.data_dir
    blob = data_dir / "blobs" / digest[:2] / digest[2:4] / digest
    assert blob.read_bytes() == content
    assert list((data_dir / "blobs" / "incoming").iterdir()) == []
    async with database.read() as conn:
        row = await conn.fetch_one(
            "SELECT sha256, b.size, git_sha1 FROM blobs b JOIN repo_blobs USING (sha256)"
        )
        size = await conn.fetch_value("SELECT size FROM repos")
    assert row is not None
    git_sha1 = hashlib.sha1(b"blob %d\x00" % len(content) + content).hexdigest()
    assert tuple(row) == (digest, len(content), git_sha1)
    assert size >= 2 * len(content)


async def test_a_file_in_lfs_is_copied_by_its_digest(ada: Headers, repo: ARepo) -> None:
    content = b"x" * 11_000_000
    digest = hashlib.sha256(content).hexdigest()
    await repo.commit(ada, file("a.bin", content))

    await repo.commit(ada, lfs_file("b.bin", digest), lfs_file("c.dat", digest, size=len(content)))

    pointer = trees.pointer_to(digest, len(content))
    assert await repo.files() == dict.fromkeys(["a.bin", "b.bin", "c.dat"], pointer)


async def test_attributes_of_the_same_commit_count(ada: Headers, repo: ARepo) -> None:
    large = b"x" * 11_000_000

    await repo.commit(ada, file(".gitattributes", "*.dat filter=lfs"), file("a.dat", large))
    assert await repo.attributes() == "*.dat filter=lfs"

    await repo.commit(ada, file(".gitattributes", "*.txt text"), file("b.dat", large))
    assert await repo.attributes() == ("*.txt text\n/b.dat filter=lfs diff=lfs merge=lfs -text\n")


async def test_attributes_that_are_deleted_count_no_more(ada: Headers, repo: ARepo) -> None:
    await repo.commit(ada, file("a.bin", b"x" * 11_000_000), deleted_file(".gitattributes"))

    assert await repo.attributes() == "/a.bin filter=lfs diff=lfs merge=lfs -text\n"


async def test_a_size_that_is_not_that_of_the_content_is_refused(ada: Headers, repo: ARepo) -> None:
    content = b"x" * 11_000_000
    await repo.commit(ada, file("a.bin", content))
    before = await repo.state()

    response = await repo.send(
        ada, ndjson(header(), lfs_file("b.bin", hashlib.sha256(content).hexdigest(), size=7))
    )

    assert (response.status_code, response.json()) == (
        400,
        {"error": "b.bin: size must be 11000000, as the content is."},
    )
    assert await repo.state() == before


async def test_a_commit_that_changes_nothing_is_the_last_one(ada: Headers, repo: ARepo) -> None:
    oid = await repo.commit(ada, file("a", "1"))
    before = await repo.state()

    again = await repo.commit(ada, file("a", "1"))
    nothing = await repo.commit(ada)

    assert (again, nothing) == (oid, oid)
    assert await repo.state() == before


@pytest.mark.parametrize("says_parent", [True, False])
async def test_a_repeated_commit_is_made_once(
    ada: Headers, repo: ARepo, *, says_parent: bool
) -> None:
    await repo.commit(ada, file("a", "1"), file("old", "1"))
    parent = {"parentCommit": await repo.head()} if says_parent else {}
    body = ndjson(header("Second", **parent), file("b", "2"), deleted_file("old"))
    first = await repo.send(ada, body)
    before = await repo.state()

    again = await repo.send(ada, body)

    assert again.json() == first.json()
    assert await repo.state() == before


async def test_a_repeated_commit_is_found_behind_later_ones(ada: Headers, repo: ARepo) -> None:
    body = ndjson(header("First", parentCommit=await repo.head()), file("a", "1"))
    first = await repo.send(ada, body)
    await repo.commit(ada, file("b", "2"))
    await repo.commit(ada, file("c", "3"))
    before = await repo.state()

    again = await repo.send(ada, body)

    assert again.json() == first.json()
    assert await repo.state() == before


@pytest.mark.parametrize(
    "body",
    [
        pytest.param([header("Other"), file("a", "1")], id="another message"),
        pytest.param([header("First"), file("a", "2")], id="another content"),
        pytest.param([header("First"), deleted_file("nothing")], id="a change that does not fit"),
    ],
)
async def test_what_only_resembles_an_earlier_commit_is_refused(
    ada: Headers, repo: ARepo, body: list[dict[str, dict[str, str]]]
) -> None:
    parent = await repo.head()
    await repo.send(ada, ndjson(header("First", parentCommit=parent), file("a", "1")))
    before = await repo.state()
    body[0]["value"]["parentCommit"] = parent

    response = await repo.send(ada, ndjson(*body))

    assert response.status_code == 412
    assert await repo.state() == before


async def test_the_same_change_by_somebody_else_is_another_one(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await an_organization(database, "acme", members={"bob": Role.write, "eve": Role.write})
    bob, eve = await sign_in(database, "bob"), await sign_in(database, "eve")
    repo = await a_repo(client, database, bob, organization="acme")
    repo.path = "/api/models/acme/engine"
    body = ndjson(header("First", parentCommit=await repo.head()), file("a", "1"))
    await repo.send(bob, body)

    assert (await repo.send(eve, body)).status_code == 412


async def test_a_folder_is_deleted_with_or_without_a_slash_at_its_end(
    ada: Headers, repo: ARepo
) -> None:
    await repo.commit(ada, *(file(f"{folder}/b/{n}", "1") for folder in "adxy" for n in "12"))

    await repo.commit(ada, deleted_folder("a/b"), deleted_folder("d/b/"))
    # As the public client deletes what has no slash at its end, whatever it is.
    await repo.commit(ada, deleted_file("x"), deleted_file("x/b/1"), deleted_file("y/b"))

    assert await repo.files() == {}


async def test_a_commit_meant_for_another_state_is_refused(ada: Headers, repo: ARepo) -> None:
    parent = await repo.head()
    head = await repo.commit(ada, file("a", "1"))
    before = await repo.state()

    response = await repo.send(ada, ndjson(header(parentCommit=parent), file("a", "2")))

    assert response.status_code == 412
    assert response.json() == {
        "error": "The branch was updated since you opened this page. Please refresh and try again. "
        f"(parentCommit is {parent}, and main is at {head}.)"
    }
    assert await repo.state() == before


async def test_a_commit_meant_for_this_state_is_made(ada: Headers, repo: ARepo) -> None:
    response = await repo.send(ada, ndjson(header(parentCommit=await repo.head()), file("a", "1")))

    assert response.status_code == 200
    assert await repo.files() == {"a": b"1"}


async def test_storage_grows_by_what_is_new(database: Database, ada: Headers, repo: ARepo) -> None:
    async def size() -> int:
        async with database.read() as conn:
            found: int = await conn.fetch_value("SELECT size FROM repos")
        return found

    before = await size()
    await repo.commit(ada, file("a", "12345"), file("b", "678"))
    await repo.commit(ada, file("a", "12345"), file("b", "6789"), file("c", "0"))

    assert await size() - before == 5 + 3 + 4 + 1


async def test_a_commit_goes_to_the_branch_it_names(
    client: httpx2.AsyncClient, ada: Headers, repo: ARepo
) -> None:
    await client.post(f"{repo.path}/branch/feat%2Fx", headers=ada, json={})
    main = await repo.head()

    oid = await repo.commit(ada, file("a", "1"), revision="feat%2Fx")
    whole = await repo.commit(ada, file("b", "1"), revision="refs%2Fheads%2Ffeat%2Fx")

    assert await repo.refs() == {"refs/heads/main": main, "refs/heads/feat/x": whole}
    assert oid != whole
    assert set(await repo.files(whole)) == {"a", "b"}


async def test_the_readme_of_main_becomes_the_card(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo: ARepo
) -> None:
    readme = (
        "---\nlicense: mit\ntags: [small, fast]\nlanguage: [en, de]\nlibrary_name: torch\n"
        "pipeline_tag: text-generation\ndatasets: ada/words\n---\n# Engine\n"
    )
    await repo.commit(ada, file("README.md", readme))
    await client.post(f"{repo.path}/branch/other", headers=ada, json={})
    await repo.commit(ada, file("README.md", "---\nlicense: other\n---\n"), revision="other")

    async with database.read() as conn:
        row = await conn.fetch_one("SELECT card, tags, head_sha FROM repos")
    assert row is not None
    assert row["head_sha"] == await repo.head()
    assert row["card"] == (
        '{"license": "mit", "tags": ["small", "fast"], "language": ["en", "de"], '
        '"library_name": "torch", "pipeline_tag": "text-generation", "datasets": "ada/words"}'
    )
    assert row["tags"] == (
        '["torch", "text-generation", "small", "fast", "en", "de", "dataset:ada/words", '
        '"license:mit"]'
    )


@pytest.mark.parametrize("kind", ["dataset", "space", "kernel"])
async def test_other_types_take_commits_alike(
    client: httpx2.AsyncClient, database: Database, ada: Headers, kind: str
) -> None:
    more = {"sdk": "static"} if kind == "space" else {}
    repo = await a_repo(client, database, ada, type=kind, **more)
    repo.path = f"/api/{kind}s/ada/engine"

    response = await repo.send(ada, ndjson(header(), file("a", "1")))

    assert response.json()["commitUrl"] == (
        f"http://hub.test/{kind}s/ada/engine/commit/{await repo.head()}"
    )


async def test_an_executable_file_stays_one(database: Database, ada: Headers, repo: ARepo) -> None:
    folder = bare_repos.folder_of(database.hub.settings.database.data_dir, repo.id)
    repository = bare_repos.open_repository(folder)
    builder = repository.TreeBuilder()
    builder.insert("run", repository.create_blob(b"1"), 0o100755)
    who = trees.get_commit(repository, await repo.head()).author
    oid = repository.create_commit(None, who, who, "m", builder.write(), [await repo.head()])
    async with database.transaction() as conn:
        await conn.execute("UPDATE repo_refs SET sha = $1", str(oid))

    await repo.commit(ada, file("run", "2"), file("other", "3"))

    tree = trees.get_commit(repository, await repo.head()).tree
    assert {item.name: item.filemode for item in tree} == {"run": 0o100755, "other": 0o100644}


async def test_who_may_write_may_commit_and_nobody_else(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo: ARepo
) -> None:
    before = await repo.state()
    body = ndjson(header(), file("a", "1"))
    stranger = await sign_in(database, "bob")
    reader = await sign_in(database, "ada", scopes=["read-repos"])

    assert (await repo.send(stranger, body)).status_code == 403
    assert (await repo.send(reader, body)).status_code == 403
    assert (await repo.send({}, body)).status_code == 401
    assert await repo.state() == before


async def test_a_private_repository_does_not_exist_for_strangers(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo = await a_repo(client, database, ada, visibility="private")
    stranger = await sign_in(database, "bob")

    response = await repo.send(stranger, ndjson(header(), file("a", "1")))

    assert (response.status_code, response.headers["x-error-code"]) == (404, "RepoNotFound")
