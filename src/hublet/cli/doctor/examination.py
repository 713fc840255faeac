"""The whole examination, in the order in which it is read."""

from pathlib import Path

from hublet.cli.doctor import (
    configuration,
    database,
    folder,
    jobs,
    keys,
    mail,
    programs,
    store,
    times,
    work,
)
from hublet.cli.doctor.findings import Finding, problem
from hublet.cli.options import settings_from
from hublet.core.clock import from_micros, now
from hublet.core.config import ConfigurationError, Settings
from hublet.core.database import Database, open_database
from hublet.core.hub import Hub
from hublet.core.sealing import KeyRing


async def examine(
    *, data_dir: Path | None, database_url: str | None, config: Path | None
) -> list[Finding]:
    """Look at everything and change nothing; without settings there is nothing else to see."""
    try:
        settings = settings_from(data_dir=data_dir, database_url=database_url, config=config)
    except ConfigurationError as error:
        return [
            problem("settings", line, "Correct it; docs/operating.md tells of every setting.")
            for line in str(error).splitlines()
        ]
    return [
        configuration.sources(settings, config=config),
        configuration.base_url(settings),
        configuration.outgoing(settings),
        folder.check(settings.database.data_dir),
        programs.check(),
        await mail.check(settings),
        await jobs.check(settings),
        *await _data(settings),
    ]


async def _data(settings: Settings) -> list[Finding]:
    ring = keys.find_ring(settings)
    without_rows = [keys.alone(settings, ring), _clock(settings)]
    if (missing := database.missing_file(settings)) is not None:
        return [*without_rows, missing]
    # A database can be looked into without its keys; nothing is read that they protect.
    hub = Hub(settings=settings, keys=ring if isinstance(ring, KeyRing) else KeyRing.new())
    try:
        async with open_database(hub) as opened:
            engine = await database.engine(opened)
            schema, readable = await database.schema(opened)
            if not readable:
                return [*without_rows, engine, schema]
            return [*await _identity(opened, ring), engine, schema, *await _work(opened)]
    except Exception as error:  # noqa: BLE001 - whatever an engine says is what was found.
        return [*without_rows, database.out_of_reach(settings, error)]


async def _identity(opened: Database, ring: KeyRing | Finding) -> list[Finding]:
    async with opened.read() as conn:
        newest = await store.newest_row(conn)
        return [await keys.check(conn, ring), _clock(opened.hub.settings, newest=newest)]


async def _work(opened: Database) -> list[Finding]:
    async with opened.read() as conn:
        return [await work.events(conn), await work.tasks(conn), await work.webhooks(conn)]


def _clock(settings: Settings, *, newest: int | None = None) -> Finding:
    written = None if newest is None else from_micros(newest)
    return times.check(now=now(), newest=written, test_mode=settings.server.test_mode)
