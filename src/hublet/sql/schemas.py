"""Shapes of SQL over datasets: queries, rows, columns, statistics."""

from typing import Annotated, Any, Literal, Self

from pydantic import MISSING, Field, StringConstraints

from hublet.core.errors import InvalidRequest
from hublet.core.schema import ONE_LINE, Flag, Line, ObjectId, Schema, Timestamp
from hublet.sql.saved_queries import MAX_SQL, MAX_VIEWS, NewQuery, QueryChange
from hublet.sql.saved_queries_store import QueryView, SavedQueryRecord
from hublet.sql.views import DatasetView

LONGEST_SQL = 100_000
_MOST_VIEWS = 50
# Names of views stand in SQL, where people do not want to quote them.
_VIEW_NAME = r"^[A-Za-z_][A-Za-z0-9_]{0,62}$"
_QUERY_ID = r"^[0-9a-f]{24}$"

QueryId = Annotated[str, Field(pattern=_QUERY_ID)]


class SqlQueryView(Schema):
    """A view that the query uses: its key, and the name that the query gives it."""

    key: Annotated[str, Field(min_length=3, max_length=300, description="As in default/train.")]
    viewName: Annotated[str, Field(pattern=_VIEW_NAME)]
    displayName: Annotated[str, Field(max_length=300)] | MISSING = MISSING


class RunSqlQuery(Schema):
    sql: Annotated[str, Field(min_length=1, max_length=LONGEST_SQL, description="One SELECT.")]
    revision: Annotated[str, Field(min_length=1, max_length=300)] = "main"
    views: Annotated[list[SqlQueryView], Field(max_length=_MOST_VIEWS)] = Field(
        default_factory=list
    )
    format: Literal["json", "ndjson", "arrow"] = "json"
    limit: Annotated[int, Field(ge=1, description="The most rows.")] | MISSING = MISSING
    id: QueryId | MISSING = MISSING


class SqlColumn(Schema):
    name: str
    # As DuckDB calls it.
    type: str


class SqlResult(Schema):
    """Rows of a query; `truncated` says which limit cut them, if one did."""

    id: QueryId
    commit: str
    columns: list[SqlColumn]
    rows: list[list[Any]]
    rowCount: int | MISSING = MISSING
    truncated: Literal["rows", "bytes"] | MISSING | None = MISSING
    # Of a query that failed after its first rows.
    error: str | MISSING = MISSING


class TableRows(Schema):
    """The first rows of a view; `cut` is empty when these are all."""

    columns: list[SqlColumn]
    rows: list[list[Any]]
    cut: Literal["", "rows", "bytes"] = ""


class HistogramBin(Schema):
    """How many values lie in a range: of texts their lengths, of times their seconds since 1970."""

    start: float
    end: float
    count: int


class ValueCount(Schema):
    value: str
    count: int


class ColumnStatistics(Schema):
    """What a column holds; mean, median and std are of the same numbers as the histogram."""

    name: str
    type: str
    kind: Literal["number", "text", "boolean", "time", "other"]
    count: int
    nulls: int
    # Nearly, and None where it is not counted.
    distinct: int | None = None
    min: float | str | None = None
    max: float | str | None = None
    mean: float | None = None
    median: float | None = None
    std: float | None = None
    top: list[ValueCount]
    histogram: list[HistogramBin]


class ViewStatistics(Schema):
    rows: int
    columns: list[ColumnStatistics]
    # Whether there are more columns.
    cut: Flag = False


class ViewColumns(Schema):
    columns: list[SqlColumn]


class ViewInfo(Schema):
    """A view that queries can name."""

    key: str
    config: str
    split: str
    format: str
    files: int
    size: int

    @classmethod
    def of(cls, view: DatasetView) -> Self:
        return cls(
            key=view.key,
            config=view.config,
            split=view.split,
            format=view.format,
            files=len(view.files),
            size=view.size,
        )


class ViewList(Schema):
    commit: str
    views: list[ViewInfo]


class FirstRows(TableRows):
    commit: str
    view: ViewInfo


class DatasetStatistics(ViewStatistics):
    commit: str
    view: ViewInfo


class DescribedView(ViewInfo):
    columns: list[SqlColumn]


class DatasetSchema(Schema):
    commit: str
    views: list[DescribedView]


QueryText = Annotated[str, Field(min_length=1, max_length=MAX_SQL)]


class SavedView(Schema):
    """A part of the dataset, and the name that it has as a table in the query."""

    key: Annotated[
        str,
        StringConstraints(min_length=1, max_length=400),
        ONE_LINE,
        Field(description="Configuration and split, as in default/train."),
    ]
    displayName: Annotated[str, StringConstraints(min_length=1, max_length=200), ONE_LINE]
    viewName: Annotated[str, StringConstraints(min_length=1, max_length=200), ONE_LINE]

    @classmethod
    def of(cls, view: QueryView) -> Self:
        return cls(key=view.key, displayName=view.display_name, viewName=view.view_name)

    def record(self) -> QueryView:
        return QueryView(key=self.key, display_name=self.displayName, view_name=self.viewName)


class SaveQuery(Schema):
    sql: QueryText
    title: Line
    # Without it everybody who may read the dataset sees the query.
    private: Flag = False
    views: Annotated[list[SavedView], Field(min_length=1, max_length=MAX_VIEWS)]

    def new(self) -> NewQuery:
        names = [view.viewName for view in self.views]
        if len(set(names)) < len(names):
            raise InvalidRequest("views: each viewName can stand there once.")
        return NewQuery(
            title=self.title,
            sql=self.sql,
            views=tuple(view.record() for view in self.views),
            is_private=self.private,
        )


class UpdateQuery(Schema):
    """A field that is left out keeps its value."""

    title: Line | MISSING = MISSING
    private: Flag | MISSING = MISSING
    sql: QueryText | MISSING = MISSING

    def change(self) -> QueryChange:
        return QueryChange(
            title=_given(self.title), sql=_given(self.sql), is_private=_given(self.private)
        )


class SavedQuery(Schema):
    id: Annotated[ObjectId, Field(alias="_id")]
    repoId: ObjectId
    userId: ObjectId
    slug: str
    title: str
    sql: str
    views: list[SavedView]
    createdAt: Timestamp
    private: bool

    @classmethod
    def of(cls, query: SavedQueryRecord) -> Self:
        return cls.model_validate(
            {
                "_id": query.id,
                "repoId": query.repo_id,
                "userId": query.user_id,
                "slug": query.slug,
                "title": query.title,
                "sql": query.sql,
                "views": [SavedView.of(view) for view in query.views],
                "createdAt": query.created_at,
                "private": query.is_private,
            }
        )


def _given(value: Any) -> Any:
    return None if value is MISSING else value
