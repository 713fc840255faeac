"""PostgreSQL dialect: its spelling of our SQL, its command tags and its errors."""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any

import asyncpg

from hublet.core.database.engine import DatabaseUnavailable, UniqueViolation

UNAVAILABLE_ERRORS = (
    OSError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.TransactionRollbackError,
    asyncpg.LockNotAvailableError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.InsufficientPrivilegeError,
    asyncpg.InvalidCachedStatementError,
    asyncpg.TargetServerAttributeNotMatched,
)


@lru_cache(maxsize=4096)
def translate(sql: str) -> str:
    # As an array: for a sub-select the planner guesses a hundred elements, and would rather read
    # a table of some thousand rows as a whole than ask its index a hundred times.
    sql = re.sub(r"\bNOT IN (each\(\$\d+\))", r"<> ALL (ARRAY \1)", sql)
    sql = re.sub(r"\bIN (each\(\$\d+\))", r"= ANY (ARRAY \1)", sql)
    sql = re.sub(r"\beach\(\$(\d+)\)", r"(SELECT jsonb_array_elements_text($\1::jsonb))", sql)
    return sql.replace("/* claim */", "FOR UPDATE SKIP LOCKED")


def changed_rows(tag: str) -> int:
    """Read a command tag such as `UPDATE 3` or `INSERT 0 1`."""
    command, *numbers = tag.split(" ")
    return int(numbers[-1]) if command in {"INSERT", "UPDATE", "DELETE", "MERGE"} else 0


def quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@contextmanager
def engine_errors(raw: Any = None) -> Iterator[None]:
    """Translate what goes wrong on a connection, or, without one, on the way to it."""
    try:
        yield
    except asyncpg.UniqueViolationError as error:
        raise UniqueViolation(str(error)) from error
    except UNAVAILABLE_ERRORS as error:
        raise DatabaseUnavailable(f"{type(error).__name__}: {error}") from error
    except asyncpg.InterfaceError as error:
        # One class stands for a lost connection and for a wrong argument.
        if raw is not None and not _is_lost(raw):
            raise
        raise DatabaseUnavailable(f"{type(error).__name__}: {error}") from error


def _is_lost(raw: Any) -> bool:
    try:
        return bool(raw.is_closed())
    except asyncpg.InterfaceError:
        # The pool takes a connection that is lost from its borrower.
        return True


def terminate(raw: Any) -> None:
    with suppress(asyncpg.InterfaceError):
        raw.terminate()
