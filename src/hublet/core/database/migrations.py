"""Migrations: numbered SQL files that bring a database to the schema of this version."""

import hashlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from importlib import resources

from hublet.core.clock import micros
from hublet.core.database.engine import Connection, Database, DatabaseUnavailable
from hublet.core.database.newest_schema import newest_schema
from hublet.core.dataclasses import dataclass

_TABLE = """
CREATE TABLE IF NOT EXISTS migrations (
    number BIGINT PRIMARY KEY,
    name TEXT NOT NULL,
    digest TEXT NOT NULL,
    applied_at BIGINT NOT NULL
);
"""
# How many tables and indexes SQLite has; what `pending_migrations` leaves behind is none.
_TABLES = "SELECT count(*) FROM sqlite_master WHERE tbl_name <> 'migrations'"


class SchemaError(Exception):
    """The database does not fit this version. The message tells the operator what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    number: int
    name: str
    script: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.script.encode()).hexdigest()


def known_migrations() -> list[Migration]:
    folder = resources.files("hublet.migrations")
    files = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [
        Migration(
            number=int(name[:4]),
            name=name[5:-4],
            script=(folder / name).read_text(encoding="utf-8"),
        )
        for name in files
    ]


async def migrate(database: Database, migrations: list[Migration] | None = None) -> list[str]:
    """Apply what is missing, each file in a transaction of its own, and return their names.

    Processes that start at the same time wait for each other.
    """
    known = known_migrations() if migrations is None else migrations
    with _explain_failures():
        if (
            migrations is None
            and database.kind == "sqlite"
            and await _begin_newest(database, known)
        ):
            return [migration.name for migration in known]
        missing = await _missing_migrations(database, known)
        return [migration.name for migration in missing if await _apply(database, migration, known)]


async def pending_migrations(database: Database) -> list[str]:
    """Return the names of the migrations that the database lacks."""
    with _explain_failures():
        return [
            migration.name for migration in await _missing_migrations(database, known_migrations())
        ]


def check_known(applied: Mapping[int, str]) -> None:
    """Raise SchemaError unless this version knows all of these migrations, as they were."""
    _check_applied(applied, known_migrations())


async def apply_schema(conn: Connection, numbers: Collection[int]) -> None:
    """Bring an empty database to an earlier schema; its rows, also of these migrations, come after."""
    await conn.apply(_TABLE)
    for migration in known_migrations():
        if migration.number in numbers:
            await conn.apply(migration.script)


@contextmanager
def _explain_failures() -> Iterator[None]:
    try:
        yield
    except DatabaseUnavailable as error:
        raise SchemaError(
            f"The schema could not be brought up to date ({' '.join(error.reason.split())}): see "
            "that the database runs and that its user may create tables."
        ) from error


async def _begin_newest(database: Database, known: list[Migration]) -> bool:
    """Give an empty SQLite database the newest schema at once; return False when it is not empty."""
    script = newest_schema(migration.script for migration in known)
    if script is None:
        return False
    async with database.read() as conn:
        if await conn.fetch_value(_TABLES):
            return False
    async with database.transaction() as conn:
        await conn.lock("migrations")
        # Another process may have been faster.
        if await conn.fetch_value(_TABLES):
            return False
        await conn.apply(_TABLE)
        await conn.apply(script)
        for migration in known:
            await _record(conn, migration)
    return True


async def _missing_migrations(database: Database, known: list[Migration]) -> list[Migration]:
    async with database.transaction() as conn:
        await conn.lock("migrations")
        await conn.apply(_TABLE)
        applied = await _applied_digests(conn)
    _check_applied(applied, known)
    return [migration for migration in known if migration.number not in applied]


async def _apply(database: Database, migration: Migration, known: list[Migration]) -> bool:
    """Return False when another process was faster."""
    async with database.transaction() as conn:
        await conn.lock("migrations")
        applied = await _applied_digests(conn)
        _check_applied(applied, known)
        if migration.number in applied:
            return False
        await conn.apply(migration.script)
        await _record(conn, migration)
        return True


async def _record(conn: Connection, migration: Migration) -> None:
    await conn.execute(
        "INSERT INTO migrations (number, name, digest, applied_at) VALUES ($1, $2, $3, $4)",
        migration.number, migration.name, migration.digest, micros(),
    )  # fmt: skip


async def _applied_digests(conn: Connection) -> dict[int, str]:
    rows = await conn.fetch_all("SELECT number, digest FROM migrations")
    return {row["number"]: row["digest"] for row in rows}


def _check_applied(applied: Mapping[int, str], known: list[Migration]) -> None:
    newest = max((migration.number for migration in known), default=0)
    if ahead := [number for number in applied if number > newest]:
        raise SchemaError(
            f"The database was written by a newer Hublet (schema {max(ahead)}, this version knows "
            f"{newest}): install that version, or point to another database."
        )
    for migration in known:
        if applied.get(migration.number, migration.digest) != migration.digest:
            raise SchemaError(
                f"Migration {migration.number:04} ({migration.name}) was changed after it had been "
                "applied to this database: restore the file as it was released."
            )
