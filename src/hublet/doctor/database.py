"""Checks of the database: its keys, its engine and schema, and the work that waits in it."""

import asyncio
from datetime import timedelta
from pathlib import Path

from hublet.core import outbox, queue
from hublet.core.clock import format_duration, micros, monotonic
from hublet.core.config import Settings, safe_database_url
from hublet.core.database import Database, DatabaseUnavailable, Reader, partitions
from hublet.core.database.migrations import SchemaError, known_migrations, pending_migrations
from hublet.core.heartbeat import HubProcess, list_processes
from hublet.core.leases import lease_clock
from hublet.core.logs import redact_text
from hublet.core.sealing import KeyRing, KeyRingError
from hublet.core.startup import keys_fit, load_keys
from hublet.doctor import store
from hublet.doctor.checks import Finding, FindingStatus, ok, problem, warning
from hublet.repos import scrub_store, usage, usage_store
from hublet.runtime.supervisor import machines_store
from hublet.search import index as search_index
from hublet.search import text_index as search_texts
from hublet.storage import content_move
from hublet.webhooks.activity.partitions_store import TABLES as PARTITIONED

_KEYS = "keys"
_KEYS_FILE = "secret.keys"

_DATABASE = "database"
_SCHEMA = "schema"
_PROCESSES = "processes"
_SQLITE = "sqlite:///"
_SLOW_SECONDS = 0.02

# A worker polls every second or so; if something waits longer, no worker runs.
_MAX_WAIT = timedelta(minutes=1)
_START_A_WORKER = "Is a hub running? Start hublet serve, or hublet worker on PostgreSQL."
_MAX_PARKED = 3
_MAX_DAMAGED = 3
_MACHINES = "machines"

_NOTICES = "notices"
_TRIAL_CHANNEL = "doctor"
# The first may be sent before anybody listens.
_TRIALS = 3
_TRIAL_SECONDS = 1.0
_SEARCH = "search"
_PARTITIONS = "partitions"
_LEAST_DAYS_AHEAD = 2
_REPLICA = "replica"
# It is looked at once a second.
_LOOK_SECONDS = 3.0
_PAUSE_SECONDS = 0.05


def find_ring(settings: Settings) -> KeyRing | Finding:
    """Return the key ring, or why there is none; unlike a start, this does not create one."""
    path = settings.database.data_dir / _KEYS_FILE
    if settings.keys.ring is None and not path.exists():
        return warning(_KEYS, f"There is no {path}.", "The first hublet serve makes it.")
    try:
        return load_keys(settings)
    except KeyRingError as error:
        return problem(_KEYS, str(error), "No token can be checked until it is mended.")


def check_keys_alone(settings: Settings, ring: KeyRing | Finding) -> Finding:
    """Report the key ring when there is no database to compare it with."""
    if isinstance(ring, Finding):
        return ring
    return ok(_KEYS, f"{_count_keys(ring)} in {_keys_source(settings)}.")


async def check_keys(conn: Reader, ring: KeyRing | Finding) -> Finding:
    """Check whether the key ring fits the database; in place of a missing ring, a new one is tried."""
    fits = await keys_fit(conn)
    settings = conn.hub.settings
    if isinstance(ring, Finding) and (fits or ring.status is FindingStatus.problem):
        return ring
    if not isinstance(ring, Finding) and fits:
        return ok(_KEYS, f"{_count_keys(ring)} in {_keys_source(settings)}; the database fits.")
    return problem(
        _KEYS,
        f"The keys this database was written with are not in {_keys_source(settings)}.",
        f"Restore the {_KEYS_FILE} that belongs to it: without it no stored token works.",
    )


def _keys_source(settings: Settings) -> str:
    if settings.keys.ring is not None:
        return "the setting keys.ring"
    return str(settings.database.data_dir / _KEYS_FILE)


def _count_keys(ring: KeyRing) -> str:
    return f"{len(ring.keys)} key{'' if len(ring.keys) == 1 else 's'}"


