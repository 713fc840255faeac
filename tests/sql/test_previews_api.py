"""First rows, columns, statistics, and Parquet files of a dataset."""

import io
from pathlib import Path
from typing import Any

import httpx2
import pyarrow.parquet as pq
import pytest
from fastapi import FastAPI

from hublet.core.database import Database
from people import Headers
from sql.datasets import CSV, LINES, PATH, a_dataset, error_of, limit, parquet
from sql.datasets import rows as rows  # noqa: PLC0414 - a fixture

BASE = f"http://hub.test{PATH}/parquet"


async def test_the_first_rows_of_a_split(client: httpx2.AsyncClient, rows: str) -> None:
    response = await client.get(f"{PATH}/first-rows", params={"limit": 2})

    assert response.json() == {
        "commit": rows,
        "view": {
            "key": "default/train", "config": "default", "split": "train", "format": "csv",
            "files": 1, "size": 16,
        },
        "columns": [{"name": "a", "type": "BIGINT"}, {"name": "b", "type": "VARCHAR"}],
        "rows": [[1, "x"], [2, "y"]],
        "cut": "rows",
    }  # fmt: skip


async def test_the_schema_of_each_split(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_dataset(client, database, ada, {"train.csv": CSV, "test.csv": b"a\n1.5\n"})

    response = await client.get(f"{PATH}/schema")

    assert {view["key"]: view["columns"] for view in response.json()["views"]} == {
        "default/train": [{"name": "a", "type": "BIGINT"}, {"name": "b", "type": "VARCHAR"}],
        "default/test": [{"name": "a", "type": "DOUBLE"}],
    }


async def test_statistics_tell_what_columns_hold(
    client: httpx2.AsyncClient, database: Database, ada: Headers, tmp_path: Path
) -> None:
    sql = """SELECT range AS n, CASE WHEN range % 10 = 0 THEN NULL ELSE 'v' || range % 2 END AS t,
        range < 25 AS yes, DATE '2026-01-01' + range::INTEGER AS day, [range] AS list,
        CASE WHEN range = 0 THEN 'nan' ELSE range / 4 END::DOUBLE AS f FROM range(100)"""
    await a_dataset(client, database, ada, {"train.parquet": parquet(tmp_path, sql)})

    response = await client.get(f"{PATH}/statistics")

    found: dict[str, Any] = {column["name"]: column for column in response.json()["columns"]}
    assert response.json()["rows"] == 100
    number = found["n"]
    assert (number["min"], number["max"], number["mean"], number["nulls"]) == (0, 99, 49.5, 0)
    assert (len(number["histogram"]), sum(b["count"] for b in number["histogram"])) == (20, 100)
    text = found["t"]
    assert (text["count"], text["nulls"], text["distinct"]) == (90, 10, 2)
    assert text["top"] == [{"value": "v1", "count": 50}, {"value": "v0", "count": 40}]
    assert found["yes"]["top"] == [{"value": "false", "count": 75}, {"value": "true", "count": 25}]
    assert (found["day"]["min"], found["day"]["max"]) == ("2026-01-01", "2026-04-10")
    assert (found["list"]["kind"], found["list"]["distinct"]) == ("other", None)
    assert sum(b["count"] for b in found["f"]["histogram"]) == 99


async def test_statistics_of_a_commit_are_computed_once(
    client: httpx2.AsyncClient, rows: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await client.get(f"{PATH}/statistics")
    monkeypatch.setattr("hublet.sql.service.SqlEngine._once", None)

    assert (await client.get(f"{PATH}/statistics")).json() == first.json()


async def test_an_empty_table_has_statistics(
    client: httpx2.AsyncClient, database: Database, ada: Headers, tmp_path: Path
) -> None:
    content = parquet(tmp_path, "SELECT 1 AS a, 'x' AS b LIMIT 0")
    await a_dataset(client, database, ada, {"train.parquet": content})

    response = await client.get(f"{PATH}/statistics")

    assert response.json()["rows"] == 0
    assert [column["histogram"] for column in response.json()["columns"]] == [[], []]


async def test_what_is_no_table_is_refused_with_the_reason(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_dataset(client, database, ada, {"train.parquet": b"PAR1 is no Parquet"})

    response = await client.get(f"{PATH}/first-rows")

    assert response.status_code == 400
    assert "/data/0-0.parquet" in error_of(response) or "/proc/self/fd" in error_of(response)


async def test_parquet_files_of_the_repository_are_listed_and_redirected_to(
    client: httpx2.AsyncClient, database: Database, ada: Headers, tmp_path: Path
) -> None:
    content = parquet(tmp_path)
    names = [f"data/train-0000{number}-of-00002.parquet" for number in range(2)]
    commit = await a_dataset(client, database, ada, {}, large=dict.fromkeys(names, content))

    listed = await client.get(f"{PATH}/parquet")
    second = await client.get(f"{PATH}/parquet/default/train/1.parquet")

    urls = [f"{BASE}/default/train/0.parquet", f"{BASE}/default/train/1.parquet"]
    assert listed.json() == {"default": {"train": urls}}
    assert (await client.get(f"{PATH}/parquet/default")).json() == {"train": urls}
    assert (await client.get(f"{PATH}/parquet/default/train")).json() == urls
    assert second.status_code == 302
    assert second.headers["location"] == f"/datasets/ada/rows/resolve/{commit}/{names[1]}"


async def test_other_files_are_converted_when_they_are_asked_for(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_dataset(client, database, ada, {"train.jsonl": LINES})
    [url] = (await client.get(f"{PATH}/parquet/default/train")).json()

    whole = await client.get(url)
    part = await client.get(url, headers={"Range": "bytes=0-3"})
    head = await client.head(url)

    table = pq.read_table(io.BytesIO(whole.content))
    assert table.to_pydict() == {"a": [1, 2, 3], "b": ["x", "y", "x"]}
    assert (part.status_code, part.content) == (206, b"PAR1")
    assert int(head.headers["content-length"]) == len(whole.content)


async def test_what_is_too_large_to_convert_is_not_listed(
    client: httpx2.AsyncClient, app: FastAPI, rows: str
) -> None:
    limit(app, export_bytes=10)

    refused = await client.get(f"{PATH}/parquet/default/train/0.parquet")

    assert (await client.get(f"{PATH}/parquet")).json() == {}
    assert refused.status_code == 413
    assert error_of(refused) == (
        "The files of default/train have 16 bytes; up to 10 are exported as Parquet."
    )


@pytest.mark.parametrize("path", ["no", "default/no", "default/train/1.parquet", "default/train/x"])
async def test_what_is_not_there_is_404(client: httpx2.AsyncClient, rows: str, path: str) -> None:
    assert (await client.get(f"{PATH}/parquet/{path}")).status_code == 404
