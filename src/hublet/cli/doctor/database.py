"""Checks of the database: can it be reached, is it whole, does it fit this version."""

from pathlib import Path

from hublet.cli.doctor import store
from hublet.cli.doctor.findings import Finding, ok, problem, warning
from hublet.core.clock import monotonic
from hublet.core.config import Settings, safe_database_url
from hublet.core.database import Database, DatabaseUnavailable
from hublet.core.database.migrations import SchemaError, known_migrations, pending
from hublet.core.logs import redact_text

_CHECK = "database"
_SCHEMA = "schema"
_SQLITE = "sqlite:///"
_SLOW_SECONDS = 0.02


def missing_file(settings: Settings) -> Finding | None:
    """Tell of a file that is not there yet: opening it would make it."""
    url = settings.database_url
    path = Path(url.removeprefix(_SQLITE))
    if not url.startswith(_SQLITE) or path.exists():
        return None
    return warning(_CHECK, f"There is no {path}.", "The first hublet serve makes it.")


def out_of_reach(settings: Settings, error: Exception) -> Finding:
    reason = error.reason if isinstance(error, DatabaseUnavailable) else str(error)
    return problem(
        _CHECK,
        f"{safe_database_url(settings.database_url)} does not answer ({redact_text(' '.join(reason.split()))}).",
        "Start the database, or correct --database-url, user and password.",
    )


async def engine(database: Database) -> Finding:
    return await (_sqlite if database.kind == "sqlite" else _postgresql)(database)


async def _sqlite(database: Database) -> Finding:
    file = database.hub.settings.database_url.removeprefix(_SQLITE)
    async with database.read() as conn:
        name = f"SQLite {await store.sqlite_version(conn)}"
        mode = await store.journal_mode(conn)
        damages = await store.list_damages(conn)
    if damages:
        return problem(
            _CHECK,
            f"{name} finds {file} damaged ({damages[0]}).",
            "Stop the hub and restore the file from a backup.",
        )
    if mode != "wal":
        return problem(
            _CHECK,
            f"{name} writes {file} in the journal mode {mode}, not in WAL.",
            "Keep the data folder on a local disk; network folders cannot do it.",
        )
    return ok(_CHECK, f"{name}, journal mode WAL, {file} is whole.")


async def _postgresql(database: Database) -> Finding:
    async with database.read() as conn:
        name = f"PostgreSQL {await store.postgresql_version(conn)}"
        encoding = await store.encoding(conn)
    seconds = await _latency(database)
    answers = f"answers in {seconds * 1000:.1f} ms"
    if encoding != "UTF8":
        return problem(
            _CHECK,
            f"{name} stores text as {encoding}.",
            "Create the database anew: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0.",
        )
    if seconds > _SLOW_SECONDS:
        return warning(
            _CHECK, f"{name} {answers}.", "Move the hub nearer to it: a request asks several times."
        )
    return ok(_CHECK, f"{name} {answers} and stores text as UTF8.")


async def _latency(database: Database) -> float:
    """Return the seconds of the fastest of a few questions; the first ones only warm up."""
    spent: list[float] = []
    for _ in range(5):
        start = monotonic()
        await database.check()
        spent.append(monotonic() - start)
    return min(spent)


async def schema(database: Database) -> tuple[Finding, bool]:
    """Tell whether the tables are those of this version; only then they can be read."""
    try:
        missing = await pending(database)
    except SchemaError as error:
        return problem(_SCHEMA, str(error), "Until then nothing works on it."), False
    known = len(known_migrations())
    if not missing:
        return ok(_SCHEMA, f"All {known} migrations are applied."), True
    if len(missing) == known:
        return warning(_SCHEMA, "The database is empty.", "The first hublet serve fills it."), False
    advice = "Run hublet migrate; the next start of hublet serve does it too."
    return warning(_SCHEMA, f"It lacks {', '.join(missing)}.", advice), False
