"""Tags."""

import httpx2
import pygit2
import pytest

from hublet.core.database import Database
from hublet.repos.git import bare_repos
from people import Headers, sign_in
from repos.commits import ARepo, a_repo, file


@pytest.fixture
async def repo(client: httpx2.AsyncClient, database: Database, ada: Headers) -> ARepo:
    return await a_repo(client, database, ada)


async def tag(
    repo: ARepo, who: Headers, name: str, *, at: str = "main", **more: object
) -> httpx2.Response:
    return await repo.client.post(f"{repo.path}/tag/{at}", headers=who, json={"tag": name, **more})


async def test_a_tag_stays_at_its_commit(ada: Headers, repo: ARepo) -> None:
    sha = await repo.head()

    response = await tag(repo, ada, "v1.0", message="The first.")
    await repo.commit(ada, file("a", "1"))

    assert (response.status_code, response.json()) == (200, {})
    refs, events = await repo.state()
    assert refs["refs/tags/v1.0"] == sha
    assert events[0]["updated_refs"] == [{"ref": "refs/tags/v1.0", "old_sha": None, "new_sha": sha}]


async def test_every_revision_can_be_tagged(ada: Headers, repo: ARepo) -> None:
    first = await repo.head()
    second = await repo.commit(ada, file("a", "1"))

    await tag(repo, ada, "one", at=first)
    await tag(repo, ada, "two", at="refs%2Fheads%2Fmain")
    await tag(repo, ada, "three", at="one", message=None)

    refs = await repo.refs()
    assert [refs[f"refs/tags/{name}"] for name in ("one", "two", "three")] == [
        first, second, first,
    ]  # fmt: skip


async def test_a_tag_of_a_pushed_tag_leads_to_its_commit(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo: ARepo
) -> None:
    sha = await repo.head()
    folder = bare_repos.folder_of(database.hub.settings.database.data_dir, repo.id)
    who = pygit2.Signature("ada", "ada@example.com", 0, 0)
    pushed = bare_repos.open_repository(folder).create_tag(
        "v1", pygit2.Oid(hex=sha), pygit2.enums.ObjectType.COMMIT, who, "One."
    )
    async with database.transaction() as conn:
        await conn.execute(
            "INSERT INTO repo_refs (repo_id, name, sha, updated_at) VALUES ($1, $2, $3, 0)",
            repo.id, "refs/tags/v1", str(pushed),
        )  # fmt: skip

    await tag(repo, ada, "v2", at="v1")

    listed = (await client.get(f"{repo.path}/refs")).json()["tags"]
    assert [each["targetCommit"] for each in listed] == [sha, sha]
    assert (await repo.refs())["refs/tags/v2"] == sha


async def test_a_tag_that_exists_is_left_alone(ada: Headers, repo: ARepo) -> None:
    await tag(repo, ada, "v1")
    await repo.commit(ada, file("a", "1"))
    before = await repo.state()

    response = await tag(repo, ada, "v1")

    assert (response.status_code, response.json()) == (
        409,
        {"error": "Reference refs/tags/v1 already exists."},
    )
    assert await repo.state() == before


async def test_a_commit_can_be_tagged_by_the_beginning_of_its_id(ada: Headers, repo: ARepo) -> None:
    sha = await repo.commit(ada, file("a", "1"))

    tagged = await tag(repo, ada, "v1", at=sha[:7])
    too_short = await tag(repo, ada, "v2", at=sha[:6])
    branch = await repo.client.post(
        f"{repo.path}/branch/b", headers=ada, json={"startingPoint": sha[:12]}
    )

    assert (tagged.status_code, branch.status_code, too_short.status_code) == (200, 200, 404)
    refs = await repo.refs()
    assert (refs["refs/tags/v1"], refs["refs/heads/b"]) == (sha, sha)


async def test_a_name_that_looks_like_an_id_comes_first(ada: Headers, repo: ARepo) -> None:
    first = await repo.head()
    sha = await repo.commit(ada, file("a", "1"))
    await tag(repo, ada, sha[:7], at=first)

    await tag(repo, ada, "v1", at=sha[:7])

    assert (await repo.refs())["refs/tags/v1"] == first


@pytest.mark.parametrize("name", ["v1", "no name"])
@pytest.mark.parametrize("at", ["nothing", "1" * 40, "1" * 7])
async def test_only_what_exists_can_be_tagged(
    ada: Headers, repo: ARepo, at: str, name: str
) -> None:
    before = await repo.state()

    response = await tag(repo, ada, name, at=at)

    assert (response.status_code, response.headers["x-error-code"]) == (404, "RevisionNotFound")
    assert await repo.state() == before


@pytest.mark.parametrize("name", ["", "a b", "..", "refs/tags/a", "0" * 40])
async def test_a_tag_has_a_name_that_git_takes(ada: Headers, repo: ARepo, name: str) -> None:
    response = await tag(repo, ada, name)

    assert response.status_code == 400
    assert response.json()["error"].startswith("This is no name for a tag: it ")


async def test_a_tag_is_deleted(client: httpx2.AsyncClient, ada: Headers, repo: ARepo) -> None:
    sha = await repo.head()
    await tag(repo, ada, "rel/1")

    response = await client.delete(f"{repo.path}/tag/rel%2F1", headers=ada)
    again = await client.delete(f"{repo.path}/tag/rel%2F1", headers=ada)

    assert (response.status_code, response.json()) == (200, {})
    assert (again.status_code, again.headers["x-error-code"]) == (404, "RevisionNotFound")
    refs, events = await repo.state()
    assert refs == {"refs/heads/main": sha}
    assert events[-1]["updated_refs"] == [
        {"ref": "refs/tags/rel/1", "old_sha": sha, "new_sha": None}
    ]


async def test_only_who_may_write_changes_tags(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo: ARepo
) -> None:
    await tag(repo, ada, "v1")
    bob = await sign_in(database, "bob")
    before = await repo.state()

    assert (await tag(repo, bob, "v2")).status_code == 403
    assert (await client.delete(f"{repo.path}/tag/v1", headers=bob)).status_code == 403
    assert await repo.state() == before
