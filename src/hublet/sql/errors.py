"""Errors of SQL over datasets.

InvalidQuery            400   DuckDB, or a rule of the hub, refuses the statement
├── QueryTooSlow        400   stopped at the deadline
├── QueryTooLarge       400   stopped at the limit of memory
└── QueryCancelled      400   stopped by its holder
NotYourQuery, OnlyAuthorsHide   403   of saved queries
ViewNotFound            404
ConsoleNotFound, SavedQueryNotFound   404
NoData                  404   nothing in the revision can be read as a table
TooManySavedQueries     409
DataTooLarge            413   too many files, or too many bytes
TooManyQueries          429
SqlUnavailable          501   the extra is not installed, or the machine has no sandbox
QueryLost               503   the process ended without an answer
"""

from hublet.core.errors import (
    Conflict,
    InvalidRequest,
    NotAllowed,
    NotFound,
    NotImplementedHere,
    TooLarge,
    TooManyRequests,
    Unavailable,
)


class InvalidQuery(InvalidRequest):
    pass


class QueryTooSlow(InvalidQuery):
    def __init__(self, seconds: float) -> None:
        super().__init__(f"The query was stopped after {seconds:g} seconds, the most it may take.")


class QueryTooLarge(InvalidQuery):
    def __init__(self, most: int) -> None:
        super().__init__(
            f"The query was stopped: it needs more memory than the {most >> 20} MiB it may have."
        )


class QueryCancelled(InvalidQuery):
    def __init__(self) -> None:
        super().__init__("The query was cancelled.")


class AnonymousQuery(NotAllowed):
    def __init__(self) -> None:
        super().__init__("Queries on this hub need a token.")


class ViewNotFound(NotFound):
    def __init__(self, key: str) -> None:
        super().__init__(f"There is no view {key[:200]} at this revision.")


class QueryNotFound(NotFound):
    def __init__(self) -> None:
        super().__init__("There is no such query of yours.")


class NoData(NotFound):
    def __init__(self) -> None:
        super().__init__(
            "There is no file here that can be read as a table: CSV, TSV, JSON, JSON lines, Parquet."
        )


class DataTooLarge(TooLarge):
    pass


class TooManyQueries(TooManyRequests):
    def __init__(self, whose: str, most: int) -> None:
        super().__init__(
            f"{whose} may run {most} {'query' if most == 1 else 'queries'} at the same time; "
            "try again when one has ended.",
            headers={"Retry-After": "2"},
        )


class SqlUnavailable(NotImplementedHere):
    pass


class QueryLost(Unavailable):
    def __init__(self) -> None:
        super().__init__("The process of the query ended without an answer; try again.")


class ConsoleNotFound(NotFound):
    """The repository is no dataset."""

    def __init__(self, repo_type: str) -> None:
        super().__init__(f"Only datasets have an SQL console: this is a {repo_type}.")


class SavedQueryNotFound(NotFound):
    def __init__(self, name: str) -> None:
        super().__init__(f"There is no saved query {name} in this dataset, or you cannot see it.")


class NotYourQuery(NotAllowed):
    def __init__(self) -> None:
        super().__init__(
            "You cannot change this query: only its author and those who manage the dataset can."
        )


class OnlyAuthorsHide(NotAllowed):
    def __init__(self) -> None:
        super().__init__("private: only the author of a query can make it private.")


class TooManySavedQueries(Conflict):
    def __init__(self, count: int, whose: str) -> None:
        super().__init__(f"{whose} at most {count} saved queries: delete one first.")
