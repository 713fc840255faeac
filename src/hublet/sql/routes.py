"""HTTP for SQL over datasets: queries, first rows, columns and their statistics, Parquet files."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AsyncExitStack, aclosing
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import msgspec
from fastapi import Depends, Query, Request, Response
from pydantic import MISSING
from starlette.responses import RedirectResponse
from starlette.types import Receive, Scope, Send

from hublet.core.errors import HubError, InvalidRequest
from hublet.core.http import Db, Router
from hublet.core.http.exchange import exchange_of
from hublet.core.http.file_responses import FILE_RESPONSES, blob_response
from hublet.core.ids import new_object_id
from hublet.repos.auth import MOVED, count_download, raw_url_of
from hublet.repos.records import RepoAddress, RepoType
from hublet.sql.child import QueryHolder, QueryRequest, ResultFormat, RunningQuery
from hublet.sql.errors import ViewNotFound
from hublet.sql.schemas import (
    DatasetSchema,
    DatasetStatistics,
    DescribedView,
    FirstRows,
    QueryId,
    RunSqlQuery,
    SqlResult,
    ViewInfo,
    ViewList,
)
from hublet.sql.service import FIRST_ROWS, SqlEngine
from hublet.sql.views import PARQUET, Dataset, DatasetView, get_view, open_dataset
from hublet.tokens.auth import MaybeCaller

_DATASET = "/api/datasets/{namespace:owner}/{name}"
_MEDIA_TYPES = {
    ResultFormat.json: "application/json",
    ResultFormat.ndjson: "application/x-ndjson",
    ResultFormat.arrow: "application/vnd.apache.arrow.stream",
}
_MEDIA_TYPE_OF_PARQUET = "application/vnd.apache.parquet"
_PIECE_BYTES = 1 << 20
_LIMITS: dict[int | str, dict[str, Any]] = {
    413: {"description": "The views have more files or bytes than a query may read."},
    429: {
        "description": "As many queries run already as may; `Retry-After` says when to come back."
    },
    501: {"description": "The extra hublet[sql] is not installed."},
}
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {
        "model": SqlResult,
        "description": "The rows, as they come. Of NDJSON each line has one of columns, row, end, error.",
        "content": {
            "application/x-ndjson": {},
            "application/vnd.apache.arrow.stream": {},
        },
    },
    **_LIMITS,
}
_REDIRECTS: dict[int | str, dict[str, Any]] = {
    302: {
        "description": "A Parquet file of the repository itself is at `Location`.",
        "headers": {"Location": {"required": True, "schema": {"type": "string"}}},
    }
}

query_router = Router(prefix=f"{_DATASET}/sql-console", tags=["sql-console"], responses=MOVED)
preview_router = Router(prefix=_DATASET, tags=["datasets"], responses=MOVED | _LIMITS)
ROUTERS: tuple[Router, ...] = (query_router, preview_router)


async def _address(request: Request, namespace: str, name: str) -> RepoAddress:
    return RepoAddress(
        type=RepoType.dataset, namespace=namespace, name=name, request_url=raw_url_of(request)
    )


DatasetAddress = Annotated[RepoAddress, Depends(_address)]


async def _dataset(
    database: Db,
    caller: MaybeCaller,
    address: DatasetAddress,
    revision: Annotated[str, Query(min_length=1, max_length=300)] = "main",
) -> Dataset:
    return await open_dataset(database, caller, address, revision)


RequestedDataset = Annotated[Dataset, Depends(_dataset)]
_Name = Annotated[str | None, Query(min_length=1, max_length=100)]


async def _view(
    dataset: RequestedDataset, config: _Name = None, split: _Name = None
) -> DatasetView:
    return get_view(dataset.views, config, split)


RequestedView = Annotated[DatasetView, Depends(_view)]


async def _engine(request: Request) -> SqlEngine:
    engine: SqlEngine = request.app.state.sql
    return engine


Engine = Annotated[SqlEngine, Depends(_engine)]


async def _holder(request: Request, caller: MaybeCaller) -> QueryHolder:
    return QueryHolder.of(caller, address=exchange_of(request).address)


Holder = Annotated[QueryHolder, Depends(_holder)]


@query_router.post("/query", response_class=Response, responses=_ANSWERS)
async def run_sql_query(
    database: Db,
    caller: MaybeCaller,
    holder: Holder,
    address: DatasetAddress,
    engine: Engine,
    body: RunSqlQuery,
) -> Response:
    """Run one SELECT over the files of a dataset at a revision, and stream its rows.

    Its tables are the splits of the default configuration, or the `views` that are named. It ends
    when the client leaves, or when `DELETE` names its `id`, which the client may choose.
    """
    names = {view.viewName: view.key for view in body.views}
    if len({name.lower() for name in names}) != len(body.views):
        raise InvalidRequest("views: each viewName must be another one.")
    dataset = await open_dataset(database, caller, address, body.revision)
    query = QueryRequest(
        sql=body.sql,
        views=names,
        format=ResultFormat(body.format),
        limit=None if body.limit is MISSING else body.limit,
        id=new_object_id() if body.id is MISSING else body.id,
    )
    return _QueryResponse(engine, dataset, holder, query)


@query_router.delete("/query/{query_id}", status_code=204)
async def cancel_sql_query(
    _address: DatasetAddress, holder: Holder, engine: Engine, query_id: QueryId
) -> None:
    """End a query of the caller's that runs now, whether or not they may still read the dataset."""
    await engine.cancel(query_id, holder)


