"""Queries over a dataset: formats, revisions, views, limits, rights."""

import io
import json
from pathlib import Path

import httpx2
import pyarrow as pa
import pytest
from fastapi import FastAPI

from hublet.core.database import Database
from people import Headers, sign_in
from repos.content import put
from repositories import a_repo
from sql.datasets import CSV, FILES, PATH, a_dataset, ask, error_of, limit, parquet
from sql.datasets import rows as rows  # noqa: PLC0414 - a fixture

EVERYTHING = "SELECT a, b FROM train ORDER BY a"


async def test_a_query_answers_with_columns_and_rows(
    client: httpx2.AsyncClient, ada: Headers, rows: str
) -> None:
    response = await ask(client, EVERYTHING, ada, id="a" * 24)

    assert response.status_code == 200
    assert response.json() == {
        "id": "a" * 24,
        "commit": rows,
        "columns": [{"name": "a", "type": "BIGINT"}, {"name": "b", "type": "VARCHAR"}],
        "rows": [[1, "x"], [2, "y"], [3, "x"]],
        "rowCount": 3,
        "truncated": None,
    }
    assert response.headers["x-query-id"] == "a" * 24


@pytest.mark.parametrize("name", FILES)
async def test_each_format_is_the_same_table(
    client: httpx2.AsyncClient, database: Database, ada: Headers, name: str
) -> None:
    await a_dataset(client, database, ada, {name: FILES[name]})

    response = await ask(client, EVERYTHING)

    assert response.json()["rows"] == [[1, "x"], [2, "y"], [3, "x"]]


async def test_large_files_are_read_where_they_lie(
    client: httpx2.AsyncClient, database: Database, ada: Headers, tmp_path: Path
) -> None:
    content = parquet(tmp_path)
    await a_dataset(client, database, ada, {}, large={"data/train-00000-of-00001.parquet": content})

    response = await ask(client, EVERYTHING)

    assert response.json()["rows"] == [[1, "x"], [2, "y"], [3, "x"]]


async def test_ndjson_has_a_line_for_columns_each_row_and_the_end(
    client: httpx2.AsyncClient, rows: str
) -> None:
    response = await ask(client, EVERYTHING, format="ndjson", limit=2)

    head, *lines, end = map(json.loads, response.text.splitlines())
    assert response.headers["content-type"] == "application/x-ndjson"
    assert [column["name"] for column in head["columns"]] == ["a", "b"]
    assert lines == [{"row": [1, "x"]}, {"row": [2, "y"]}]
    assert end == {"end": {"rowCount": 2, "truncated": "rows"}}


async def test_arrow_is_a_stream_of_batches(client: httpx2.AsyncClient, rows: str) -> None:
    response = await ask(client, EVERYTHING, format="arrow")

    table = pa.ipc.open_stream(io.BytesIO(response.content)).read_all()
    assert table.to_pydict() == {"a": [1, 2, 3], "b": ["x", "y", "x"]}


async def test_an_arrow_stream_tells_that_it_was_cut(client: httpx2.AsyncClient, rows: str) -> None:
    response = await ask(client, EVERYTHING, format="arrow", limit=2)

    reader = pa.ipc.open_stream(io.BytesIO(response.content))
    batches = list(reader.iter_batches_with_custom_metadata())
    assert sum(each.batch.num_rows for each in batches) == 2
    assert dict(batches[-1].custom_metadata) == {b"truncated": b"rows"}


async def test_values_of_every_type_are_json(client: httpx2.AsyncClient, rows: str) -> None:
    sql = """SELECT 170141183460469231731687303715884105727::HUGEINT, TIMESTAMPTZ '2026-01-02 03:04:05Z',
        DATE '2026-01-02', 1.50::DECIMAL(10, 2), 'nan'::DOUBLE, 'ab'::BLOB, [1, NULL], {'k': true},
        MAP {'k': 1}, INTERVAL 90 SECOND, NULL FROM train LIMIT 1"""

    response = await ask(client, sql)

    assert response.json()["rows"] == [
        [
            170141183460469231731687303715884105727, "2026-01-02T03:04:05Z", "2026-01-02", "1.50",
            None, "YWI=", [1, None], {"k": True}, {"k": 1}, "PT90S", None,
        ]
    ]  # fmt: skip


