"""Pages of a dataset's rows: what the viewer and the SQL console show, and how a query is run for them."""

from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import urlencode

import msgspec

from hublet.core.config.workload_settings import SqlSettings
from hublet.core.database import Reader
from hublet.core.dataclasses import dataclass
from hublet.core.errors import HubError, InvalidRequest
from hublet.core.http.exchange import exchange_of
from hublet.core.ids import is_object_id, new_object_id
from hublet.repos.records import Repo, RepoAddress, RepoType
from hublet.sql import saved_queries
from hublet.sql.child import RunningQuery
from hublet.sql.errors import ConsoleNotFound, ViewNotFound
from hublet.sql.saved_queries import MAX_SQL
from hublet.sql.saved_queries_store import SavedQueryRecord
from hublet.sql.schemas import SqlColumn, TableRows
from hublet.sql.service import QueryHolder, QueryRequest, ResultFormat, SqlEngine
from hublet.sql.views import Dataset, DatasetView, choose_views, get_view, open_dataset
from hublet.web.auth import PageVisit
from hublet.web.rendering.plots import ColumnCard, draw_column
from hublet.web.rendering.tables import TablePreview, draw_rows
from hublet.web.repo_head import RepoHead, RepoTab, get_head

MAIN_BRANCH = "main"
FORMATS = ("csv", "json", "arrow")
# Of a longer result the beginning is shown; all of it can be downloaded.
_MOST_SHOWN = 500
_MOST_QUERIES = 30
_LONGEST_LINK = 1500

