"""Wire schemas of saved queries."""

from typing import Annotated, Any, Self

from pydantic import MISSING, Field, StringConstraints

from hublet.core.errors import InvalidRequest
from hublet.core.schema import ONE_LINE, Flag, Line, ObjectId, Schema, Timestamp
from hublet.sql.saved_queries import MAX_SQL, MAX_VIEWS, NewQuery, QueryChange
from hublet.sql.saved_queries_store import QueryView, SavedQueryRecord

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
