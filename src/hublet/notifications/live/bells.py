"""Wakes open streams: one look for all of them, and only those whose inbox has changed.

However many streams there are, a process looks a few times a second at most, with one statement.
It looks only while there are streams.
"""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from hublet.core.clock import monotonic
from hublet.core.database import Database, DatabaseUnavailable, Subscription
from hublet.core.logs import get_logger
from hublet.notifications.live import store
from hublet.notifications.live.errors import TooManyStreams
from hublet.notifications.records import INBOXES

log = get_logger("notifications")

# Of one user: some windows on some machines, and no more.
MOST_STREAMS = 20
# Under load commits come by the hundred each second; they are taken together.
_LEAST_PAUSE_SECONDS = 0.25
# A notice of another process may be lost.
_BACK_STOP_SECONDS = 5.0


class Bells:
    """One bell for each open stream, hung up under its user."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._bells: dict[str, set[asyncio.Event]] = {}
        # The version of each inbox when its bells were last rung.
        self._rung_at: dict[str, int] = {}
        self._changes: Subscription | None = None
        self._watching: asyncio.Task[None] | None = None

    def check_room(self, user_id: str) -> None:
        if len(self._bells.get(user_id, ())) >= MOST_STREAMS:
            raise TooManyStreams(MOST_STREAMS)

    @contextmanager
    def hang(self, user_id: str) -> Iterator[asyncio.Event]:
        """Give a bell that is set after every change which is committed from now on."""
        bell = asyncio.Event()
        self._bells.setdefault(user_id, set()).add(bell)
        self._keep_watching()
        try:
            yield bell
        finally:
            self._take_down(user_id, bell)

    def _take_down(self, user_id: str, bell: asyncio.Event) -> None:
        self._bells[user_id].discard(bell)
        if not self._bells[user_id]:
            del self._bells[user_id]
            self._rung_at.pop(user_id, None)
        if not self._bells and self._changes is not None:
            # It sees that there is nobody left, and ends.
            self._changes.ring()

    def _keep_watching(self) -> None:
        if self._watching is not None and not self._watching.done():
            return
        # From this moment on, not from when the task begins: nothing is missed in between.
        opened = ExitStack()
        self._changes = opened.enter_context(self._database.subscribe(INBOXES))
        self._watching = asyncio.create_task(self._watch(opened, self._changes), name="inboxes")

    async def _watch(self, opened: ExitStack, changes: Subscription) -> None:
        with opened:
            looked_at = 0.0
            while self._bells:
                await changes.wait(timeout=_BACK_STOP_SECONDS)
                await asyncio.sleep(looked_at + _LEAST_PAUSE_SECONDS - monotonic())
                looked_at = monotonic()
                try:
                    await self._look()
                except DatabaseUnavailable as error:
                    log.warning("inboxes not looked at", reason=error.reason)

    async def _look(self) -> None:
        listening = list(self._bells)
        if not listening:
            return
        async with self._database.read() as conn:
            versions = await store.versions_of(conn, listening)
        for user_id, version in versions.items():
            if user_id in self._bells and self._rung_at.get(user_id) != version:
                self._rung_at[user_id] = version
                for bell in self._bells[user_id]:
                    bell.set()