def find_missing_file(settings: Settings) -> Finding | None:
    """Report a missing SQLite file: opening it would create it."""
    url = settings.database_url
    path = Path(url.removeprefix(_SQLITE))
    if not url.startswith(_SQLITE) or path.exists():
        return None
    return warning(_DATABASE, f"There is no {path}.", "The first hublet serve makes it.")


def unreachable_database(settings: Settings, error: Exception) -> Finding:
    reason = error.reason if isinstance(error, DatabaseUnavailable) else str(error)
    return problem(
        _DATABASE,
        f"{safe_database_url(settings.database_url)} does not answer ({redact_text(' '.join(reason.split()))}).",
        "Start the database, or correct --database-url, user and password.",
    )


async def check_engine(database: Database, *, quickly: bool = False) -> Finding:
    """Check the engine; `quickly` leaves out to read a whole file, which would hold up others."""
    if database.kind == "sqlite":
        return await _check_sqlite(database, quickly=quickly)
    return await _check_postgresql(database)


async def _check_sqlite(database: Database, *, quickly: bool) -> Finding:
    file = database.hub.settings.database_url.removeprefix(_SQLITE)
    async with database.read() as conn:
        name = f"SQLite {await store.sqlite_version(conn)}"
        mode = await store.journal_mode(conn)
        damages = [] if quickly else await store.list_damages(conn)
    if damages:
        return problem(
            _DATABASE,
            f"{name} finds {file} damaged ({damages[0]}).",
            "Stop the hub and restore the file from a backup.",
        )
    if mode != "wal":
        return problem(
            _DATABASE,
            f"{name} writes {file} in the journal mode {mode}, not in WAL.",
            "Keep the data folder on a local disk; network folders cannot do it.",
        )
    is_whole = "" if quickly else " is whole"
    return ok(_DATABASE, f"{name}, journal mode WAL, {file}{is_whole}.")


async def _check_postgresql(database: Database) -> Finding:
    async with database.read() as conn:
        name = f"PostgreSQL {await store.postgresql_version(conn)}"
        encoding = await store.encoding(conn)
    seconds = await _measure_latency(database)
    answers = f"answers in {seconds * 1000:.1f} ms"
    if encoding != "UTF8":
        return problem(
            _DATABASE,
            f"{name} stores text as {encoding}.",
            "Create the database anew: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0.",
        )
    if seconds > _SLOW_SECONDS:
        return warning(
            _DATABASE,
            f"{name} {answers}.",
            "Move the hub nearer to it: a request asks several times.",
        )
    return ok(_DATABASE, f"{name} {answers} and stores text as UTF8.")


async def _measure_latency(database: Database) -> float:
    """Return the seconds of the fastest of a few round trips; the first ones warm up."""
    spent: list[float] = []
    for _ in range(5):
        start = monotonic()
        await database.check()
        spent.append(monotonic() - start)
    return min(spent)


async def check_schema(database: Database) -> tuple[Finding, bool]:
    """Check the schema; return also whether the tables can be read."""
    try:
        missing = await pending_migrations(database)
    except SchemaError as error:
        return problem(_SCHEMA, str(error), "Until then nothing works on it."), False
    known = len(known_migrations())
    if not missing:
        return ok(_SCHEMA, f"All {known} migrations are applied."), True
    if len(missing) == known:
        return warning(_SCHEMA, "The database is empty.", "The first hublet serve fills it."), False
    advice = "Run hublet migrate; the next start of hublet serve does it too."
    return warning(_SCHEMA, f"It lacks {', '.join(missing)}.", advice), False


async def check_surroundings(database: Database) -> list[Finding]:
    """Check what only PostgreSQL has: notices, partitions by day, and a replica if there is one."""
    if database.kind != "postgresql":
        return []
    replica = [] if not database.has_replica else [await _check_replica(database)]
    return [await _check_notices(database), await _check_partitions(database), *replica]


