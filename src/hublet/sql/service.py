"""SQL over the files of a dataset: queries within limits, previews that are kept, Parquet exports."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec
from prometheus_client import CollectorRegistry
from prometheus_client import Counter as MetricCounter
from pydantic import BaseModel, ValidationError

from hublet.core import metadata
from hublet.core.clock import monotonic
from hublet.core.config import Settings
from hublet.core.database import Database
from hublet.core.errors import HubError
from hublet.core.file_cache import cache_in
from hublet.core.ids import new_object_id
from hublet.core.limits import share_of
from hublet.core.logs import get_logger
from hublet.sql import child, program
from hublet.sql.child import (
    Child,
    QueryHolder,
    QueryRequest,
    QueryRun,
    RunningQuery,
)
from hublet.sql.errors import (
    AnonymousQuery,
    DataTooLarge,
    InvalidQuery,
    QueryNotFound,
    TooManyQueries,
)
from hublet.sql.files import LocalFiles
from hublet.sql.sandbox import ChildOrder, ChildView
from hublet.sql.schemas import TableRows, ViewColumns, ViewStatistics
from hublet.sql.views import (
    PARQUET,
    Dataset,
    DatasetView,
    NamedView,
    choose_views,
    name_views,
)

FIRST_ROWS = 100
# A part of the name under which previews are kept: another number when their shape changes.
_VERSION = "sql-1"
_PREVIEWS_AT_ONCE = 2
_MAX_WAITING_PREVIEWS = 50
_FAILURE_SECONDS = 600.0
_MAX_FAILURES = 1000
_CANCELLED = "sql.cancelled."
# The wake-up by another process may be lost.
_LOOK_SECONDS = 5.0

_log = get_logger(__name__)

T = TypeVar("T")
P = TypeVar("P", bound=BaseModel)


class SqlEngine:
    """What one process of the hub runs: its queries, its previews, and their limits."""

    def __init__(self, database: Database, registry: CollectorRegistry | None = None) -> None:
        self._database = database
        self.settings: Settings = database.hub.settings
        self.files = LocalFiles(self.settings)
        self._held: Counter[str] = Counter()
        self._running: dict[str, tuple[str, Child]] = {}
        self._previews = asyncio.Semaphore(_PREVIEWS_AT_ONCE)
        self._in_work: dict[str, asyncio.Task[Any]] = {}
        self._failures: dict[str, tuple[float, HubError]] = {}
        labels = ("task", "outcome")
        self._count = MetricCounter(
            "hublet_sql_queries", "Queries and previews that ended.", labels, registry=registry
        )
        self._seconds = MetricCounter(
            "hublet_sql_seconds", "How long they took together.", labels, registry=registry
        )
        for metric in (self._count, self._seconds):
            # There from the start, so that the first query is seen as a rise from 0.
            metric.labels("query", "done")

    @property
    def running(self) -> int:
        """How many queries run now."""
        return self._held.total()

    @asynccontextmanager
    async def query(
        self, dataset: Dataset, holder: QueryHolder, request: QueryRequest
    ) -> AsyncIterator[RunningQuery]:
        """Run a query during the body, which begins when its columns are known."""
        sql = self.settings.sql
        child.check_installed()
        if holder.is_anonymous and not sql.anonymous:
            raise AnonymousQuery
        limit = sql.rows if request.limit is None else min(request.limit, sql.rows)
        with self._slot(holder):
            views = self._views_of(dataset, request)
            order = ChildOrder(
                id=request.id,
                task="query",
                sql=request.sql,
                format=request.format,
                views=await self._bring(dataset, views),
                rows=limit,
                bytes=sql.answer_bytes,
                seconds=sql.seconds,
                memory=sql.memory_bytes,
            )
            async with self._child(order) as run, self._cancellable(request.id, holder, run.child):
                yield RunningQuery(request.id, await run.columns(), run)

    @contextmanager
    def _slot(self, holder: QueryHolder) -> Iterator[None]:
        """Count a query of this holder during the body, if there may be one more."""
        sql = self.settings.sql
        processes = self._database.hub.process.api_processes
        of_hub = share_of(sql.queries, processes=processes)
        own = 1 if holder.is_anonymous else share_of(sql.queries_per_user, processes=processes)
        if self._held[holder.key] >= own:
            raise TooManyQueries("An address" if holder.is_anonymous else "A user", own)
        if self._held.total() >= of_hub:
            raise TooManyQueries("This hub", of_hub)
        self._held[holder.key] += 1
        try:
            yield
        finally:
            self._held[holder.key] -= 1

    def _views_of(self, dataset: Dataset, request: QueryRequest) -> list[NamedView]:
        """Return the views that a query needs: those that its text names, or else all."""
        if request.views:
            return choose_views(dataset.views, request.views)
        named = name_views(dataset.views)
        text = request.sql.lower()
        return [each for each in named if each.name.lower() in text] or named

    async def _bring(self, dataset: Dataset, views: Sequence[NamedView]) -> tuple[ChildView, ...]:
        """Return the views with files of this machine."""
        sql = self.settings.sql
        entries = [file for each in views for file in each.view.files]
        if len(entries) > sql.files:
            raise DataTooLarge(
                f"The views have {len(entries):,} files, and a query may read {sql.files:,}."
            )
        size = sum(each.size for each in entries)
        if size > sql.file_bytes:
            raise DataTooLarge(
                f"The files of the views have {size:,} bytes, and a query may read "
                f"{sql.file_bytes:,}."
            )
        paths = iter(await self.files.ensure(self._database, dataset.revision, entries))
        return tuple(
            ChildView(
                name=each.name,
                format=each.view.format,
                paths=tuple(next(paths) for _ in each.view.files),
            )
            for each in views
        )

    @asynccontextmanager
    async def _child(self, order: ChildOrder) -> AsyncIterator[QueryRun]:
        sandbox = await child.choose_sandbox(self.settings)
        started = monotonic()
        run: QueryRun | None = None
        try:
            async with child.running(sandbox, order) as process:
                run = QueryRun(process, order)
                yield run
        finally:
            outcome = "lost" if run is None else run.outcome
            seconds = monotonic() - started
            self._count.labels(order.task, outcome).inc()
            self._seconds.labels(order.task, outcome).inc(seconds)
            _log.info("query ended", id=order.id, task=order.task, outcome=outcome)

    @asynccontextmanager
    async def _cancellable(
        self, query_id: str, holder: QueryHolder, process: Child
    ) -> AsyncIterator[None]:
        """Let the holder cancel a query by its id, in this process or through another one."""
        self._running[query_id] = (holder.key, process)
        watching = asyncio.create_task(self._watch(query_id, holder, process))
        try:
            yield
        finally:
            self._running.pop(query_id, None)
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    async def _watch(self, query_id: str, holder: QueryHolder, process: Child) -> None:
        name = _CANCELLED + query_id
        with self._database.subscribe(name) as changes:
            while True:
                await changes.wait(timeout=_LOOK_SECONDS)
                with suppress(HubError):
                    async with self._database.read() as conn:
                        told = await metadata.find(conn, name)
                    if told == holder.key:
                        process.cancel()
                        return

    async def cancel(self, query_id: str, holder: QueryHolder) -> None:
        """End a query of this holder; one of another process of the hub ends soon after."""
        if (found := self._running.get(query_id)) is not None:
            if found[0] != holder.key:
                raise QueryNotFound
            found[1].cancel()
            return
        if self._database.hub.process.api_processes == 1:
            raise QueryNotFound
        name = _CANCELLED + query_id
        async with self._database.transaction() as conn:
            # Those of earlier queries, whose ids are smaller, have served.
            await metadata.remove_range(conn, after=_CANCELLED, before=name)
            await metadata.set_value(conn, name, holder.key)
            conn.wake(name)

    async def first_rows(
        self, dataset: Dataset, view: DatasetView, *, limit: int = FIRST_ROWS
    ) -> TableRows:
        """Return the first rows of a view, from the cache if somebody asked before."""
        build = partial(self._build_rows, dataset, view)
        rows = await self._preview(dataset, f"rows {view.key}", build, TableRows)
        return rows if limit >= len(rows.rows) else _cut_rows(rows, limit)

    async def _build_rows(self, dataset: Dataset, view: DatasetView) -> TableRows:
        sql = self.settings.sql
        order = await self._preview_order(dataset, view, task="query", seconds=sql.seconds)
        async with self._child(order) as run:
            query = RunningQuery(order.id, await run.columns(), run)
            data = b"".join([part async for part in query.rows()])
        rows = msgspec.json.decode(b"[" + data + b"]")
        return TableRows.model_validate(
            {"columns": msgspec.json.decode(query.columns_json), "rows": rows, "cut": query.cut}
        )

    async def _preview_order(
        self, dataset: Dataset, view: DatasetView, *, task: str, seconds: float
    ) -> ChildOrder:
        sql = self.settings.sql
        views = await self._bring(dataset, [NamedView(name="data", view=view)])
        return ChildOrder(
            id=new_object_id(),
            task=task,
            sql="SELECT * FROM data",
            views=views,
            rows=FIRST_ROWS,
            bytes=sql.export_bytes if task == PARQUET else min(sql.answer_bytes, 1 << 20),
            seconds=seconds,
            memory=sql.memory_bytes,
        )

    async def schema(self, dataset: Dataset, view: DatasetView) -> ViewColumns:
        """Return the columns of a view and their types."""
        build = partial(self._build_schema, dataset, view)
        return await self._preview(dataset, f"schema {view.key}", build, ViewColumns)

    async def _build_schema(self, dataset: Dataset, view: DatasetView) -> ViewColumns:
        seconds = self.settings.sql.seconds
        order = await self._preview_order(dataset, view, task="schema", seconds=seconds)
        document = await self._document(order)
        return ViewColumns.model_validate({"columns": document["data"]})

    async def statistics(self, dataset: Dataset, view: DatasetView) -> ViewStatistics:
        """Return what the columns of a view hold, computed once for a commit."""
        build = partial(self._build_statistics, dataset, view)
        return await self._preview(dataset, f"statistics {view.key}", build, ViewStatistics)

    async def _build_statistics(self, dataset: Dataset, view: DatasetView) -> ViewStatistics:
        seconds = self.settings.sql.preview_seconds
        order = await self._preview_order(dataset, view, task="statistics", seconds=seconds)
        return ViewStatistics.model_validate(await self._document(order))

    async def _document(self, order: ChildOrder) -> dict[str, Any]:
        found: dict[str, Any] = {}
        async with self._child(order) as run:
            async for kind, data in run.frames():
                if kind == program.DOCUMENT:
                    found = msgspec.json.decode(data)
        return found

    async def _preview(
        self, dataset: Dataset, name: str, build: Callable[[], Awaitable[P]], kind: type[P]
    ) -> P:
        """Return what is kept of a commit under this name, or else build it once for all who wait."""
        repo_id, key = dataset.revision.repo.id, f"{_VERSION} {dataset.commit} {name}"
        cache = cache_in(self.settings.database.data_dir)
        kept = await asyncio.to_thread(cache.find, repo_id, key)
        if kept is not None:
            with suppress(ValidationError):
                return kind.model_validate_json(kept)

        async def work() -> P:
            built = await build()
            await asyncio.to_thread(cache.put, repo_id, key, built.model_dump_json().encode())
            return built

        return await self._once(f"{repo_id} {key}", work)

    async def _once(self, key: str, work: Callable[[], Awaitable[T]]) -> T:
        """Do a work once for all who want it now; a failure is remembered for a while."""
        child.check_installed()
        failed_at, failure = self._failures.get(key, (0.0, None))
        if failure is not None and monotonic() < failed_at + _FAILURE_SECONDS:
            raise failure
        if key not in self._in_work:
            if len(self._in_work) >= _MAX_WAITING_PREVIEWS:
                raise TooManyQueries("This hub", _MAX_WAITING_PREVIEWS)
            task = asyncio.create_task(self._work(key, work), name="sql preview")
            self._in_work[key] = task
            task.add_done_callback(partial(self._note_end, key))
        return await asyncio.shield(self._in_work[key])

    async def _work(self, key: str, work: Callable[[], Awaitable[Any]]) -> Any:
        async with self._previews:
            try:
                return await work()
            except (InvalidQuery, DataTooLarge) as error:
                if len(self._failures) >= _MAX_FAILURES:
                    self._failures.clear()
                self._failures[key] = (monotonic(), error)
                raise

    def _note_end(self, key: str, task: asyncio.Task[Any]) -> None:
        del self._in_work[key]
        if not task.cancelled():
            # Nobody may wait for it any more.
            task.exception()

    def is_exported(self, view: DatasetView) -> bool:
        """Tell whether a view can be read as Parquet: as it is, or converted."""
        return view.format == PARQUET or view.size <= self.settings.sql.export_bytes

    async def export(self, dataset: Dataset, view: DatasetView) -> Path:
        """Return a Parquet file with the rows of a view whose own files have another format."""
        if not self.is_exported(view):
            raise DataTooLarge(
                f"The files of {view.key} have {view.size:,} bytes; up to "
                f"{self.settings.sql.export_bytes:,} are exported as Parquet."
            )
        key = f"{_VERSION} parquet {' '.join(file.oid for file in view.files)} {view.format}"
        if (found := await asyncio.to_thread(self.files.find, key)) is not None:
            return found
        return await self._once(key, partial(self._build_export, dataset, view, key))

    async def _build_export(self, dataset: Dataset, view: DatasetView, key: str) -> Path:
        seconds = self.settings.sql.preview_seconds
        order = await self._preview_order(dataset, view, task=PARQUET, seconds=seconds)
        parts = list[bytes]()
        async with self._child(order) as run:
            async for kind, data in run.frames():
                if kind == program.BYTES:
                    parts.append(data)

        def write(file: BinaryIO) -> None:
            file.writelines(parts)

        return await asyncio.to_thread(self.files.write_once, key, write)

    async def stop(self) -> None:
        """End what is still running."""
        for task in list(self._in_work.values()):
            task.cancel()
        await asyncio.gather(*self._in_work.values(), return_exceptions=True)


def _cut_rows(rows: TableRows, limit: int) -> TableRows:
    return rows.model_copy(update={"rows": rows.rows[:limit], "cut": "rows"})
