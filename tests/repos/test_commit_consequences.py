"""What follows from a commit: only what its files can have changed is read again."""

import asyncio
import json
import struct
from itertools import groupby
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hublet.core import outbox
from hublet.core.database import Database
from hublet.core.database.sqlite import SqliteDatabase
from hublet.events import RepoContentUpdated
from hublet.notifications.reactions import SEARCH_FOR_LEAKS
from hublet.repos.browse import list_index
from hublet.repos.browse.list_index import COUNT_PARAMETERS
from hublet.repos.browse.overview import find_weights
from hublet.repos.git.trees import GitEntry
from hublet.search.index import REFRESH
from outbox_events import published_events
from people import Headers
from repos.commits import ARepo, Line, a_repo, deleted_file, deleted_folder, file
from workers import drain

CARD = "---\nlicense: mit\n---\nText."


@pytest.fixture
async def repo(client: httpx2.AsyncClient, database: Database, ada: Headers) -> ARepo:
    return await a_repo(client, database, ada)


async def kinds_after(repo: ARepo, who: Headers, *lines: Line) -> set[str]:
    """Return the kinds of tasks that a commit makes, and the reactions to its event."""
    async with repo.database.transaction() as conn:
        await conn.execute("DELETE FROM outbox")
        await conn.execute("DELETE FROM tasks")
    await repo.commit(who, *lines)
    async with repo.database.transaction() as conn:
        await outbox.dispatch(conn, limit=10)
        rows = await conn.fetch_all("SELECT kind FROM tasks")
    return {row["kind"].rpartition(":")[2] for row in rows}


async def shown(repo: ARepo) -> dict[str, Any]:
    response = await repo.client.get(repo.path)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def test_a_commit_beside_the_card_makes_hardly_any_task(ada: Headers, repo: ARepo) -> None:
    assert await kinds_after(repo, ada, file("a.txt", "1")) == {"repos.plan_packing"}


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (file("README.md", "text"), REFRESH),
        (file("app.py", "text"), REFRESH),
        (file("model.safetensors", "x"), COUNT_PARAMETERS),
        (file("model.safetensors.index.json", "x"), COUNT_PARAMETERS),
        (file("folder/a.txt", "hf_"), "notifications.queue_leak_search"),
    ],
)
async def test_a_commit_makes_the_tasks_that_its_files_need(
    ada: Headers, repo: ARepo, line: Line, kind: str
) -> None:
    assert await kinds_after(repo, ada, line) == {"repos.plan_packing", kind}


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
async def test_a_small_commit_holds_the_one_writer_for_few_statements(
    database: Database, ada: Headers, repo: ARepo
) -> None:
    """Each costs every client that commits at the same time; PostgreSQL a round trip."""
    # Counted where all statements go through one connection.
    assert isinstance(database, SqliteDatabase)
    statements: list[str] = []
    database.writer.set_trace_callback(statements.append)
    await repo.commit(ada, file("a.txt", "1"))
    database.writer.set_trace_callback(None)

    # What triggers do for a statement is traced as that statement once more.
    # Who may, and with a token that still works; the ref; the repository; the event; who watches.
    words = ["SELECT", "SELECT", "UPDATE", "UPDATE", "INSERT", "SELECT"]
    found = [statement.split()[0] for statement, _ in groupby(statements)]
    assert [word for word in found if word != "PRAGMA"] == [
        "BEGIN", "SAVEPOINT", *words, "RELEASE", "COMMIT",
    ]  # fmt: skip


async def test_a_commit_of_many_files_makes_every_task(ada: Headers, repo: ARepo) -> None:
    kinds = await kinds_after(repo, ada, *(file(f"{n}.txt", "1") for n in range(21)))

    assert kinds == {"repos.plan_packing", REFRESH, COUNT_PARAMETERS}
    assert SEARCH_FOR_LEAKS not in kinds


async def test_the_event_names_what_changed_at_the_top(ada: Headers, repo: ARepo) -> None:
    await repo.commit(ada, file("a/b/c", "1"), file("d", "1"), file("e/f", "1"))
    await repo.commit(ada, deleted_folder("a"), deleted_file("d"), file("e/g", "hf_"))

    events = await published_events(repo.database, RepoContentUpdated)

    assert [(event["changed_names"], event["may_leak"]) for event in events] == [
        (["a", "d", "e"], False),
        (["a", "d", "e"], True),
    ]


async def test_the_name_of_a_large_file_may_leak_since_it_goes_into_the_attributes(
    ada: Headers, repo: ARepo
) -> None:
    await repo.commit(ada, file("hf_.dat", b"x" * 11_000_000))

    [event] = await published_events(repo.database, RepoContentUpdated)
    assert "hf_.dat" in await repo.attributes()
    assert event["may_leak"]


async def test_the_card_stays_until_a_commit_changes_it(ada: Headers, repo: ARepo) -> None:
    await repo.commit(ada, file("README.md", CARD))
    head = await repo.commit(ada, file("a.txt", "1"))

    answer = await shown(repo)
    assert (answer["sha"], answer["cardData"]) == (head, {"license": "mit"})
    assert "license:mit" in answer["tags"]

    head = await repo.commit(ada, deleted_file("README.md"))

    answer = await shown(repo)
    assert answer["sha"] == head
    assert not answer.get("cardData")
    assert "license:mit" not in answer["tags"]


async def test_results_of_an_evaluation_follow_their_folder(ada: Headers, repo: ARepo) -> None:
    result = "- dataset: {id: openai/gsm8k, task_id: default}\n  value: 7\n"

    async def count() -> int:
        async with repo.database.read() as conn:
            return int(await conn.fetch_value("SELECT count(*) FROM evaluation_results"))

    await repo.commit(ada, file(".eval_results/a.yaml", result))
    assert await count() == 1
    await repo.commit(ada, file("a.txt", "1"))
    assert await count() == 1
    await repo.commit(ada, deleted_folder(".eval_results"))
    assert await count() == 0


async def test_a_commit_that_comes_while_parameters_are_counted_does_not_lose_them(
    database: Database, ada: Headers, repo: ARepo, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = json.dumps({"w": {"dtype": "F32", "shape": [3000]}}).encode()
    await repo.commit(ada, file("model.safetensors", struct.pack("<Q", len(header)) + header))
    loop, late = asyncio.get_running_loop(), ["1", "2"]

    def read_slowly(folder: Path, sha: str) -> tuple[GitEntry, ...]:
        found = find_weights(folder, sha)
        if late:
            commit = repo.commit(ada, file("a.txt", late.pop()))
            asyncio.run_coroutine_threadsafe(commit, loop).result()
        return found

    monkeypatch.setattr(list_index, "find_weights", read_slowly)
    await drain(database)

    async with database.read() as conn:
        assert await conn.fetch_value("SELECT num_parameters FROM repos") == 3000
