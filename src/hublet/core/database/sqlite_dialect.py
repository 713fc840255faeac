"""What is SQLite's own: its spelling of our SQL, its scripts, its errors."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import lru_cache
from types import TracebackType

from hublet.core.database.engine import DatabaseUnavailable, UniqueViolation

_AWAY = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_CORRUPT,
}
_SAME_KEY = {
    sqlite3.SQLITE_CONSTRAINT_UNIQUE,
    sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY,
    sqlite3.SQLITE_CONSTRAINT_ROWID,
}


@lru_cache(maxsize=4096)
def translate(sql: str) -> str:
    sql = re.sub(r"\beach\(\$(\d+)\)", r"(SELECT value FROM json_each(?\1))", sql)
    return re.sub(r"\$(\d+)", r"?\1", sql)


def statements(script: str) -> Iterator[str]:
    """Split a script where SQLite itself sees a complete statement."""
    lines: list[str] = []
    for line in script.splitlines():
        if not lines and (not line.strip() or line.lstrip().startswith("--")):
            continue
        lines.append(line)
        if sqlite3.complete_statement("\n".join(lines)):
            yield "\n".join(lines)
            lines = []
    if lines:
        yield "\n".join(lines)


class EngineErrors(AbstractContextManager[None]):
    """Turns SQLite's errors into ours. It holds nothing, so one serves every statement."""

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> None:
        if not isinstance(error, sqlite3.DatabaseError):
            return
        # Errors of Python's own module, such as a value too few, come without a code.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        if code in _SAME_KEY:
            raise UniqueViolation(str(error)) from error
        # The low byte is the primary code, whatever the extended one.
        if code & 0xFF in _AWAY:
            raise DatabaseUnavailable(str(error)) from error


engine_errors = EngineErrors()
