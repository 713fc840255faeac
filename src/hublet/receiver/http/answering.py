"""The one answer to a request: what came of it or, when that takes too long, that it does."""

import asyncio
import logging
from http import HTTPStatus

from starlette.types import Receive, Scope, Send

from hublet.receiver.activity import Activity, Seen
from hublet.receiver.http.answers import Answer, Reply, error
from hublet.receiver.surroundings import monotonic, now

log = logging.getLogger("hublet.receiver")


class Answering:
    """Sends the first answer there is, and drops what comes later.

    A handler that takes too long is not cancelled: half of its work done would be worse than all
    of it done late. A timer costs next to nothing, where a task for each handler would not.
    """

    __slots__ = ("_activity", "_begun", "_exchange", "_late", "_path", "_seconds", "_timer", "has_body")  # fmt: skip

    def __init__(
        self,
        path: str,
        exchange: tuple[Scope, Receive, Send],
        activity: Activity,
        seconds: float | None,
    ) -> None:
        self._path = path
        self._exchange = exchange
        self._activity = activity
        self._seconds = seconds
        self._begun = monotonic()
        self._late: asyncio.Task[None] | None = None
        self.has_body = False
        loop = asyncio.get_running_loop()
        self._timer = None if seconds is None else loop.call_later(seconds, self._hurry)

    @property
    def is_over(self) -> bool:
        return self._late is not None

    async def send(self, reply: Reply) -> None:
        self.stop()
        if self._late is None:
            await self._send(reply)
        else:
            await self._late

    def stop(self) -> None:
        """Wait no longer: there is an answer, or nobody to send it to."""
        if self._timer is not None:
            self._timer.cancel()

    async def _send(self, reply: Reply) -> None:
        scope, receive, send = self._exchange
        await reply(scope, receive, send)
        if scope["method"] == "POST":
            took = (monotonic() - self._begun) * 1000
            self._activity.note(Seen(now(), self._path, reply.status_code, took))

    def _hurry(self) -> None:
        self._late = asyncio.get_running_loop().create_task(self._send(self._apology()))

    def _apology(self) -> Answer:
        if not self.has_body:
            sentence = f"The body did not arrive within {self._seconds:g} seconds."
            return error(HTTPStatus.REQUEST_TIMEOUT, sentence)
        log.warning(
            "The handler of %s takes longer than %g seconds; it goes on, but the sender was told "
            "to come again. With a spool, it would have all the time it needs.",
            self._path,
            self._seconds,
        )
        sentence = f"The handler did not end within {self._seconds:g} seconds."
        return error(HTTPStatus.GATEWAY_TIMEOUT, sentence)
