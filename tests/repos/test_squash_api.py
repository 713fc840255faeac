"""Squashing the history of a branch."""

import httpx2
import pytest

from hublet.core.database import Database
from hublet.repos.errors import RefChanged
from hublet.repos.git import bare_repos, history
from hublet.repos.refs import service
from people import Headers, sign_in
from repos.commits import ARepo, a_repo, file, header, ndjson


@pytest.fixture
async def repo(client: httpx2.AsyncClient, database: Database, ada: Headers) -> ARepo:
    repo = await a_repo(client, database, ada)
    await repo.commit(ada, file("README.md", "---\nlicense: mit\n---\n"))
    await repo.commit(ada, file("a", "1"))
    return repo


async def squash(repo: ARepo, who: Headers, branch: str, **body: object) -> httpx2.Response:
    return await repo.client.post(f"{repo.path}/super-squash/{branch}", headers=who, json=body)


async def test_a_history_becomes_one_commit(database: Database, ada: Headers, repo: ARepo) -> None:
    before, files = await repo.head(), await repo.files()

    response = await squash(repo, ada, "main", message="All of it")

    assert (response.status_code, response.json()) == (200, {})
    after = await repo.head()
    folder = bare_repos.folder_of(database.hub.settings.database.data_dir, repo.id)
    [only] = history.list_commits(folder, after)
    assert (only.title, only.author_name, only.parents) == ("All of it", "ada", ())
    assert await repo.files() == files
    _, events = await repo.state()
    assert events[-1]["updated_refs"] == [
        {"ref": "refs/heads/main", "old_sha": before, "new_sha": after}
    ]
    assert (events[-1]["repo"]["head_sha"], events[-1]["repo"]["tags"]) == (after, ["license:mit"])


async def test_another_branch_is_squashed_alone(
    client: httpx2.AsyncClient, ada: Headers, repo: ARepo
) -> None:
    main = await repo.head()
    await client.post(f"{repo.path}/branch/feat%2Fx", headers=ada, json={})

    await squash(repo, ada, "feat%2Fx")

    refs = await repo.refs()
    assert refs["refs/heads/main"] == main
    assert refs["refs/heads/feat/x"] != main


async def test_a_pull_request_is_squashed_and_can_still_be_seen(
    client: httpx2.AsyncClient, ada: Headers, repo: ARepo
) -> None:
    opened = await repo.send(ada, ndjson(header("Propose"), file("b", "2")), query="?create_pr=1")
    assert opened.status_code == 200
    await repo.commit(ada, file("b", "3"), revision="refs%2Fpr%2F1")
    main = await repo.head()

    response = await squash(repo, ada, "refs%2Fpr%2F1", message="One")

    assert (response.status_code, response.json()) == (200, {})
    commits = (await client.get(f"{repo.path}/commits/refs%2Fpr%2F1")).json()
    assert [commit["title"] for commit in commits] == ["One"]
    assert await repo.head() == main
    shown = await client.get(f"{repo.path}/discussions/1?diff=1")
    assert (shown.status_code, shown.json()["status"]) == (200, "open")
    merged = await client.post(f"{repo.path}/discussions/1/merge", headers=ada, json={})
    assert merged.status_code == 200
    assert (await repo.files())["b"] == b"3"


async def test_a_tag_or_a_commit_has_no_history_to_squash(
    client: httpx2.AsyncClient, ada: Headers, repo: ARepo
) -> None:
    await client.post(f"{repo.path}/tag/main", headers=ada, json={"tag": "v1"})
    before = await repo.state()

    for revision in ("v1", await repo.head()):
        response = await squash(repo, ada, revision)
        assert (response.status_code, response.json()) == (
            400,
            {"error": f"{revision} is no branch; only the history of a branch can be squashed."},
        )
    missing = await squash(repo, ada, "nothing")
    assert (missing.status_code, missing.headers["x-error-code"]) == (404, "RevisionNotFound")
    assert await repo.state() == before


async def test_a_branch_that_keeps_moving_is_given_up(
    ada: Headers, repo: ARepo, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, lost = service.update_refs, 0

    async def move(*arguments: object) -> object:
        nonlocal lost
        lost += 1
        if lost in {1, 3, 4, 5, 6, 7}:
            raise RefChanged("main")
        return await real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(service, "update_refs", move)

    assert (await squash(repo, ada, "main")).status_code == 200
    before = await repo.state()
    assert (await squash(repo, ada, "main")).status_code == 409
    assert await repo.state() == before


async def test_only_who_may_write_squashes(database: Database, ada: Headers, repo: ARepo) -> None:
    bob = await sign_in(database, "bob")
    before = await repo.state()

    assert (await squash(repo, bob, "main")).status_code == 403
    assert await repo.state() == before
