"""Branches, and the list of refs."""

import asyncio

import httpx2
import pytest

from hublet.core.database import Database
from people import Headers, sign_in
from repos.commits import ARepo, a_repo, file


@pytest.fixture
async def repo(client: httpx2.AsyncClient, database: Database, ada: Headers) -> ARepo:
    return await a_repo(client, database, ada)


async def create(repo: ARepo, who: Headers, name: str, **body: object) -> httpx2.Response:
    return await repo.client.post(f"{repo.path}/branch/{name}", headers=who, json=body)


async def test_a_branch_begins_at_main(ada: Headers, repo: ARepo) -> None:
    main = await repo.head()

    response = await create(repo, ada, "feat%2Fx")

    assert (response.status_code, response.json()) == (200, {})
    refs, [event] = await repo.state()
    assert refs == {"refs/heads/main": main, "refs/heads/feat/x": main}
    assert event["updated_refs"] == [{"ref": "refs/heads/feat/x", "old_sha": None, "new_sha": main}]


async def test_a_branch_begins_where_it_is_told(
    client: httpx2.AsyncClient, ada: Headers, repo: ARepo
) -> None:
    first = await repo.head()
    await client.post(f"{repo.path}/tag/main", headers=ada, json={"tag": "v1"})
    second = await repo.commit(ada, file("a", "1"))

    for name, start in {"one": first, "two": "v1", "three": "main", "four": "two"}.items():
        assert (await create(repo, ada, name, startingPoint=start)).status_code == 200

    refs = await repo.refs()
    assert [refs[f"refs/heads/{name}"] for name in ("one", "two", "three", "four")] == [
        first, first, second, first,
    ]  # fmt: skip


async def test_an_empty_branch_holds_nothing(ada: Headers, repo: ARepo) -> None:
    await create(repo, ada, "bare", emptyBranch=True)

    oid = await repo.commit(ada, file("a", "1"), revision="bare")

    assert await repo.files(oid) == {"a": b"1"}


async def test_a_branch_that_exists_is_left_alone_unless_asked(ada: Headers, repo: ARepo) -> None:
    first = await repo.head()
    await create(repo, ada, "x")
    second = await repo.commit(ada, file("a", "1"))
    before = await repo.state()

    refused = await create(repo, ada, "x")
    assert (refused.status_code, refused.json()) == (
        409,
        {"error": "Reference refs/heads/x already exists."},
    )
    assert await repo.state() == before

    assert (await create(repo, ada, "x", overwrite=True)).status_code == 200
    refs, events = await repo.state()
    assert refs["refs/heads/x"] == second
    assert events[-1]["updated_refs"] == [
        {"ref": "refs/heads/x", "old_sha": first, "new_sha": second}
    ]
    # Once more it is there already, and there is nothing to tell.
    assert (await create(repo, ada, "x", overwrite=True)).status_code == 200
    assert await repo.state() == (refs, events)


async def test_main_can_be_set_back_with_its_card(
    database: Database, ada: Headers, repo: ARepo
) -> None:
    first = await repo.commit(ada, file("README.md", "---\nlicense: mit\n---\n"))
    await repo.commit(ada, file("README.md", "---\nlicense: other\n---\n"))

    await create(repo, ada, "main", startingPoint=first, overwrite=True)

    async with database.read() as conn:
        row = await conn.fetch_one("SELECT head_sha, tags FROM repos")
    assert row is not None
    assert tuple(row) == (first, '["license:mit"]')


@pytest.mark.parametrize("start", ["nothing", "1" * 40, "refs/tags/v1"])
async def test_a_branch_cannot_begin_nowhere(ada: Headers, repo: ARepo, start: str) -> None:
    before = await repo.state()

    response = await create(repo, ada, "x", startingPoint=start)

    assert (response.status_code, response.headers["x-error-code"]) == (404, "RevisionNotFound")
    assert await repo.state() == before


@pytest.mark.parametrize(
    "name",
    [
        "a%20b", "a~b", "a%5Eb", "a:b", "a%3Fb", "a*b", "a%5Bb", "a%5Cb", "a..b", "a%40%7Bb",
        ".a", "a%2F.b", "a.lock", "a%2F", "a%2F%2Fb", "a.", "-a", "HEAD", "refs%2Fheads%2Fa",
        "1" * 40, "x" * 201, "a%7Fb",
    ],
)  # fmt: skip
async def test_a_name_that_git_refuses_is_refused(ada: Headers, repo: ARepo, name: str) -> None:
    before = await repo.state()

    response = await create(repo, ada, name)

    assert response.status_code == 400
    assert response.json()["error"].startswith("This is no name for a branch: it ")
    assert await repo.state() == before


