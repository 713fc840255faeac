"""Records of one outgoing call: the request, the response, its timings, and why it failed."""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from hublet.core.dataclasses import dataclass

_NO_HEADERS: Mapping[str, str] = {}


class FailureReason(StrEnum):
    """Why there is no complete response."""

    blocked_target = "blocked-target"
    dns_failed = "dns-failed"
    connection_refused = "connection-refused"
    connection_failed = "connection-failed"
    tls_failed = "tls-failed"
    timeout = "timeout"
    connection_lost = "connection-lost"
    bad_answer = "bad-answer"


class OutgoingFailed(Exception):
    """A stream has no complete response; `detail` is a sentence without secrets."""

    def __init__(self, reason: FailureReason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingRequest:
    """What is sent; headers and body are secrets, and so is the query of many a URL."""

    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes = field(default=b"", repr=False)
    # For everything: the name, the connection, TLS, sending, and reading to the end.
    deadline_seconds: float = 15.0
    # What is kept of the answer's body, and where reading stops and the connection is closed.
    keep_bytes: int = 2048
    read_bytes: int = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """Microseconds of each phase; None for one that did not happen.

    A connection that was kept alive has no name to look up, no connect and no TLS; an address
    has no name either. `first_byte` counts from the open connection to the answer's head.
    """

    dns: int | None = None
    connect: int | None = None
    tls: int | None = None
    first_byte: int | None = None
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingResponse:
    """Outcome of a call.

    Both `status` and `reason` are set when the head arrived and the body then failed. `detail`
    is a sentence for the owner of the target; it is empty when all went well.
    """

    status: int | None
    reason: FailureReason | None
    detail: str
    body: bytes = field(default=b"", repr=False)
    # Only those that somebody reads (see `session`), in lower case, where the response has them.
    headers: Mapping[str, str] = field(default_factory=lambda: _NO_HEADERS)
    timings: Timings

    @property
    def succeeded(self) -> bool:
        return self.reason is None and self.status is not None and self.status // 100 == 2  # noqa: PLR2004 - the class of success.
