"""Factory of unused hubs, one after the other, each in a folder of its own."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

from hublet.accounts.users import service as accounts
from hublet.core import clock, ids
from hublet.core.config import Settings
from hublet.core.database import Database
from hublet.core.database.migrations import migrate
from hublet.core.dataclasses import dataclass
from hublet.core.startup import open_hub
from hublet.first_start import ADMINISTRATOR, prepare
from hublet.gateway.ssh.listener import listen
from hublet.serving import running, working
from hublet.testing.child import store
from hublet.tokens import service as tokens
from hublet.tokens.records import TokenRole
from hublet.worker import Worker


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningHub:
    app: Callable[[Any, Any, Any], Awaitable[None]]
    database: Database
    worker: Worker
    # The kinds of periodic tasks that an unused hub schedules for itself.
    housekeeping: frozenset[str]

    def move_clock(self, by: timedelta) -> None:
        """Move the clock at once, and let the worker look for what became due."""
        clock.move(by)
        self.database.wake_all()


class HubFactory:
    """Opens unused hubs, each in a folder of its own, and closes the one before."""

    def __init__(self, settings: Settings, folder: Path, *, token: str) -> None:
        self._settings = settings
        self._folder = folder
        self._token = token
        self._numbers = count(1)
        self._open = AsyncExitStack()
        # The database file of an unused hub; creating one takes half a second.
        self._template: bytes | None = None
        self._is_migrated = False
        url = settings.database.url
        self._cleaner = None if url is None else store.DatabaseCleaner(url)
        self._leftovers: set[asyncio.Task[None]] = set()

    async def next(self) -> RunningHub:
        """Close the current hub, and open an unused one."""
        await self._end()
        clock.reset()
        ids.restart()
        ssh, settings = listen(self._in_a_new_folder())
        if self._cleaner is None:
            await self._copy_template(settings)
        elif self._is_migrated:
            await self._cleaner.run()
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._remove_later, settings.database.data_dir)
            database = await stack.enter_async_context(open_hub(settings))
            if self._cleaner is not None:
                await self._populate(database)
            async with database.read() as conn:
                housekeeping = await store.list_kinds(conn)
            worker = Worker(database)
            await stack.enter_async_context(working(database, worker))
            app = await stack.enter_async_context(running(database, worker, ssh=ssh))
            # Processes of jobs end first: a worker would leave them running.
            stack.push_async_callback(worker.end_jobs)
            self._open = stack.pop_all()
        return RunningHub(app=app, database=database, worker=worker, housekeeping=housekeeping)

    async def close(self) -> None:
        await self._end()
        if self._cleaner is not None:
            await self._cleaner.close()

    async def _end(self) -> None:
        await self._open.aclose()
        self._open = AsyncExitStack()

    def _in_a_new_folder(self) -> Settings:
        folder = self._folder / str(next(self._numbers))
        return replace(self._settings, database=replace(self._settings.database, data_dir=folder))

    async def _copy_template(self, settings: Settings) -> None:
        path = settings.database.data_dir / "hub.db"
        if self._template is None:
            async with open_hub(settings) as database:
                await self._populate(database)
            # Closing has checkpointed everything into this file.
            self._template = path.read_bytes()
        else:
            path.parent.mkdir(mode=0o700)
            path.write_bytes(self._template)

    async def _populate(self, database: Database) -> None:
        """Create the administrator, then all that a first start creates."""
        if not self._is_migrated:
            await migrate(database)
            self._is_migrated = True
        async with database.transaction() as conn:
            # Without a password: hashing one would take longer than all the rest.
            user = await accounts.create_user(conn, ADMINISTRATOR, is_admin=True)
            await tokens.issue(
                conn, user_id=user.id, name="tests", role=TokenRole.write, value=self._token
            )
        await prepare(database)

    async def _remove_later(self, folder: Path) -> None:
        """Remove a folder while the next test runs: a thread may still write into it."""
        removing = asyncio.create_task(asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True))
        self._leftovers.add(removing)
        removing.add_done_callback(self._leftovers.discard)
