"""Commits beside each other, and commits that fail half-way."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import httpx2
import pytest

from hublet.core.database import Database, DatabaseUnavailable
from hublet.events import RepoContentUpdated
from hublet.repos import cards
from hublet.repos.commits import service
from hublet.repos.errors import RefChanged
from hublet.repos.git import bare_repos, history
from hublet.repos.git.object_writer import ObjectWriter
from hublet.repos.records import Card, RepoType
from hublet.repos.refs import service as refs
from outbox_events import published_events
from people import Headers, revoke
from repos.commits import ARepo, Line, a_repo, file, header, ndjson


@pytest.fixture
async def repo(client: httpx2.AsyncClient, database: Database, ada: Headers) -> ARepo:
    return await a_repo(client, database, ada)


def folder_of(repo: ARepo) -> Path:
    return bare_repos.folder_of(repo.database.hub.settings.database.data_dir, repo.id)


async def test_concurrent_commits_to_one_branch_all_arrive(
    database: Database, ada: Headers, repo: ARepo
) -> None:
    first = await repo.head()

    made = await asyncio.gather(*(repo.commit(ada, file(f"f{n}", f"{n}")) for n in range(40)))

    assert await repo.files() == {f"f{n}": b"%d" % n for n in range(40)}
    line = [commit.id for commit in history.list_commits(folder_of(repo), await repo.head())]
    assert sorted(line) == sorted([*made, first])
    events = await published_events(database, RepoContentUpdated)
    moves = [(ref["old_sha"], ref["new_sha"]) for event in events for ref in event["updated_refs"]]
    assert moves == list(zip(line[:0:-1], line[-2::-1], strict=True))


async def test_of_concurrent_commits_to_one_state_one_is_made(ada: Headers, repo: ARepo) -> None:
    parent = await repo.head()

    answers = await asyncio.gather(
        *(repo.send(ada, ndjson(header(parentCommit=parent), file("a", f"{n}"))) for n in range(10))
    )

    assert sorted(answer.status_code for answer in answers) == [200] + [412] * 9
    assert len(history.list_commits(folder_of(repo), await repo.head())) == 2


class _NoTurns:
    """Nobody waits for anybody, as if each commit came to a process of its own."""

    def setdefault(self, _key: object, lock: asyncio.Lock) -> asyncio.Lock:
        return lock


async def test_commits_in_several_processes_all_arrive(
    database: Database, ada: Headers, repo: ARepo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "_branch_locks", _NoTurns())

    await asyncio.gather(*(repo.commit(ada, file(f"f{n}", f"{n}")) for n in range(8)))

    assert await repo.files() == {f"f{n}": b"%d" % n for n in range(8)}
    assert len(await published_events(database, RepoContentUpdated)) == 8


async def test_a_lost_race_is_run_again(
    ada: Headers, repo: ARepo, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = refs.update_refs
    races = 0

    async def lost(*arguments: object) -> object:
        nonlocal races
        races += 1
        if races < 3:
            raise RefChanged("main")
        return await real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(refs, "update_refs", lost)

    await repo.commit(ada, *(file(f"f{n}", f"{n}") for n in range(50)))

    assert await repo.files() == {f"f{n}": b"%d" % n for n in range(50)}


async def test_races_without_end_are_given_up(
    ada: Headers, repo: ARepo, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost(*arguments: object) -> object:
        raise RefChanged("main")

    before = await repo.state()
    monkeypatch.setattr(refs, "update_refs", lost)

    response = await repo.send(ada, ndjson(header(), file("a", "1")))

    assert (response.status_code, response.json()) == (
        409,
        {"error": "main has moved on since; read it again and repeat the change."},
    )
    assert await repo.state() == before


async def test_a_commit_never_goes_into_a_copy_that_took_its_name_meanwhile(
    client: httpx2.AsyncClient, ada: Headers, repo: ARepo
) -> None:
    await repo.commit(ada, file("a", "1"))
    refs_before = await repo.refs()

    async def body() -> AsyncIterator[bytes]:
        yield ndjson(header())
        names = {"fromRepo": "ada/engine", "toRepo": "ada/old", "type": "model"}
        await client.post("/api/repos/move", headers=ada, json=names)
        copied = {"repository": "ada/engine"}
        await client.post("/api/models/ada/old/duplicate", headers=ada, json=copied)
        yield ndjson(file("b", "2"))

    kind = {"content-type": "application/x-ndjson"}
    response = await client.post(f"{repo.path}/commit/main", headers=ada | kind, content=body())

    assert response.status_code == 404, response.text
    assert await repo.refs() == refs_before
    assert (await client.get(f"{repo.path}/tree/main", headers=ada)).status_code == 200


async def test_a_transaction_that_fails_leaves_the_repository_as_it_was(
    ada: Headers, repo: ARepo, monkeypatch: pytest.MonkeyPatch
) -> None:
    await repo.commit(ada, file("a", "1"))
    before = await repo.state()
    real = refs.update_refs

    async def fail(*arguments: object) -> object:
        await real(*arguments)  # type: ignore[arg-type]
        raise DatabaseUnavailable("It is gone.")

    with monkeypatch.context() as patch:
        patch.setattr(refs, "update_refs", fail)
        response = await repo.send(ada, ndjson(header(), file("a", "2"), file("b", "3")))

    assert response.status_code == 503
    assert await repo.state() == before
    assert await repo.files() == {"a": b"1"}
    # And the next one works on what is there.
    await repo.commit(ada, file("b", "3"))
    assert await repo.files() == {"a": b"1", "b": b"3"}


async def test_a_disk_that_fails_leaves_the_repository_as_it_was(
    ada: Headers, repo: ARepo, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await repo.state()

    def fail(_writer: ObjectWriter) -> None:
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(ObjectWriter, "finish", fail)
        response = await repo.send(ada, ndjson(header(), file("a", "2")))

    assert (response.status_code, response.json()) == (
        503,
        {"error": "The hub cannot store content right now; please try again shortly."},
    )
    assert await repo.state() == before
    assert await repo.files() == {}


async def test_a_repository_deleted_meanwhile_is_not_found(
    client: httpx2.AsyncClient, ada: Headers, repo: ARepo
) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield ndjson(header())
        await client.request(
            "DELETE", "/api/repos/delete", headers=ada, json={"name": "ada/engine"}
        )
        bare_repos.remove(folder_of(repo))
        yield ndjson(*(file(f"f{n}", "1") for n in range(50)))

    response = await client.post(f"{repo.path}/commit/main", headers=ada, content=body())

    assert (response.status_code, response.headers["x-error-code"]) == (404, "RepoNotFound")


async def test_a_right_that_is_lost_meanwhile_counts_no_more(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo: ARepo
) -> None:
    before = await repo.state()

    async def body() -> AsyncIterator[bytes]:
        yield ndjson(header(), file("a", "1"))
        async with database.transaction() as conn:
            await conn.execute("UPDATE repos SET owner_id = 'other', visibility = 'private'")

    response = await client.post(f"{repo.path}/commit/main", headers=ada, content=body())

    assert response.status_code == 404
    assert await repo.state() == before


async def test_who_lost_the_right_meanwhile_is_not_told_that_nothing_would_change(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo: ARepo
) -> None:
    async def body() -> AsyncIterator[bytes]:
        yield ndjson(header())
        async with database.transaction() as conn:
            await conn.execute("UPDATE repos SET owner_id = 'other', visibility = 'private'")

    response = await client.post(f"{repo.path}/commit/main", headers=ada, content=body())

    assert (response.status_code, response.headers["x-error-code"]) == (404, "RepoNotFound")


@pytest.mark.parametrize("lines", [(), (file("a", "1"),)], ids=["no change", "a change"])
async def test_a_token_that_is_revoked_while_the_body_arrives_commits_nothing(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    repo: ARepo,
    lines: Sequence[Line],
) -> None:
    before = await repo.state()

    async def body() -> AsyncIterator[bytes]:
        yield ndjson(header(), *lines)
        await revoke(database, ada)

    response = await client.post(f"{repo.path}/commit/main", headers=ada, content=body())

    assert response.status_code == 401
    assert response.json() == {"error": "Invalid credentials in Authorization header"}
    assert await repo.state() == before


async def test_a_right_that_is_lost_while_git_works_counts_no_more(
    database: Database, ada: Headers, repo: ARepo, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await repo.state()
    loop = asyncio.get_running_loop()

    async def take_it_away() -> None:
        async with database.transaction() as conn:
            await conn.execute("UPDATE repos SET owner_id = 'other', visibility = 'private'")

    def read_card(folder: Path, commit: str, kind: RepoType) -> Card:
        # The commit is in git by now, and nothing points to it.
        asyncio.run_coroutine_threadsafe(take_it_away(), loop).result()
        return cards.read_card(folder, commit, kind)

    monkeypatch.setattr(service, "read_card", read_card)

    response = await repo.send(ada, ndjson(header(), file("README.md", "1")))

    assert (response.status_code, response.headers["x-error-code"]) == (404, "RepoNotFound")
    assert await repo.state() == before
