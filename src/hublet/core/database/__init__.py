"""The database: SQLite or PostgreSQL behind one small interface.

SQL is written once for both engines. Parameters are numbered (`$1`), times are
integer microseconds, JSON is text. Three spellings differ between the engines and
are translated here:

- `IN each($1)` matches any element of a JSON array given as text;
- `/* claim */` at the end of a sub-select, inside `Connection.claim`, skips rows that
  another worker has locked;
- `TEXT` in a migration compares byte by byte, as SQLite does; what stands between `-- only postgresql`
  or `-- only sqlite` and `-- end` in a migration is nothing to the other engine.
"""

from hublet.core.database.engine import (
    Connection,
    Database,
    DatabaseUnavailable,
    Reader,
    Row,
    Subscription,
    UniqueViolation,
    like_pattern,
    open_database,
)

__all__ = [
    "Connection",
    "Database",
    "DatabaseUnavailable",
    "Reader",
    "Row",
    "Subscription",
    "UniqueViolation",
    "like_pattern",
    "open_database",
]