@query_router.get("/views")
async def list_sql_views(dataset: RequestedDataset) -> ViewList:
    """List the views that queries can name, those of the default configuration first."""
    return ViewList(commit=dataset.commit, views=[ViewInfo.of(view) for view in dataset.views])


class _QueryResponse(Response):
    """Runs a query while it is sent; ends it when the client leaves."""

    def __init__(
        self, engine: SqlEngine, dataset: Dataset, holder: QueryHolder, query: QueryRequest
    ) -> None:
        super().__init__()
        self._engine, self._dataset, self._holder, self._query = engine, dataset, holder, query

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.create_task(self._send(send), name="sql query")
        gone = asyncio.create_task(_wait_for_disconnect(receive), name="disconnect")
        try:
            await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            if not sending.done():
                sending.cancel()
            await asyncio.wait({sending, gone})
        if not sending.cancelled():
            # Before the answer starts an error becomes one.
            sending.result()

    async def _send(self, send: Send) -> None:
        async with AsyncExitStack() as stack:
            running = await stack.enter_async_context(
                self._engine.query(self._dataset, self._holder, self._query)
            )
            media_type = _MEDIA_TYPES[self._query.format]
            headers = {
                "content-type": media_type,
                "cache-control": "no-store",
                "x-accel-buffering": "no",
                "x-query-id": running.id,
                "x-repo-commit": self._dataset.commit,
            }
            raw = [(name.encode(), value.encode()) for name, value in headers.items()]
            await send({"type": "http.response.start", "status": 200, "headers": raw})
            async with aclosing(self._body(running)) as body:
                async for part in body:
                    await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b""})

    async def _body(self, running: RunningQuery) -> AsyncGenerator[bytes]:
        head, tail = _HEADS[self._query.format], _TAILS[self._query.format]
        yield head(running, self._dataset.commit)
        error = ""
        try:
            async for part in running.rows():
                yield part
        except HubError as failure:
            if self._query.format is ResultFormat.arrow:
                # Without its end the stream is no whole one, which every reader notices.
                return
            error = failure.message
        yield tail(running, error)


def _json_head(running: RunningQuery, commit: str) -> bytes:
    start = msgspec.json.encode({"id": running.id, "commit": commit})[:-1]
    return start + b',"columns":' + running.columns_json + b',"rows":['


def _json_tail(running: RunningQuery, error: str) -> bytes:
    return b"]," + msgspec.json.encode(_ending(running, error))[1:]


def _line_head(running: RunningQuery, commit: str) -> bytes:
    start = msgspec.json.encode({"id": running.id, "commit": commit})[:-1]
    return start + b',"columns":' + running.columns_json + b"}\n"


def _line_tail(running: RunningQuery, error: str) -> bytes:
    ending = {"error": error} if error else {"end": _ending(running, "")}
    return msgspec.json.encode(ending) + b"\n"


def _ending(running: RunningQuery, error: str) -> dict[str, Any]:
    if error:
        return {"error": error}
    return {"rowCount": running.row_count, "truncated": running.cut or None}


_HEADS: dict[ResultFormat, Callable[[RunningQuery, str], bytes]] = {
    ResultFormat.json: _json_head,
    ResultFormat.ndjson: _line_head,
    ResultFormat.arrow: lambda _running, _commit: b"",
}
_TAILS: dict[ResultFormat, Callable[[RunningQuery, str], bytes]] = {
    ResultFormat.json: _json_tail,
    ResultFormat.ndjson: _line_tail,
    ResultFormat.arrow: lambda _running, _error: b"",
}


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


@preview_router.get("/first-rows")
async def get_first_rows(
    engine: Engine,
    dataset: RequestedDataset,
    view: RequestedView,
    limit: Annotated[int, Query(ge=1, le=FIRST_ROWS)] = FIRST_ROWS,
) -> FirstRows:
    """Show the first rows of a split."""
    rows = await engine.first_rows(dataset, view, limit=limit)
    return FirstRows(commit=dataset.commit, view=ViewInfo.of(view), **rows.__dict__)


