"""Rate limits: how many requests a caller may make in a window of time."""

from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import NamedTuple

from hublet.core.clock import monotonic
from hublet.core.errors import TooManyRequests
from hublet.core.hub import ProcessState

_MOST_KEYS = 50_000


@dataclass(frozen=True, kw_only=True)
class RateLimit:
    name: str
    quota: int
    window_seconds: int

    @cached_property
    def header(self) -> str:
        return f'"fixed window";"{self.name}";q={self.quota};w={self.window_seconds}'

    @cached_property
    def raw_header(self) -> tuple[bytes, bytes]:
        return (b"ratelimit-policy", self.header.encode())

    @cached_property
    def head_format(self) -> bytes:
        """The lines of a response's head, with places for what remains and for the reset."""
        line = b'ratelimit: "%b";r=%%d;t=%%d\r\nratelimit-policy: %b\r\n'
        return line % tuple(each.replace("%", "%%").encode() for each in (self.name, self.header))


class RateLimitVerdict(NamedTuple):
    policy: RateLimit
    allowed: bool
    remaining: int
    reset_seconds: int

    @property
    def header(self) -> str:
        return f'"{self.policy.name}";r={self.remaining};t={self.reset_seconds}'

    def headers(self) -> dict[str, str]:
        return {"RateLimit": self.header, "RateLimit-Policy": self.policy.header}

    def head_lines(self) -> bytes:
        return self.policy.head_format % (self.remaining, self.reset_seconds)

    def raw_headers(self) -> tuple[tuple[bytes, bytes], ...]:
        return (b"ratelimit", self.header.encode()), self.policy.raw_header


@dataclass(slots=True)
class _Window:
    ends: float
    seen: int = 0


def share_of(quota: int, *, processes: int) -> int:
    """Return what each of so many processes allows, so that all allow at most twice the quota.

    It is at least 1: that holds for up to twice as many processes as the quota is.
    """
    return quota if processes == 1 else max(1, 2 * quota // (processes + 1))


class Limiter:
    """Counts requests per policy and key in fixed windows, in the memory of this process.

    Where several processes serve the API, each allows its share of a quota q: 2q / (n + 1) of n. All
    together allow less than 2q, and a caller whose requests reach one process only has the most of q
    that this permits.

    Memory is bounded: beyond the largest number of keys the one that was idle longest is
    forgotten. `quiet` counts and reports but never refuses (test mode).
    """

    def __init__(self, *, quiet: bool = False, process: ProcessState | None = None) -> None:
        self._quiet = quiet
        self._process = process or ProcessState()
        # By the name of the policy and the key.
        self._windows: OrderedDict[tuple[str, str], _Window] = OrderedDict()

    def count(self, policy: RateLimit, key: str) -> RateLimitVerdict:
        now = monotonic()
        place = (policy.name, key)
        window = self._windows.get(place)
        if window is None or window.ends <= now:
            window = self._windows[place] = _Window(ends=now + policy.window_seconds)
            if len(self._windows) > _MOST_KEYS:
                self._windows.popitem(last=False)
        self._windows.move_to_end(place)
        window.seen += 1
        left = share_of(policy.quota, processes=self._process.api_processes) - window.seen
        return RateLimitVerdict(
            policy,
            self._quiet or left >= 0,
            max(left, 0),
            # A float of 300.0000001 seconds is 300.
            ceil(window.ends - now - 1e-6),
        )

    def refund(self, policy: RateLimit, key: str) -> None:
        """Take back one count, of a request that belongs to another key."""
        window = self._windows.get((policy.name, key))
        if window is not None:
            window.seen = max(window.seen - 1, 0)


def raise_when_exceeded(verdict: RateLimitVerdict) -> None:
    if not verdict.allowed:
        policy = verdict.policy
        raise TooManyRequests(
            f"Too many requests: {policy.quota} are allowed in {policy.window_seconds} seconds; "
            f"try again in {verdict.reset_seconds} seconds.",
            headers={"Retry-After": str(verdict.reset_seconds)} | verdict.headers(),
        )
