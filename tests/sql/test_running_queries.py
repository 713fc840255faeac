"""Queries that run: how many at once, their end by the caller, by a client that leaves, by the hub."""

import asyncio

import httpx2
import pytest
from fastapi import FastAPI

from hublet.core.database import Database
from hublet.repos.git.trees import GitEntry
from hublet.sql.service import SqlEngine
from hublet.sql.views import find_views, split_of
from people import Headers, sign_in
from sql.datasets import PATH, ask, error_of, limit
from sql.datasets import rows as rows  # noqa: PLC0414 - a fixture

ENDLESS = "WITH RECURSIVE r(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM r) SELECT max(a) FROM r"
QUERY = "c" * 24


async def until(engine: SqlEngine, count: int) -> None:
    while engine.running != count or len(engine._running) != count:  # noqa: SLF001
        await asyncio.sleep(0.02)


async def test_a_query_is_cancelled_by_its_caller_alone(
    client: httpx2.AsyncClient, app: FastAPI, database: Database, ada: Headers, rows: str
) -> None:
    limit(app, seconds=300)
    stranger = await sign_in(database, "bob")
    asked = asyncio.create_task(ask(client, ENDLESS, ada, id=QUERY))
    await until(app.state.sql, 1)

    refused = await client.delete(f"{PATH}/sql-console/query/{QUERY}", headers=stranger)
    cancelled = await client.delete(f"{PATH}/sql-console/query/{QUERY}", headers=ada)

    assert (refused.status_code, cancelled.status_code) == (404, 204)
    assert (await asked).status_code == 400
    assert error_of(await asked) == "The query was cancelled."
    assert app.state.sql.running == 0


async def test_a_client_that_leaves_ends_its_query(
    client: httpx2.AsyncClient, app: FastAPI, ada: Headers, rows: str
) -> None:
    limit(app, seconds=300)
    body = b'{"sql": "%s"}' % ENDLESS.encode()
    leaving = asyncio.Event()
    incoming = [{"type": "http.request", "body": body}]

    async def receive() -> dict[str, object]:
        if incoming:
            return dict(incoming.pop())
        await leaving.wait()
        return {"type": "http.disconnect"}

    async def send(_: object) -> None: ...

    from hublet.app import with_edge  # noqa: PLC0415

    scope = {
        "type": "http", "method": "POST", "path": f"{PATH}/sql-console/query", "query_string": b"",
        "raw_path": f"{PATH}/sql-console/query".encode(), "http_version": "1.1", "scheme": "http",
        "headers": [(b"host", b"hub.test"), (b"content-type", b"application/json"),
                    (b"authorization", ada["Authorization"].encode())],
        "client": ("127.0.0.1", 1), "server": ("hub.test", 80),
    }  # fmt: skip
    asked = asyncio.create_task(with_edge(app)(scope, receive, send))  # type: ignore[arg-type]
    await until(app.state.sql, 1)
    [(_, child)] = app.state.sql._running.values()  # noqa: SLF001

    leaving.set()
    await asked

    await until(app.state.sql, 0)
    assert child.exit_signal == 9


@pytest.mark.full
async def test_ten_at_once_stay_within_the_limits(
    client: httpx2.AsyncClient, app: FastAPI, database: Database, rows: str
) -> None:
    limit(app, seconds=300, queries=4, queries_per_user=2)
    people = [await sign_in(database, name) for name in ("bob", "cyn", "dan")]
    asked = [asyncio.create_task(ask(client, ENDLESS, who)) for who in people for _ in range(3)]
    asked.append(asyncio.create_task(ask(client, ENDLESS)))

    done: set[asyncio.Task[httpx2.Response]] = set()
    while len(done) < 6:
        done, _ = await asyncio.wait(asked, timeout=0.1)
    await until(app.state.sql, 4)
    for _, child in list(app.state.sql._running.values()):  # noqa: SLF001
        child.kill()
    answers = await asyncio.gather(*asked)

    assert sorted(answer.status_code for answer in answers) == [400] * 4 + [429] * 6
    assert {answer.headers.get("retry-after") for answer in answers} == {None, "2"}
    assert app.state.sql.running == 0