@preview_router.get("/schema")
async def get_dataset_schema(
    engine: Engine, dataset: RequestedDataset, config: _Name = None, split: _Name = None
) -> DatasetSchema:
    """Show the columns and their types, for each split of a configuration."""
    first = get_view(dataset.views, config, split)
    chosen = [v for v in dataset.views if v.config == first.config and split in {None, v.split}]
    views = [
        DescribedView(
            **ViewInfo.of(view).__dict__, columns=(await engine.schema(dataset, view)).columns
        )
        for view in chosen
    ]
    return DatasetSchema(commit=dataset.commit, views=views)


@preview_router.get("/statistics")
async def get_column_statistics(
    engine: Engine, dataset: RequestedDataset, view: RequestedView
) -> DatasetStatistics:
    """Show what each column of a split holds: counts, bounds, mean, histogram, frequent values."""
    found = await engine.statistics(dataset, view)
    return DatasetStatistics(commit=dataset.commit, view=ViewInfo.of(view), **found.__dict__)


def _addresses(
    request: Request, dataset: Dataset, engine: SqlEngine, view: DatasetView
) -> list[str]:
    """Return where the Parquet files of a view are."""
    if not engine.is_exported(view):
        return []
    count = len(view.files) if view.format == PARQUET else 1
    base_url = request.app.state.settings.base_url
    place = f"{base_url}/api/datasets/{dataset.revision.repo.full_name}/parquet"
    config, split = quote(view.config, safe=""), quote(view.split, safe="")
    return [f"{place}/{config}/{split}/{number}.parquet" for number in range(count)]


@preview_router.get("/parquet")
async def list_parquet_files(
    request: Request, engine: Engine, dataset: RequestedDataset
) -> dict[str, dict[str, list[str]]]:
    """List the addresses of a dataset's Parquet files, by configuration and split.

    Small CSV and JSON files are converted when they are downloaded.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for view in dataset.views:
        if addresses := _addresses(request, dataset, engine, view):
            found.setdefault(view.config, {})[view.split] = addresses
    return found


@preview_router.get("/parquet/{config}")
async def list_parquet_files_of_config(
    request: Request, engine: Engine, dataset: RequestedDataset, config: str
) -> dict[str, list[str]]:
    """List the addresses of the Parquet files of a configuration, by split."""
    get_view(dataset.views, config, None)
    return {
        view.split: addresses
        for view in dataset.views
        if view.config == config and (addresses := _addresses(request, dataset, engine, view))
    }


@preview_router.get("/parquet/{config}/{split}")
async def list_parquet_files_of_split(
    request: Request, engine: Engine, dataset: RequestedDataset, config: str, split: str
) -> list[str]:
    """List the addresses of the Parquet files of a split."""
    return _addresses(request, dataset, engine, get_view(dataset.views, config, split))


class _LocalFile:
    """A file of this machine as the source of a response."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def pieces(self, start: int, end: int) -> Generator[bytes]:
        with self.path.open("rb") as file:
            file.seek(start)
            while start < end and (piece := file.read(min(end - start, _PIECE_BYTES))):
                yield piece
                start += len(piece)


@preview_router.get(
    "/parquet/{config}/{split}/{file}",
    response_class=Response,
    responses=FILE_RESPONSES | _REDIRECTS,
)
async def download_parquet_file(
    request: Request, engine: Engine, dataset: RequestedDataset, config: str, split: str, file: str
) -> Response:
    """Download a Parquet file of a split, `0.parquet` and so on."""
    view = get_view(dataset.views, config, split)
    numbers = range(len(view.files) if view.format == PARQUET else 1)
    number = next((each for each in numbers if file == f"{each}.parquet"), None)
    if number is None:
        raise ViewNotFound(f"{view.key}/{file}")
    repo = dataset.revision.repo
    if view.format == PARQUET:
        path = quote(view.files[number].path)
        return RedirectResponse(
            f"/datasets/{repo.full_name}/resolve/{dataset.commit}/{path}", status_code=302
        )
    export = await engine.export(dataset, view)
    size = (await asyncio.to_thread(export.stat)).st_size
    response = await blob_response(
        request,
        _LocalFile(export),
        size=size,
        etag=export.name,
        file_name=f"{view.split}.parquet",
        media_type=_MEDIA_TYPE_OF_PARQUET,
        headers={"X-Repo-Commit": dataset.commit},
    )
    if "range" not in request.headers and not exchange_of(request).without_body:
        count_download(request, repo.id)
    return response