@pytest.mark.parametrize(("first", "second"), [("a", "a%2Fb%2Fc"), ("a%2Fb%2Fc", "a%2Fb")])
async def test_a_branch_cannot_lie_in_another(
    ada: Headers, repo: ARepo, first: str, second: str
) -> None:
    await create(repo, ada, first)
    # These only look alike.
    assert (await create(repo, ada, "a-b")).status_code == 200
    assert (await create(repo, ada, "a0")).status_code == 200
    before = await repo.state()

    response = await create(repo, ada, second)

    assert response.status_code == 409
    assert await repo.state() == before


async def test_of_branches_that_exclude_each_other_one_is_made(ada: Headers, repo: ARepo) -> None:
    answers = await asyncio.gather(*(create(repo, ada, "a%2Fb"[: n * 4 + 1]) for n in (0, 1)))

    assert sorted(answer.status_code for answer in answers) == [200, 409]
    assert len(await repo.refs()) == 2


async def test_a_branch_is_deleted(client: httpx2.AsyncClient, ada: Headers, repo: ARepo) -> None:
    main = await repo.head()
    await create(repo, ada, "feat%2Fx")

    response = await client.delete(f"{repo.path}/branch/feat%2Fx", headers=ada)
    again = await client.delete(f"{repo.path}/branch/feat%2Fx", headers=ada)

    assert (response.status_code, response.json()) == (200, {})
    assert (again.status_code, again.headers["x-error-code"]) == (404, "RevisionNotFound")
    assert again.json() == {
        "error": "Invalid rev id: there is no revision feat/x in this repository."
    }
    refs, events = await repo.state()
    assert refs == {"refs/heads/main": main}
    assert events[-1]["updated_refs"] == [
        {"ref": "refs/heads/feat/x", "old_sha": main, "new_sha": None}
    ]


async def test_main_stays(client: httpx2.AsyncClient, ada: Headers, repo: ARepo) -> None:
    before = await repo.state()

    response = await client.delete(f"{repo.path}/branch/main", headers=ada)

    assert (response.status_code, response.json()) == (
        400,
        {"error": "Cannot delete refs/heads/main: every repository keeps its main branch."},
    )
    assert await repo.state() == before


async def test_only_who_may_write_changes_branches(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo: ARepo
) -> None:
    await create(repo, ada, "x")
    bob = await sign_in(database, "bob")
    before = await repo.state()

    assert (await create(repo, bob, "y")).status_code == 403
    assert (await client.delete(f"{repo.path}/branch/x", headers=bob)).status_code == 403
    assert (await create(repo, {}, "y")).status_code == 401
    assert await repo.state() == before


async def test_the_refs_are_listed_by_kind(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo: ARepo
) -> None:
    sha = await repo.head()
    await create(repo, ada, "feat%2Fx")
    await client.post(f"{repo.path}/tag/main", headers=ada, json={"tag": "v1"})
    async with database.transaction() as conn:
        await conn.execute(
            "INSERT INTO repo_refs (repo_id, name, sha, updated_at) VALUES ($1, $2, $3, 0)",
            repo.id, "refs/pr/1", sha,
        )  # fmt: skip

    plain = await client.get(f"{repo.path}/refs")
    whole = await client.get(f"{repo.path}/refs?include_prs=1")

    expected = {
        "branches": [
            {"name": "feat/x", "ref": "refs/heads/feat/x", "targetCommit": sha},
            {"name": "main", "ref": "refs/heads/main", "targetCommit": sha},
        ],
        "converts": [],
        "tags": [{"name": "v1", "ref": "refs/tags/v1", "targetCommit": sha}],
    }
    assert plain.json() == expected
    assert whole.json() == expected | {
        "pullRequests": [{"name": "refs/pr/1", "ref": "refs/pr/1", "targetCommit": sha}]
    }


async def test_the_refs_of_a_gated_repository_are_for_those_let_in(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo: ARepo
) -> None:
    async with database.transaction() as conn:
        await conn.execute("UPDATE repos SET gated = 'auto'")

    response = await client.get(f"{repo.path}/refs")

    assert (response.status_code, response.headers["x-error-code"]) == (403, "GatedRepo")
