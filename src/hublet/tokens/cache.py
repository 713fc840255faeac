"""Cache of callers by token, so that a busy caller costs one look-up."""

import asyncio
from collections import OrderedDict
from contextlib import ExitStack

from hublet.accounts.organizations import security_store
from hublet.accounts.records import IpRange, is_within
from hublet.core.clock import micros, monotonic
from hublet.core.database import Database, DatabaseUnavailable
from hublet.core.database.engine import CREDENTIALS_CHANNEL
from hublet.core.logs import get_logger
from hublet.tokens import service, store
from hublet.tokens.records import Caller

log = get_logger("tokens")

_FLUSH_SECONDS = 5.0


class CallerCache:
    """Callers by token value, for at most a second and at most so many.

    Only tokens that work are remembered, so guesses cannot fill it. Whatever was remembered
    before a revocation counts for nothing once that is committed in this process, or heard
    of from another.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        settings = database.hub.settings.tokens
        self._binds = database.hub.settings.oauth.bind_tokens
        self._seconds = settings.cache_seconds
        self._size = settings.cache_size
        self._callers: OrderedDict[str, tuple[float, Caller]] = OrderedDict()
        self._used: dict[str, int] = {}
        # Networks from which requests need a token, and how long that is known.
        self._ranges: tuple[float, tuple[IpRange, ...]] = (0.0, ())
        self._looking: asyncio.Task[tuple[IpRange, ...]] | None = None
        self._open = ExitStack()
        self._revocations = self._open.enter_context(database.subscribe(CREDENTIALS_CHANNEL))
        self._wakes = 0
        self._flushing: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._flushing = asyncio.create_task(self._keep_flushing(), name="token-uses")

    async def stop(self) -> None:
        self._open.close()
        if self._flushing is not None:
            self._flushing.cancel()
            await asyncio.gather(self._flushing, return_exceptions=True)
        await self.flush()

    def known(self, value: str) -> Caller | None:
        """Return the caller if that is known without asking the database."""
        # Looking costs nothing and leaves no moment between a revocation and its effect.
        if self._wakes != self._revocations.wakes:
            self._forget()
        entry = self._callers.get(value)
        if entry is None or entry[0] <= monotonic():
            return None
        return entry[1]

    def _forget(self) -> None:
        self._callers.clear()
        self._ranges = (0.0, ())
        self._wakes = self._revocations.wakes

    async def needs_token(self, address: str) -> bool:
        """Tell whether an organization wants requests from this address to have a token."""
        if self._wakes != self._revocations.wakes:
            self._forget()
        until, ranges = self._ranges
        if until <= monotonic():
            # One look for all who wait.
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._look_up_ranges(), name="token-ranges")
            ranges = await asyncio.shield(self._looking)
        return bool(ranges) and is_within(address, ranges)

    async def _look_up_ranges(self) -> tuple[IpRange, ...]:
        wakes = self._revocations.wakes
        async with self._database.read() as conn:
            ranges = tuple(await security_store.list_ranges_that_need_tokens(conn))
        if wakes == self._revocations.wakes:
            self._ranges = (monotonic() + self._seconds, ranges)
        return ranges

    async def find(self, value: str, *, path: str = "") -> Caller | None:
        caller = self.known(value) or await self._look_up(value)
        return caller if caller is not None and self.use(caller, path=path) else None

    async def look_at(self, value: str) -> Caller | None:
        """Return whose token it is if it works, for somebody else who asks: it is not used by that."""
        caller = self.known(value) or await self._look_up(value)
        return None if caller is None or _is_past(caller) else caller

    def use(self, caller: Caller, *, path: str = "") -> bool:
        """Note that the token is used now, at this path; False when its time is up.

        With the setting oauth.bind_tokens also when it is for another part of the hub: who does
        not say where a token is used gets none that is bound.
        """
        if _is_past(caller):
            return False
        if self._binds and not caller.token.is_for(path):
            return False
        self._used[caller.token.id] = micros()
        return True

    async def _look_up(self, value: str) -> Caller | None:
        # An answer that was read before a revocation must not be remembered after it.
        wakes = self._revocations.wakes
        async with self._database.read() as conn:
            caller = await service.find_caller(conn, value)
        if caller is not None and self._seconds and wakes == self._revocations.wakes:
            self._callers[value] = (monotonic() + self._seconds, caller)
            self._callers.move_to_end(value)
            if len(self._callers) > self._size:
                self._callers.popitem(last=False)
        return caller

    async def _keep_flushing(self) -> None:
        while True:
            await asyncio.sleep(_FLUSH_SECONDS)
            await self.flush()

    async def flush(self) -> None:
        """Write when tokens were last used: one transaction for all of them."""
        if not self._used:
            return
        used, self._used = self._used, {}
        try:
            async with self._database.transaction() as conn:
                await store.set_last_used(conn, used.items())
        except DatabaseUnavailable as error:
            log.warning("last uses not written", reason=error.reason)


def _is_past(caller: Caller) -> bool:
    expires_at = caller.token.expires_at
    return expires_at is not None and expires_at.timestamp() * 1e6 <= micros()
