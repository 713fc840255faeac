"""Examination of a hub: runs all checks, in the order of the report."""

from pathlib import Path

from hublet.cli.doctor import checks, database, store
from hublet.cli.doctor.checks import Finding, problem
from hublet.cli.options import load_settings
from hublet.core.clock import from_micros, now
from hublet.core.config import ConfigurationError, Settings
from hublet.core.database import Database, open_database
from hublet.core.hub import Hub
from hublet.core.sealing import KeyRing


async def examine(
    *, data_dir: Path | None, database_url: str | None, config: Path | None
) -> list[Finding]:
    """Run all checks without changing anything; invalid settings are the only finding then."""
    try:
        settings = load_settings(data_dir=data_dir, database_url=database_url, config=config)
    except ConfigurationError as error:
        return [
            problem("settings", line, "Correct it; docs/operating.md tells of every setting.")
            for line in str(error).splitlines()
        ]
    return [
        checks.check_sources(settings, config=config),
        checks.check_base_url(settings),
        checks.check_outgoing(settings),
        checks.check_folder(settings.database.data_dir),
        checks.check_git(),
        await checks.check_mail(settings),
        await checks.check_jobs(settings),
        checks.check_images(settings),
        *await _check_data(settings),
    ]


async def _check_data(settings: Settings) -> list[Finding]:
    ring = database.find_ring(settings)
    without_rows = [database.check_keys_alone(settings, ring), _check_clock(settings)]
    if (missing := database.find_missing_file(settings)) is not None:
        return [*without_rows, missing]
    # These checks read nothing that the keys protect, so a new ring is as good as a missing one.
    hub = Hub(settings=settings, keys=ring if isinstance(ring, KeyRing) else KeyRing.new())
    try:
        async with open_database(hub) as opened:
            engine = await database.check_engine(opened)
            schema, readable = await database.check_schema(opened)
            if not readable:
                return [*without_rows, engine, schema]
            return [
                *await _check_keys_and_clock(opened, ring),
                engine,
                schema,
                *await _check_work(opened),
            ]
    except Exception as error:  # noqa: BLE001 - any error of an engine is a finding.
        return [*without_rows, database.unreachable_database(settings, error)]


async def _check_keys_and_clock(opened: Database, ring: KeyRing | Finding) -> list[Finding]:
    async with opened.read() as conn:
        newest = await store.newest_row(conn)
        return [
            await database.check_keys(conn, ring),
            _check_clock(opened.hub.settings, newest=newest),
        ]


async def _check_work(opened: Database) -> list[Finding]:
    async with opened.read() as conn:
        return [
            await database.check_events(conn),
            await database.check_tasks(conn),
            await database.check_webhooks(conn),
            await database.check_storage(conn),
        ]


def _check_clock(settings: Settings, *, newest: int | None = None) -> Finding:
    written = None if newest is None else from_micros(newest)
    return checks.check_clock(now=now(), newest=written, test_mode=settings.server.test_mode)
