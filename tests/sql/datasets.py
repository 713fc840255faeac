"""Datasets with files of every format for tests, and queries over them, one line each."""

import gzip
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import httpx2
import pytest
from fastapi import FastAPI

from hublet.core.database import Database
from hublet.sql.service import SqlEngine
from people import Headers
from repos.content import pointer, put, put_blob
from repositories import a_repo

PATH = "/api/datasets/ada/rows"
CSV = b"a,b\n1,x\n2,y\n3,x\n"
TSV = b"a\tb\n1\tx\n2\ty\n3\tx\n"
LINES = b'{"a": 1, "b": "x"}\n{"a": 2, "b": "y"}\n{"a": 3, "b": "x"}\n'
JSON = b'[{"a": 1, "b": "x"}, {"a": 2, "b": "y"}, {"a": 3, "b": "x"}]'
FILES = {
    "train.csv": CSV,
    "train.tsv": TSV,
    "train.jsonl": LINES,
    "train.ndjson": LINES,
    "train.json": JSON,
    "train.csv.gz": gzip.compress(CSV, mtime=0),
    "train.jsonl.gz": gzip.compress(LINES, mtime=0),
}


def parquet(
    folder: Path, sql: str = "SELECT a, b FROM (VALUES (1, 'x'), (2, 'y'), (3, 'x')) t(a, b)"
) -> bytes:
    """The rows of a query as a Parquet file."""
    path = folder / "made.parquet"
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({sql}) TO '{path}' (FORMAT parquet)")
    return path.read_bytes()


async def a_dataset(
    client: httpx2.AsyncClient,
    database: Database,
    owner: Headers,
    files: Mapping[str, bytes],
    *,
    large: Mapping[str, bytes] | None = None,
    **body: Any,
) -> str:
    """Make ada/rows with these files; the large ones are not in git. Return its commit."""
    repo_id = await a_repo(client, owner, "ada/rows", type="dataset", **body)
    for content in (large or {}).values():
        await put_blob(database, repo_id, content)
    pointers = {path: pointer(content) for path, content in (large or {}).items()}
    return await put(database, repo_id, dict(files) | pointers)


async def ask(
    client: httpx2.AsyncClient, sql: str, who: Headers | None = None, **more: Any
) -> httpx2.Response:
    return await client.post(
        f"{PATH}/sql-console/query", headers=who or {}, json={"sql": sql} | more
    )


def limit(app: FastAPI, **changes: Any) -> None:
    """Change settings of SQL in a running hub."""
    engine: SqlEngine = app.state.sql
    engine.settings = replace(engine.settings, sql=replace(engine.settings.sql, **changes))


def error_of(response: httpx2.Response) -> str:
    text: str = response.json()["error"]
    return text


@pytest.fixture
async def rows(client: httpx2.AsyncClient, database: Database, ada: Headers) -> str:
    return await a_dataset(client, database, ada, {"train.csv": CSV})
