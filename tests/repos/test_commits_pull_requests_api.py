"""Commits that become pull requests, or go into one."""

from dataclasses import asdict
from typing import Any

import httpx2
import pytest

from hublet.core.database import Connection, Database, Reader
from hublet.core.errors import InvalidRequest
from hublet.repos.commits import pull_requests
from hublet.repos.commits.pull_requests import NewPullRequest, PullRequest
from hublet.repos.records import Repo
from hublet.tokens.records import Caller
from people import Headers, sign_in
from repos.commits import ARepo, a_repo, file, header, ndjson


@pytest.fixture
async def repo(client: httpx2.AsyncClient, database: Database, ada: Headers) -> ARepo:
    return await a_repo(client, database, ada)


@pytest.fixture
async def bob(database: Database) -> Headers:
    return await sign_in(database, "bob")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The pull requests that were opened; each gets the next number, and bob may commit to 1."""
    found: list[dict[str, Any]] = []

    async def open_(
        _conn: Connection, caller: Caller, repo: Repo, new: NewPullRequest
    ) -> PullRequest:
        if new.title == "Refused":
            raise InvalidRequest("No.")
        found.append({"by": caller.user_name, "repo": repo.full_name, **asdict(new)})
        return PullRequest(number=len(found), url=f"http://hub.test/discussions/{len(found)}")

    async def check(_conn: Reader, caller: Caller, _repo: Repo, number: int) -> bool:
        return (caller.user_name, number) == ("bob", 1)

    registered = pull_requests._Registered  # noqa: SLF001 - the seam itself
    monkeypatch.setattr(registered, "opener", staticmethod(open_))
    monkeypatch.setattr(registered, "check", staticmethod(check))
    return found


async def test_whoever_may_discuss_proposes_a_commit(
    opened: list[dict[str, Any]], repo: ARepo, bob: Headers
) -> None:
    main = await repo.head()

    response = await repo.send(
        bob, ndjson(header("Better", description="Why."), file("a", "1")), query="?create_pr=1"
    )

    refs = await repo.refs()
    oid = refs["refs/pr/1"]
    assert refs == {"refs/heads/main": main, "refs/pr/1": oid}
    assert response.json() == {
        "success": True,
        "commitUrl": f"http://hub.test/ada/engine/commit/{oid}",
        "commitOid": oid,
        "pullRequestUrl": "http://hub.test/discussions/1",
        "hookOutput": "",
    }
    assert opened == [
        {
            "by": "bob",
            "repo": "ada/engine",
            "title": "Better",
            "description": "Why.",
            "base": "refs/heads/main",
            "base_sha": main,
            "head_sha": oid,
        }
    ]
    _, [event] = await repo.state()
    assert event["updated_refs"] == [{"ref": "refs/pr/1", "old_sha": None, "new_sha": oid}]
    assert event["repo"]["head_sha"] == main
    assert await repo.files(oid) == {"a": b"1"}


async def test_a_proposal_without_a_change_is_one_all_the_same(
    opened: list[dict[str, Any]], repo: ARepo, bob: Headers
) -> None:
    response = await repo.send(bob, ndjson(header("Nothing")), query="?create_pr=true")

    assert response.status_code == 200
    assert response.json()["commitOid"] == (await repo.refs())["refs/pr/1"]


async def test_a_proposal_that_is_refused_leaves_nothing(
    opened: list[dict[str, Any]], repo: ARepo, bob: Headers
) -> None:
    before = await repo.state()

    response = await repo.send(bob, ndjson(header("Refused"), file("a", "1")), query="?create_pr=1")

    assert (response.status_code, response.json()) == (400, {"error": "No."})
    assert await repo.state() == before


async def test_the_author_of_a_pull_request_commits_to_it_and_to_no_other(
    opened: list[dict[str, Any]], repo: ARepo, ada: Headers, bob: Headers
) -> None:
    await repo.send(bob, ndjson(header("One"), file("a", "1")), query="?create_pr=1")
    await repo.send(ada, ndjson(header("Two"), file("b", "1")), query="?create_pr=1")
    two = (await repo.refs())["refs/pr/2"]

    oid = await repo.commit(bob, file("c", "1"), revision="refs%2Fpr%2F1")
    refused = await repo.send(bob, ndjson(header(), file("c", "1")), revision="refs%2Fpr%2F2")

    assert set(await repo.files(oid)) == {"a", "c"}
    assert refused.status_code == 403
    assert (await repo.refs())["refs/pr/2"] == two


async def test_a_writer_commits_to_every_pull_request(
    opened: list[dict[str, Any]], repo: ARepo, ada: Headers, bob: Headers
) -> None:
    await repo.send(bob, ndjson(header("One"), file("a", "1")), query="?create_pr=1")

    oid = await repo.commit(ada, file("c", "1"), revision="refs%2Fpr%2F1")

    assert (await repo.refs())["refs/pr/1"] == oid


async def test_a_token_that_may_not_discuss_proposes_nothing(
    opened: list[dict[str, Any]], repo: ARepo, database: Database
) -> None:
    reader = await sign_in(database, "bob", scopes=["read-repos"])

    response = await repo.send(reader, ndjson(header("One"), file("a", "1")), query="?create_pr=1")

    assert response.status_code == 403
    assert opened == []


async def test_what_cannot_be_read_cannot_be_proposed_to(
    opened: list[dict[str, Any]], repo: ARepo, database: Database, bob: Headers
) -> None:
    async with database.transaction() as conn:
        await conn.execute("UPDATE repos SET gated = 'manual'")

    response = await repo.send(bob, ndjson(header("One"), file("a", "1")), query="?create_pr=1")

    assert (response.status_code, response.headers["x-error-code"]) == (403, "GatedRepo")
    assert opened == []


async def test_an_author_who_cannot_read_the_repository_any_more_cannot_commit(
    opened: list[dict[str, Any]], repo: ARepo, database: Database, bob: Headers
) -> None:
    await repo.send(bob, ndjson(header("One"), file("a", "1")), query="?create_pr=1")
    before = await repo.refs()
    async with database.transaction() as conn:
        await conn.execute("UPDATE repos SET gated = 'manual'")

    response = await repo.send(bob, ndjson(header(), file("c", "1")), revision="refs%2Fpr%2F1")

    assert (response.status_code, response.json()) == (
        403,
        {"error": "You cannot do this with ada/engine: you have no write access to it."},
    )
    assert await repo.refs() == before
