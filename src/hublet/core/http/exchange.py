"""One request and what becomes known about it on the way."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

from hublet.core.http.quotas import Quotas
from hublet.core.limits import Verdict


@dataclass(slots=True)
class Exchange:
    request_id: str
    address: str
    # As sent, such as "Bearer hf_…"; never written to a log.
    authorization: str | None
    # Who calls, if that is known before any route; the edge knows only that it has a user_name.
    known_caller: Any | None
    user: str | None
    # Whether a browser asks for a script of another origin.
    has_origin: bool = False
    verdict: Verdict | None = None
    status: int = 0
    bytes_out: int = 0
    started: bool = False
    finished: bool = False
    # Whether the answer's body is dropped on the way out; who makes a large one need not.
    without_body: bool = False
    quotas: Quotas | None = None
    # Called when the hub stops, for answers that have no end of their own.
    on_stop: Callable[[], None] | None = None

    def identify(self, user: str) -> None:
        """Note whose request it is; from now on it counts for that user."""
        if self.user is None and self.quotas is not None:
            self.verdict = self.quotas.recount(user=user, address=self.address)
        self.user = user


def exchange_of(request: Request) -> Exchange:
    exchange = request.scope["exchange"]
    assert isinstance(exchange, Exchange)  # noqa: S101 - the edge is always outermost
    return exchange
