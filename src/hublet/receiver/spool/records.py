"""What the spool keeps of a delivery, and when it tries again."""

from dataclasses import dataclass

# Seconds to wait after each attempt that failed, or after the start of one that the process did
# not survive.
WAITS = (5.0, 30.0, 300.0, 1800.0, 7200.0, 18000.0, 36000.0)
# Longer than the hub tries to send one, so that what comes twice is known.
KEPT_SECONDS = 7 * 86400.0
# What was given up is kept with its content, for whoever looks into it.
GIVEN_UP_SECONDS = 30 * 86400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Spooled:
    path: str
    delivery_id: str
    query: bytes
    headers: list[tuple[str, str]]
    body: bytes
    # Where it stands in line, and how often it was tried; the store tells.
    number: int = 0
    attempts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    waiting: int
    failed: int