_CUTS = {
    "rows": "There are more rows: a result has at most {rows:,}.",
    "bytes": "There are more rows: a result has at most {answer_bytes:,} bytes.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticsView:
    rows: int
    columns: tuple[ColumnCard, ...]
    is_cut: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewerPage:
    """What `repos/viewer.html` takes as `page`."""

    views: tuple[DatasetView, ...]
    view: DatasetView
    revision: str
    path: str
    table: TablePreview | None = None
    # None: they are not counted yet.
    statistics: StatisticsView | None = None
    statistics_problem: str = ""

    @property
    def has_configs(self) -> bool:
        return len({view.config for view in self.views}) > 1

    @property
    def console_path(self) -> str:
        return with_query(
            f"{self.path}/sql-console",
            sql=TableName(name=self.view.split, view=self.view).example,
            config=self.view.config if self.has_configs else "",
            revision=self.revision,
        )

    @property
    def statistics_path(self) -> str:
        return with_query(
            f"{self.path}/viewer", view=self.view.key, statistics="true", revision=self.revision
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TableName:
    """A table that a query can name."""

    name: str
    view: DatasetView

    @property
    def example(self) -> str:
        """A query to begin with, for the text field."""
        return f"SELECT * FROM {_quoted(self.name)} LIMIT 10"  # noqa: S608 - it is only shown


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolePage:
    """What `repos/sql_console.html` takes as `page`."""

    path: str
    id: str
    revision: str
    sql: str
    limits: SqlSettings
    configs: tuple[str, ...] = ()
    config: str = ""
    named: tuple[TableName, ...] = ()
    queries: Sequence[SavedQueryRecord] = ()
    saved: SavedQueryRecord | None = None
    may_change: bool = False
    title: str = ""
    is_private: bool = False
    problem: str = ""
    problem_in_save: bool = False
    table: TablePreview | None = None
    # Why there are no more rows.
    cut: str = ""
    status: str = ""
    share_url: str = ""
    max_sql: int = MAX_SQL
    formats: tuple[str, ...] = FORMATS


def with_query(path: str, **values: str) -> str:
    given = {key: value for key, value in values.items() if value}
    if given.get("revision") == MAIN_BRANCH:
        del given["revision"]
    return f"{path}?{urlencode(given)}" if given else path


def _quoted(name: str) -> str:
    """Return a name as SQL takes it: in quotes unless it is a plain word."""
    is_plain = name.isascii() and name.isidentifier() and name == name.lower()
    return name if is_plain else '"' + name.replace('"', '""') + '"'


def engine_of(visit: PageVisit) -> SqlEngine:
    engine: SqlEngine = visit.request.app.state.sql
    return engine


async def open_head(visit: PageVisit, address: RepoAddress, tab: RepoTab) -> RepoHead:
    async with visit.database.read() as conn:
        head = await get_head(conn, visit, address, tab=tab)
    if head.repo.type is not RepoType.dataset:
        raise ConsoleNotFound(head.repo.type)
    return head


async def load_view(
    visit: PageVisit, head: RepoHead, key: str, revision: str, *, with_statistics: bool
) -> ViewerPage | None:
    if head.repo.head_sha is None:
        return None
    dataset = await open_dataset(visit.database, visit.caller, head.repo.address, revision)
    if not dataset.views:
        return None
    config, _, split = key.partition("/")
    view = get_view(dataset.views, config or None, split or None)
    engine = engine_of(visit)
    table, counted, problem = None, None, ""
    is_fragment = visit.request.headers.get("fragment") == "statistics"
    if not is_fragment:
        rows = await engine.first_rows(dataset, view)
        table = _draw(rows, is_cut=bool(rows.cut))
    if with_statistics:
        try:
            counted = await _count(engine, dataset, view)
        except HubError as error:
            problem = error.message
    return ViewerPage(
        views=dataset.views,
        view=view,
        revision=revision,
        path=head.path,
        table=table,
        statistics=counted,
        statistics_problem=problem,
    )


async def _count(engine: SqlEngine, dataset: Dataset, view: DatasetView) -> StatisticsView:
    found = await engine.statistics(dataset, view)
    columns = tuple(draw_column(column) for column in found.columns)
    return StatisticsView(rows=found.rows, columns=columns, is_cut=found.cut)


def _draw(rows: TableRows, *, is_cut: bool) -> TablePreview:
    columns = [(column.name, column.type) for column in rows.columns]
    return draw_rows(columns, rows.rows[:_MOST_SHOWN], is_cut=is_cut)


def holder_of(visit: PageVisit) -> QueryHolder:
    return QueryHolder.of(visit.caller, address=exchange_of(visit.request).address)


def revision_of(form: Mapping[str, str]) -> str:
    return form.get("revision", "")[:300] or MAIN_BRANCH


def tables_of(
    dataset: Dataset, form: Mapping[str, str], saved: SavedQueryRecord | None
) -> list[TableName]:
    """Return the tables of a query: those that were saved with it, or the splits of a configuration."""
    if saved is not None:
        names = {view.view_name: view.key for view in saved.views}
        found = choose_views(dataset.views, names)
        return [TableName(name=each.name, view=each.view) for each in found]
    config = form.get("config") or next((view.config for view in dataset.views), "")
    return [
        TableName(name=view.split, view=view) for view in dataset.views if view.config == config
    ]


async def _find_saved(
    conn: Reader, visit: PageVisit, head_repo: Repo, form: Mapping[str, str]
) -> SavedQueryRecord | None:
    if not form.get("saved"):
        return None
    return await saved_queries.get(conn, visit.caller, head_repo, form["saved"])


async def run(visit: PageVisit, repo: Repo, form: Mapping[str, str]) -> TableRows:
    """Run the query of a form to its end."""
    running, data = await run_as(visit, repo, form, ResultFormat.json)
    columns = [SqlColumn(**each) for each in msgspec.json.decode(running.columns_json)]
    rows: list[list[Any]] = msgspec.json.decode(b"[" + data + b"]")
    # What comes from the hub's own process needs no check.
    return TableRows.model_construct(columns=columns, rows=rows, cut=cast("Any", running.cut))


async def run_as(
    visit: PageVisit, repo: Repo, form: Mapping[str, str], format_: ResultFormat
) -> tuple[RunningQuery, bytes]:
    """Run the query of a form; return it, and its rows as they came."""
    text, given = form.get("sql", "").strip(), form.get("id", "")
    if not text or len(text) > MAX_SQL:
        raise InvalidRequest(f"sql must have 1 to {MAX_SQL:,} characters.")
    dataset = await open_dataset(visit.database, visit.caller, repo.address, revision_of(form))
    async with visit.database.read() as conn:
        saved = await _find_saved(conn, visit, repo, form)
    tables = tables_of(dataset, form, saved)
    # Only what the text names is read.
    named = [each for each in tables if each.name.lower() in text.lower()] or tables
    request = QueryRequest(
        sql=text,
        views={each.name: each.view.key for each in named},
        format=format_,
        id=given if is_object_id(given) else new_object_id(),
    )
    async with engine_of(visit).query(dataset, holder_of(visit), request) as running:
        data = b"".join([part async for part in running.rows()])
    return running, data


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryOutcome:
    """What became of what a form said."""

    rows: TableRows | None = None
    status: str = ""
    problem: HubError | None = None
    # Whether it was the saving that failed.
    in_save: bool = False


async def load_console(
    visit: PageVisit, head: RepoHead, form: Mapping[str, str], outcome: QueryOutcome
) -> ConsolePage:
    """Load the console with the text of a form, or of a saved query, and what became of it."""
    repo, revision, limits = head.repo, revision_of(form), visit.settings.sql
    dataset = None
    if repo.head_sha is not None:
        dataset = await open_dataset(visit.database, visit.caller, repo.address, revision)
    async with visit.database.read() as conn:
        saved = await _find_saved(conn, visit, repo, form)
        may_change = saved is not None and await saved_queries.may_change(
            conn, visit.caller, repo, saved
        )
        queries = await saved_queries.list_of(conn, visit.caller, repo, limit=_MOST_QUERIES)
    views = dataset.views if dataset else ()
    named = _tables_or_none(dataset, form, saved)
    rows, path = outcome.rows, f"{head.path}/sql-console"
    text = form.get("sql") or (saved.sql if saved else _example(named))
    return ConsolePage(
        path=path,
        id=new_object_id(),
        revision=revision,
        sql=text,
        limits=limits,
        configs=tuple(dict.fromkeys(view.config for view in views)),
        config=form.get("config", ""),
        named=tuple(named),
        queries=queries,
        saved=saved,
        may_change=may_change,
        title=form.get("title") or (saved.title if saved else ""),
        is_private="private" in form
        or (saved.is_private if saved and not outcome.in_save else False),
        problem=outcome.problem.message if outcome.problem else "",
        problem_in_save=outcome.in_save,
        table=_draw(rows, is_cut=len(rows.rows) > _MOST_SHOWN) if rows else None,
        cut=_CUTS[rows.cut].format(rows=limits.rows, answer_bytes=limits.answer_bytes)
        if rows and rows.cut
        else "",
        status=outcome.status,
        share_url=_share_url(visit, path, form, saved, text),
    )


def _tables_or_none(
    dataset: Dataset | None, form: Mapping[str, str], saved: SavedQueryRecord | None
) -> list[TableName]:
    try:
        return tables_of(dataset, form, saved) if dataset else []
    except ViewNotFound:
        # It was saved when the dataset had that part.
        return []


def _example(named: Sequence[TableName]) -> str:
    return named[0].example if named else ""


def _share_url(
    visit: PageVisit, path: str, form: Mapping[str, str], saved: SavedQueryRecord | None, text: str
) -> str:
    base_url = visit.settings.base_url
    if saved is not None:
        return f"{base_url}{path}/{saved.slug}"
    if not form.get("sql") or len(text) > _LONGEST_LINK:
        return ""
    link = with_query(path, sql=text, config=form.get("config", ""), revision=revision_of(form))
    return f"{base_url}{link}"