async def _check_notices(database: Database) -> Finding:
    """Send one over the pool, and hear it over the connection that listens."""
    with database.subscribe(_TRIAL_CHANNEL) as trial:
        for _ in range(_TRIALS):
            async with database.transaction() as conn:
                await store.notify(conn, _TRIAL_CHANNEL)
            if await trial.wait(timeout=_TRIAL_SECONDS):
                return ok(_NOTICES, "What one process commits, another hears of at once.")
    return warning(
        _NOTICES,
        "They do not arrive: work begins a second late, and other processes hear late of revoked tokens.",
        "Behind PgBouncer set database.listen_url to the server itself.",
    )


async def _check_partitions(database: Database) -> Finding:
    async with database.read() as conn:
        surveys = await partitions.survey(conn, PARTITIONED)
    behind = [each.table for each in surveys if each.days_ahead < _LEAST_DAYS_AHEAD]
    if behind:
        return warning(
            _PARTITIONS,
            f"There are hardly any for the days to come, of {', '.join(behind)}.",
            "A worker adds them once a day, and each start does: does one run? Its log says why not.",
        )
    stray = {each.table: each.stray_rows for each in surveys if each.stray_rows}
    if stray:
        listed = ", ".join(f"{table} ({count})" for table, count in stray.items())
        return warning(
            _PARTITIONS,
            f"Rows lie in the default partition of {listed}.",
            "They are dropped by no day. They came while a day had no partition, or from a wrong clock.",
        )
    ahead = min(each.days_ahead for each in surveys)
    return ok(_PARTITIONS, f"{ahead} days ahead are prepared, and every row has its day.")


async def _check_replica(database: Database) -> Finding:
    deadline = monotonic() + _LOOK_SECONDS
    while (status := database.replica_status()) is not None and monotonic() < deadline:
        if status.reason is None and status.lag_seconds is not None:
            return ok(_REPLICA, f"It is used, and was {status.lag_seconds:.1f} s late.")
        await asyncio.sleep(_PAUSE_SECONDS)
    reason = "it was not looked at" if status is None or status.reason is None else status.reason
    return warning(
        _REPLICA,
        f"It is not used: {redact_text(reason)}.",
        "The primary answers everything until the replica follows again.",
    )


async def check_events(conn: Reader) -> Finding:
    count = await outbox.count_waiting(conn)
    age = _age(await store.oldest_event(conn))
    if age > _MAX_WAIT:
        found = f"{count} wait, the oldest for {format_duration(age)}."
        return warning("events", found, _START_A_WORKER)
    return ok("events", f"{count} wait to be handed on.")


async def check_tasks(conn: Reader) -> Finding:
    count = await queue.count_waiting(conn)
    if parked := await queue.count_parked(conn):
        return await _parked_tasks(conn, parked)
    age = _age(await queue.next_due(conn))
    if age > _MAX_WAIT:
        found = f"{count} wait, one of them overdue for {format_duration(age)}."
        return warning("tasks", found, _START_A_WORKER)
    return ok("tasks", f"{count} wait, none is parked.")


async def check_machines(conn: Reader) -> Finding:
    """Report machines whose jobs nobody looks after; none is known before the first job."""
    known = await machines_store.list_machines(conn)
    lost = [each for each in known if each.is_lost]
    if not lost:
        return ok(_MACHINES, f"{len(known)} known, all seen lately.")
    now = lease_clock()
    names = ", ".join(
        f"{each.name} ({format_duration(timedelta(microseconds=now - each.seen_at))} ago)"
        for each in lost
    )
    return warning(
        _MACHINES,
        f"Not seen lately: {names}.",
        "Start hublet worker there, or wait: after a week they are forgotten. Their jobs are lost.",
    )


async def check_webhooks(conn: Reader) -> Finding:
    age = _age(await store.oldest_fresh_delivery(conn))
    if age > _MAX_WAIT:
        found = f"Deliveries wait, the oldest for {format_duration(age)}."
        return warning("webhooks", found, _START_A_WORKER)
    total, failing, suspended = await store.count_webhooks(conn)
    found = f"{total} there, {failing} failing, {suspended} suspended after failure."
    if suspended:
        advice = "Their owners were told; enabling one clears it, and recover sends what it missed."
        return warning("webhooks", found, advice)
    return ok("webhooks", found)


