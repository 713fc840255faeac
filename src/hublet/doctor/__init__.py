"""Doctor: the examination of a hub, all checks in the order of the report."""

import asyncio
from datetime import datetime

from hublet.core.clock import from_micros, monotonic, now
from hublet.core.config import Settings
from hublet.core.database import Database, DatabaseUnavailable, open_database
from hublet.core.dataclasses import dataclass
from hublet.core.hub import Hub
from hublet.core.sealing import KeyRing
from hublet.doctor import checks, database, store
from hublet.doctor.checks import Finding, FindingStatus

# How long a page shows the same findings.
_KEPT_SECONDS = 60.0
# A page does not wait for a mail server that is silent.
_MAIL_SECONDS = 3.0


async def examine(settings: Settings) -> list[Finding]:
    """Run all checks without changing anything."""
    return [
        checks.check_sources(settings),
        checks.check_base_url(settings),
        checks.check_outgoing(settings),
        checks.check_folder(settings.database.data_dir),
        *await asyncio.to_thread(checks.check_store, settings),
        *await asyncio.to_thread(checks.check_pack_cache, settings),
        checks.check_git(),
        await checks.check_mail(settings),
        await checks.check_jobs(settings, is_thorough=True),
        checks.check_images(settings),
        *await asyncio.to_thread(checks.check_layers, settings),
        *await checks.check_registries(settings),
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
                *await database.check_surroundings(opened),
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


async def _check_work(opened: Database, *, quickly: bool = False) -> list[Finding]:
    async with opened.read() as conn:
        return [
            await database.check_processes(conn, kind=opened.kind),
            await database.check_events(conn),
            await database.check_tasks(conn),
            await database.check_machines(conn),
            await database.check_webhooks(conn),
            await database.check_storage(conn, quickly=quickly),
            await database.check_search(conn),
        ]


def _check_clock(settings: Settings, *, newest: int | None = None) -> Finding:
    written = None if newest is None else from_micros(newest)
    return checks.check_clock(now=now(), newest=written, test_mode=settings.server.test_mode)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What the checks of a running hub found, and when they ran."""

    findings: tuple[Finding, ...]
    examined_at: datetime

    def count(self, status: str) -> int:
        return sum(each.status is FindingStatus(status) for each in self.findings)


class HubExamination:
    """Examines the hub of this process, for a page: beside requests, and once in a while.

    It leaves out what would hold up others: the command alone reads a whole SQLite file, and adds up
    the whole storage.
    """

    def __init__(self, opened: Database) -> None:
        self._database = opened
        self._settings = opened.hub.settings
        self._report: Report | None = None
        self._examined_at = 0.0
        self._examining = asyncio.Lock()

    async def report(self) -> Report:
        """Return what was found within the last minute, or examine now."""
        async with self._examining:
            if self._report is None or monotonic() - self._examined_at > _KEPT_SECONDS:
                findings = tuple(await self._examine())
                self._report = Report(findings=findings, examined_at=now())
                self._examined_at = monotonic()
            return self._report

    async def _examine(self) -> list[Finding]:
        settings = self._settings
        return [
            checks.check_sources(settings),
            checks.check_base_url(settings),
            checks.check_outgoing(settings),
            await asyncio.to_thread(checks.check_folder, settings.database.data_dir),
            *await asyncio.to_thread(checks.check_store, settings),
            *await asyncio.to_thread(checks.check_pack_cache, settings),
            await asyncio.to_thread(checks.check_git),
            await self._check_mail(),
            await checks.check_jobs(settings),
            checks.check_images(settings),
            *await asyncio.to_thread(checks.check_layers, settings),
            *await self._check_data(),
        ]

    async def _check_mail(self) -> Finding:
        try:
            async with asyncio.timeout(_MAIL_SECONDS):
                return await checks.check_mail(self._settings)
        except TimeoutError:
            return checks.silent_mail_server(self._settings)

    async def _check_data(self) -> list[Finding]:
        ring = self._database.hub.keys
        try:
            engine = await database.check_engine(self._database, quickly=True)
            schema, _ = await database.check_schema(self._database)
            return [
                *await _check_keys_and_clock(self._database, ring),
                engine,
                schema,
                *await database.check_surroundings(self._database),
                *await _check_work(self._database, quickly=True),
            ]
        except DatabaseUnavailable as error:
            return [database.unreachable_database(self._settings, error)]