async def test_a_revision_is_pinned(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    repo_id = await a_repo(client, ada, "ada/rows", type="dataset")
    old = await put(database, repo_id, {"train.csv": CSV})
    new = await put(database, repo_id, {"train.csv": CSV + b"4,z\n"})

    before = await ask(client, "SELECT count(*) FROM train", revision=old)
    after = await ask(client, "SELECT count(*) FROM train")

    assert (before.json()["commit"], before.json()["rows"]) == (old, [[3]])
    assert (after.json()["commit"], after.json()["rows"]) == (new, [[4]])


async def test_views_are_named_by_the_query(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    card = b"---\nconfigs:\n- config_name: a\n  data_files: a/*.csv\n- config_name: b\n  data_files: b.csv\n---\n"
    await a_dataset(client, database, ada, {"README.md": card, "a/1.csv": CSV, "b.csv": CSV})
    views = [{"key": "a/train", "viewName": "one"}, {"key": "b/train", "viewName": "two"}]

    response = await ask(client, "SELECT count(*) FROM one JOIN two USING (a)", views=views)

    assert response.json()["rows"] == [[3]]


@pytest.mark.parametrize(
    ("more", "status", "sentence"),
    [
        ({"views": [{"key": "no/train", "viewName": "x"}]}, 404, "There is no view no/train at this revision."),
        ({"views": [{"key": "default/train", "viewName": "x"}] * 2}, 400, "views: each viewName must be another one."),
        ({"revision": "nowhere"}, 404, "Revision nowhere was not found."),
    ],
)  # fmt: skip
async def test_what_is_not_there_is_refused(
    client: httpx2.AsyncClient, rows: str, more: dict[str, object], status: int, sentence: str
) -> None:
    response = await ask(client, "SELECT 1", **more)

    assert response.status_code == status
    assert "revision" in more or error_of(response) == sentence


async def test_a_dataset_without_tables_says_so(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_dataset(client, database, ada, {"README.md": b"Hello"})

    response = await ask(client, "SELECT 1")

    assert response.status_code == 404
    assert error_of(response).startswith("There is no file here that can be read as a table")


async def test_too_many_files_and_bytes_are_refused(
    client: httpx2.AsyncClient, app: FastAPI, rows: str
) -> None:
    limit(app, file_bytes=5)

    response = await ask(client, "SELECT * FROM train")

    assert response.status_code == 413
    assert error_of(response) == "The files of the views have 16 bytes, and a query may read 5."


async def test_an_answer_is_cut_at_its_bytes(
    client: httpx2.AsyncClient, app: FastAPI, rows: str
) -> None:
    limit(app, answer_bytes=2000)

    response = await ask(client, "SELECT range FROM range(1000)")

    assert response.json()["truncated"] == "bytes"
    assert 0 < response.json()["rowCount"] < 1000


async def test_a_query_that_fails_on_its_way_says_so_in_the_stream(
    client: httpx2.AsyncClient, rows: str
) -> None:
    sql = "SELECT CASE WHEN range < 5000 THEN range ELSE error('late') END FROM range(10000)"

    response = await ask(client, sql, format="ndjson")

    assert response.status_code == 200
    assert "late" in json.loads(response.text.splitlines()[-1])["error"]


async def test_a_private_dataset_is_open_to_who_may_read_it_alone(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_dataset(client, database, ada, {"train.csv": CSV}, private=True)
    stranger = await sign_in(database, "bob")
    without_scope = await sign_in(database, "ada", scopes=["webhooks"])
    unknown = await client.get("/api/datasets/ada/nothing/first-rows", headers=stranger)

    for who in ({}, stranger, without_scope):
        for path in ("first-rows", "schema", "statistics", "parquet", "sql-console/views"):
            refused = await client.get(f"{PATH}/{path}", headers=who)
            assert refused.status_code in {401, 403, 404}, path
        assert (await ask(client, EVERYTHING, who)).status_code in {401, 403, 404}
    assert (await ask(client, EVERYTHING, stranger)).json() == unknown.json()
    assert (await ask(client, EVERYTHING, ada)).status_code == 200


async def test_the_gate_of_a_dataset_guards_its_rows(
    client: httpx2.AsyncClient, database: Database, ada: Headers, rows: str
) -> None:
    await client.put(f"{PATH}/settings", headers=ada, json={"gated": "manual"})
    stranger = await sign_in(database, "bob")

    assert (await ask(client, EVERYTHING, stranger)).status_code == 403
    assert (await client.get(f"{PATH}/statistics", headers=stranger)).status_code == 403
    assert (await ask(client, EVERYTHING, ada)).status_code == 200


async def test_without_the_extra_the_answer_names_it(
    client: httpx2.AsyncClient, rows: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hublet.sql.child.find_spec", lambda _: None)

    response = await ask(client, EVERYTHING)

    assert response.status_code == 501
    assert "hublet[sql]" in error_of(response)


async def test_anonymous_queries_can_be_closed(
    client: httpx2.AsyncClient, app: FastAPI, ada: Headers, rows: str
) -> None:
    limit(app, anonymous=False)

    assert (await ask(client, EVERYTHING)).status_code == 403
    assert (await ask(client, EVERYTHING, ada)).status_code == 200
