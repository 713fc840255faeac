"""Connection guard: closes clients that are too slow, too idle or too many (decision 0039).

The hub's own turn is never timed: a response, a stream of events or a connection that another
protocol has taken over may last for as long as it likes.
"""

import asyncio
import resource
from collections.abc import Collection
from enum import Enum, auto
from heapq import nsmallest
from ipaddress import IPv6Address, ip_address, ip_network
from math import inf
from typing import Protocol

from hublet.core.clock import monotonic
from hublet.core.config import ServerSettings
from hublet.core.errors import TooManyRequests, Unavailable
from hublet.core.logs import get_logger

log = get_logger("connections")

# Files, databases, jobs and git need descriptors too: a quarter is theirs, at most this many.
_LARGEST_RESERVE = 512
# Under a flood room is made for many at once, so that not every one of them costs a search.
_SHARE_TO_CLOSE = 16
_LOG_PAUSE_SECONDS = 60.0
_LONGEST_PAUSE_SECONDS = 1.0
# Whoever has an IPv6 address has as many as they like below this.
_IPV6_PREFIX = 64


class Phase(Enum):
    """What a connection waits for; only in the last one it is the hub's turn."""

    idle = auto()
    head = auto()
    body = auto()
    response = auto()


class ClientClock:
    """How long the client of one connection may let the hub wait."""

    __slots__ = ("_is_late", "_settings", "deadline", "phase", "since")

    def __init__(self, settings: ServerSettings, now: float) -> None:
        self._settings = settings
        self._is_late = False
        self.phase = Phase.head
        self.since = now
        self.deadline = now + settings.header_seconds

    def await_request(self, now: float) -> None:
        """The response is written. The server closes an idle connection; this is for the unread."""
        self.phase, self.since = Phase.idle, now
        self.deadline = now + self._settings.keep_alive_seconds + self._settings.stall_seconds

    def await_head(self, now: float) -> None:
        self.phase, self.since = Phase.head, now
        self.deadline = now + self._settings.header_seconds

    def await_body(self, now: float) -> None:
        self.phase = Phase.body
        self.deadline = now + self._settings.stall_seconds

    def count(self, size: int, now: float) -> None:
        """Count bytes of a body: they buy time, but never more than one stall."""
        bought = self.deadline + size / self._settings.body_bytes_per_second
        self.deadline = min(bought, now + self._settings.stall_seconds)

    def forgive(self, now: float) -> None:
        """It is not the client that is slow."""
        self.deadline = max(self.deadline, now + self._settings.stall_seconds)

    @property
    def is_idle(self) -> bool:
        """Tell whether no request is on its way, or only its head."""
        return self.phase is Phase.idle or self.phase is Phase.head

    def stop(self) -> None:
        self.phase, self.deadline = Phase.response, inf

    def is_over(self, now: float) -> bool:
        """Tell whether it is late for the second time in a row.

        Where this process itself was held up, what the client sent is read in between.
        """
        was_late, self._is_late = self._is_late, now > self.deadline
        return was_late and self._is_late


class GuardedConnection(Protocol):
    client: tuple[str, int] | None
    clock: ClientClock

    def is_held_up(self) -> bool:
        """Tell whether the client waits for the hub, or takes a response bit by bit."""
        ...

    def cut(self) -> None:
        """Close it, because the client is too slow."""
        ...

    def evict(self) -> None:
        """Close it at once: it is idle, and others need its place."""
        ...


class TooManyConnections(TooManyRequests):
    def __init__(self, most: int) -> None:
        super().__init__(f"An address has at most {most} connections at a time.")


class NoRoom(Unavailable):
    def __init__(self) -> None:
        super().__init__("The hub has no room for another connection: try again later.")


class ConnectionGuard:
    """All connections of a server."""

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        # Each response is the last on its connection: who comes back is to come to another process.
        self.is_draining = False
        self._connections: set[GuardedConnection] = set()
        self._by_address: dict[str | None, set[GuardedConnection]] = {}
        self._limit, self._first_reserved = _descriptors()
        self._logged: dict[str, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        shortest = min(settings.header_seconds, settings.stall_seconds)
        self._pause = min(_LONGEST_PAUSE_SECONDS, shortest / 4)

    def admit(self, connection: GuardedConnection, *, descriptor: int) -> None:
        """Take a new connection in. Raises TooManyConnections or NoRoom."""
        address, most = self._address_key(connection), self.settings.connections_per_address
        others = self._by_address.get(address, set())
        if address is not None and len(others) >= most and not self._evict(others):
            self._log_rarely("too many connections of an address", address=address, most=most)
            raise TooManyConnections(most)
        if descriptor >= self._first_reserved and not self._make_room():
            raise NoRoom
        self._by_address.setdefault(address, others).add(connection)
        self._connections.add(connection)
        if self._timer is None:
            self._sweep_later()

    def release(self, connection: GuardedConnection) -> None:
        """Forget a connection that is closed, also one that was refused."""
        self._connections.discard(connection)
        address = self._address_key(connection)
        others = self._by_address.get(address, set())
        others.discard(connection)
        if not others:
            self._by_address.pop(address, None)

    def _address_key(self, connection: GuardedConnection) -> str | None:
        """Return what a connection counts for; None: it comes from a proxy, or it is a test."""
        if connection.client is None or self.settings.test_mode:
            return None
        address = connection.client[0]
        if ":" not in address and not self.settings.trusted_proxies:
            return address
        parsed = ip_address(address.partition("%")[0])
        if isinstance(parsed, IPv6Address):
            parsed = parsed.ipv4_mapped or parsed
        if any(parsed in network for network in self.settings.trusted_proxies):
            return None
        if isinstance(parsed, IPv6Address):
            return str(ip_network((parsed, _IPV6_PREFIX), strict=False))
        return str(parsed)

    def _make_room(self) -> bool:
        """Close those that are idle the longest; False: none is."""
        self._log_rarely(
            "the reserve of open files is reached: idle connections are closed, then new ones",
            connections=len(self._connections),
            open_files_limit=self._limit,
            reserved=self._limit - self._first_reserved,
        )
        return self._evict(self._connections)

    def _evict(self, connections: Collection[GuardedConnection]) -> bool:
        idle = [each for each in connections if each.clock.is_idle]
        count = 1 + len(connections) // _SHARE_TO_CLOSE
        for each in nsmallest(count, idle, key=lambda idle: idle.clock.since):
            self.release(each)
            each.evict()
        return bool(idle)

    def _log_rarely(self, event: str, **fields: object) -> None:
        now = monotonic()
        if now >= self._logged.get(event, -inf) + _LOG_PAUSE_SECONDS:
            self._logged[event] = now
            log.warning(event, **fields)

    def _sweep_later(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._pause, self.sweep)

    def sweep(self) -> None:
        """Look at every connection, and cut the client that is late."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now = monotonic()
        for connection in list(self._connections):
            clock = connection.clock
            if clock.deadline != inf and connection.is_held_up():
                clock.forgive(now)
            if clock.is_over(now):
                connection.cut()
        if self._connections:
            self._sweep_later()


def _descriptors() -> tuple[float, float]:
    """Return how many files may be open, and the first descriptor that is not for connections."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return inf, inf
    return limit, limit - min(_LARGEST_RESERVE, limit // 4)
