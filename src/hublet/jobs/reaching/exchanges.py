"""One request to a job: out to it, and its answer back, both as they come."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from hublet.core.http.connections import Held
from hublet.core.http.exchange import Exchange as Known
from hublet.jobs.reaching.open_ends import OpenEnd
from hublet.jobs.reaching.wire.bodies import VisitorLeft, carry
from hublet.jobs.reaching.wire.heads import Asked, answer_headers
from hublet.jobs.reaching.wire.splicing import Splice
from hublet.jobs.reaching.wire.upstream import SWITCHED, AnswerHead, AnswerLost, Upstream

# Most answers are there sooner: only then is it worth to watch whether the visitor is.
_WATCH_AFTER_SECONDS = 0.05

Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


class BrokenOff(Exception):
    """The answer ended before its end, or the visitor did."""


@dataclass(slots=True, kw_only=True)
class Exchange:
    """What came in, how it goes on, and where its answer goes."""

    asked: Asked
    head: bytes
    # Of the body; None: it comes in chunks.
    length: int | None
    receive: Receive
    send: Send
    held: Held | None
    known: Known

    @property
    def may_switch(self) -> bool:
        return self.held is not None and self.asked.upgrade is not None

    @property
    def is_repeatable(self) -> bool:
        """Tell whether a job may be asked twice, where the first time may not have arrived."""
        is_safe = self.asked.method in {b"GET", b"HEAD", b"OPTIONS"}
        return is_safe and self.length == 0 and not self.may_switch


async def exchange(each: Exchange, upstream: Upstream, end: OpenEnd) -> None:
    """Ask the job and pass on what it says. Raises AnswerLost before, BrokenOff after it began."""
    end.used_at, end.cut = (lambda: upstream.used_at), upstream.abort
    if end.is_closed:
        raise AnswerLost
    is_head = each.asked.method == b"HEAD"
    upstream.send_head(each.head, is_head=is_head, may_switch=each.may_switch)
    watch = _Watch(each, upstream)
    try:
        head = await upstream.head()
        if upstream.switched is None:
            await _answer(each, upstream, head)
            return
    finally:
        await watch.stop()
    await _switch(each, upstream, end, *upstream.switched)


async def _answer(each: Exchange, upstream: Upstream, head: AnswerHead) -> None:
    each.known.started, each.known.status = True, head.status
    # An answer to HEAD tells the length of what it leaves out.
    is_bare = head.has_no_body and each.asked.method != b"HEAD"
    headers = answer_headers(head.headers, has_no_body=is_bare)
    await each.send({"type": "http.response.start", "status": head.status, "headers": headers})
    more = True
    try:
        while more:
            body, more = await upstream.piece()
            each.known.bytes_out += len(body)
            await each.send({"type": "http.response.body", "body": body, "more_body": more})
    except AnswerLost:
        raise BrokenOff from None


async def _switch(
    each: Exchange, upstream: Upstream, end: OpenEnd, raw: bytes, early: bytes
) -> None:
    """Let both sides speak what they agreed on."""
    taken = None if each.held is None else each.held.take_over()
    if taken is None:
        raise BrokenOff
    each.known.started, each.known.status = True, SWITCHED
    transport, beyond = taken
    splice = Splice()
    end.used_at, end.cut = (lambda: splice.used_at), splice.abort
    transport.write(raw + early)
    if beyond:
        upstream.transport.write(beyond)
    splice.join(transport, upstream.transport)
    try:
        await splice.done.wait()
    finally:
        splice.abort()


class _Watch:
    """Carries the body to the job, and breaks off what nobody waits for any more."""

    def __init__(self, each: Exchange, upstream: Upstream) -> None:
        self._each, self._upstream = each, upstream
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_sent = each.length == 0
        if self._is_sent:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_WATCH_AFTER_SECONDS, self._begin)
        else:
            self._begin()

    def _begin(self) -> None:
        self._task = asyncio.create_task(self._carry(), name="body to a job")

    async def _carry(self) -> None:
        length = self._each.length
        try:
            await carry(
                self._each.receive, self._upstream, length=length, when_sent=self._note_sent
            )
        except VisitorLeft:
            self._upstream.abort()

    def _note_sent(self) -> None:
        self._is_sent = True

    async def stop(self) -> None:
        if not self._is_sent:
            self._upstream.retire()
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