async def test_an_address_without_a_token_has_one_query_at_a_time(
    client: httpx2.AsyncClient, app: FastAPI, rows: str
) -> None:
    limit(app, seconds=300)
    first = asyncio.create_task(ask(client, ENDLESS, id=QUERY))
    await until(app.state.sql, 1)

    second = await ask(client, "SELECT 1 FROM train")
    await client.delete(f"{PATH}/sql-console/query/{QUERY}")

    assert second.status_code == 429
    assert error_of(second).startswith("An address may run 1 query at the same time")
    assert (await first).status_code == 400


async def test_the_deadline_is_told(client: httpx2.AsyncClient, app: FastAPI, rows: str) -> None:
    limit(app, seconds=1.5)

    response = await ask(client, ENDLESS)

    assert response.status_code == 400
    assert error_of(response) == "The query was stopped after 1.5 seconds, the most it may take."


@pytest.mark.parametrize(
    ("path", "split"),
    [
        ("train.csv", "train"),
        ("data/validation-00000-of-00003.parquet", "validation"),
        ("data/unlabeled-00000-of-00001.parquet", "unlabeled"),
        ("dev/part.jsonl", "validation"),
        ("my_test_file.csv", "test"),
        ("eval2.csv", "test"),
        ("contest.csv", None),
        ("rows.csv", None),
    ],
)
def test_the_split_of_a_path(path: str, split: str | None) -> None:
    assert split_of(path) == split


def entries(*paths: str) -> list[GitEntry]:
    return [GitEntry(path=path, type="file", oid="0" * 40, size=1) for path in paths]


@pytest.mark.parametrize(
    ("card", "paths", "keys"),
    [
        (None, ["a.csv", "b.csv"], {"default/train": 2}),
        (None, ["train.csv", "test.csv", "README.md"], {"default/train": 1, "default/test": 1}),
        (None, ["a.csv", "b.csv", "c.parquet"], {"default/train": 2}),
        (None, [".hidden.csv", "__x/a.csv", "dataset_infos.json", "a.txt"], {}),
        ({"configs": [{"config_name": "x", "data_files": "a/*.csv"}]}, ["a/1.csv", "a/b/2.csv"], {"x/train": 1}),
        ({"configs": [{"data_files": "a/**/*.csv"}]}, ["a/1.csv", "a/b/2.csv"], {"default/train": 2}),
        ({"configs": [{"data_dir": "a"}]}, ["a/test.csv", "b/test.csv"], {"default/test": 1}),
        (
            {"configs": [{"config_name": "x", "data_files": [{"split": "s", "path": ["1.csv", "2.csv"]}]}]},
            ["1.csv", "2.csv", "3.csv"],
            {"x/s": 2},
        ),
        (
            {"configs": [{"config_name": "x", "data_files": "1.csv"}, {"config_name": "y", "data_files": "[2-3].csv", "default": True}]},
            ["1.csv", "2.csv", "3.csv"],
            {"y/train": 2, "x/train": 1},
        ),
        ({"configs": [{"config_name": "../x", "data_files": "1.csv"}]}, ["1.csv"], {"default/train": 1}),
        ({"configs": [{"data_files": "*" * 300 + "z"}]}, ["1.csv"], {}),
        ({"configs": "nonsense"}, ["1.csv"], {"default/train": 1}),
    ],
)  # fmt: skip
def test_the_views_of_a_card(
    card: dict[str, object] | None, paths: list[str], keys: dict[str, int]
) -> None:
    found = find_views(entries(*paths), card)

    assert {view.key: len(view.files) for view in found} == keys
    assert [view.key for view in found] == list(keys)