async def check_processes(conn: Reader, *, kind: str) -> Finding:
    """Name the processes of the hub; `kind` is that of the database."""
    everybody = await list_processes(conn, kind=kind)
    alive = [each for each in everybody if each.is_alive]
    lost = [each for each in everybody if not each.is_alive]
    names = f": {'; '.join(map(_describe, alive))}" if alive else ""
    found = f"{len(alive)} run{names}."
    if lost:
        return warning(
            _PROCESSES,
            f"{found} Ended without a word in the last day: {'; '.join(map(_describe, lost))}.",
            "They were killed or lost the database: see their logs. Each is named for a day.",
        )
    if len({each.version for each in alive}) > 1:
        return warning(_PROCESSES, found, "Their versions differ: restart the older ones.")
    return ok(_PROCESSES, found)


def _describe(process: HubProcess) -> str:
    since, seen = (f"{moment:%Y-%m-%d %H:%M}" for moment in (process.started_at, process.seen_at))
    stopping = ", about to stop" if process.is_draining and process.is_alive else ""
    return (
        f"{process.name} on {process.node}, role {process.role}, version {process.version}, "
        f"since {since}, seen {seen} UTC{stopping}"
    )


async def check_storage(conn: Reader, *, quickly: bool = False) -> Finding:
    """Check the storage; `quickly` tells its bytes as of the last pruning."""
    if count := await scrub_store.count_damaged(conn):
        return await _damaged_objects(conn, count)
    if conn.hub.settings.storage.previous_url is not None:
        return await _moving_content(conn, conn.hub.settings.storage.previous_url)
    totals = await (usage.known_totals if quickly else usage_store.totals)(conn)
    return ok(
        "storage",
        f"Repositories hold {totals['raw']} bytes; at rest are {totals['blobs']} whole and "
        f"{totals['xorbs']} in xorbs. Nothing is known to be damaged.",
    )


async def _moving_content(conn: Reader, previous: str) -> Finding:
    ended_at = await content_move.find_end(conn, previous)
    if ended_at is None:
        advice = (
            "Run hublet storage move until it copies nothing; then remove storage.previous_url."
        )
        return warning("storage", "Content is read from two stores.", advice)
    return warning(
        "storage",
        f"Content is read from two stores; all of it was copied at {ended_at:%Y-%m-%d %H:%M} UTC.",
        "Once hublet storage move copies nothing any more, remove storage.previous_url.",
    )


async def _damaged_objects(conn: Reader, count: int) -> Finding:
    oldest = await scrub_store.list_damaged(conn, limit=_MAX_DAMAGED)
    listed = "; ".join(
        f"{each.kind}/{each.digest} {each.problem}, of {', '.join(each.repos) or 'no repository'}"
        for each in oldest
    )
    more = f"; and {count - len(oldest)} more" if count > len(oldest) else ""
    return problem(
        "storage",
        f"{count} objects are damaged or missing ({listed}{more}).",
        "Restore them from a backup, then run hublet storage verify.",
    )


async def _parked_tasks(conn: Reader, count: int) -> Finding:
    oldest = await queue.list_parked(conn, limit=_MAX_PARKED)
    errors = "; ".join(f"{task.kind}: {task.error}" for task in oldest)
    more = f"; and {count - len(oldest)} more" if count > len(oldest) else ""
    return problem(
        "tasks",
        f"{count} failed too often and are parked ({errors}{more}).",
        "Mend the cause, then run hublet task retry --all; hublet task list shows them.",
    )


def _age(since: int | None) -> timedelta:
    return timedelta() if since is None else timedelta(microseconds=micros() - since)


async def check_search(conn: Reader) -> Finding:
    """Tell whether what was there before an index is in it."""
    under_way = {
        "names": await search_index.FILLING.find_part(conn),
        "full text": await search_texts.FILLING.find_part(conn),
    }
    parts = [f"{name}: {part}" for name, part in under_way.items() if part is not None]
    if not parts:
        return ok(_SEARCH, "All that the hub has is in the index.")
    filled = "; ".join(parts)
    return ok(_SEARCH, f"A worker fills the index, and searches miss what is older ({filled}).")
