"""Client for all outgoing calls, one for the life of a process, and its resolver of host names, in threads of
its own so that it never blocks anything else.
"""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from ssl import SSLContext
from types import TracebackType
from typing import TYPE_CHECKING, Self

from hublet.core.config import Settings
from hublet.core.outgoing.networks import AddressPolicy
from hublet.core.outgoing.records import OutgoingRequest, OutgoingResponse
from hublet.core.tracing import call_span, propagation_headers

if TYPE_CHECKING:
    from hublet.core.outgoing.dialer import GuardedNames
    from hublet.core.outgoing.session import OutgoingSession
    from hublet.core.outgoing.streams import OutgoingStream, StreamSession

# Given a host name, returns its addresses; raises OSError when there are none to be had.
Resolve = Callable[[str], Awaitable[Sequence[str]]]

BUDGET_SECONDS = 5.0
MAX_THREADS = 32


class Resolver:
    """getaddrinfo, in threads of its own.

    A name server that does not answer holds a thread for half a minute. The shared pool of
    `asyncio.to_thread` serves git and files, so these threads are others, they are counted,
    and they are daemons: a stop does not wait for them.
    """

    def __init__(
        self, *, budget_seconds: float = BUDGET_SECONDS, threads: int = MAX_THREADS
    ) -> None:
        self._budget_seconds = budget_seconds
        self._free = asyncio.Semaphore(threads)

    async def resolve(self, host: str) -> list[str]:
        try:
            async with asyncio.timeout(self._budget_seconds):
                await self._free.acquire()
                return await self._in_a_thread(host)
        except TimeoutError:
            raise OSError(f"The lookup of {host} took too long.") from None

    def _in_a_thread(self, host: str) -> asyncio.Future[list[str]]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[str]] = loop.create_future()

        def settle(answer: list[str] | OSError) -> None:
            # Only now, not when the caller gives up: the thread was busy until here.
            self._free.release()
            if future.done():
                return
            if isinstance(answer, OSError):
                future.set_exception(answer)
            else:
                future.set_result(answer)

        def run() -> None:
            answer = _look_up(host)
            # The loop may be gone by now, and with it all who waited.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, answer)

        threading.Thread(target=run, name="hublet-lookup", daemon=True).start()
        return future


def _look_up(host: str) -> list[str] | OSError:
    try:
        results = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        return error
    except UnicodeError:
        return OSError(f"{host} is not a name that can be looked up.")
    return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in results))


PER_HOST = 64


class OutgoingClient:
    """Keep one for the life of a process: connections stay open between calls."""

    def __init__(
        self,
        settings: Settings,
        *,
        resolve: Resolve | None = None,
        per_host: int = PER_HOST,
        policy: AddressPolicy | None = None,
    ) -> None:
        self.policy = policy or AddressPolicy.of(settings)
        self._resolve = resolve
        self._per_host = per_host
        self._opening = asyncio.Lock()
        self._guard: tuple[GuardedNames, SSLContext] | None = None
        self._session: OutgoingSession | None = None
        self._streams: StreamSession | None = None

    async def send(self, request: OutgoingRequest) -> OutgoingResponse:
        """Send one request and return its outcome.

        A failure of the network is a response with a reason, never an exception.
        """
        session = self._session or await self._open()
        with call_span(request.method, request.url):
            if headers := propagation_headers():
                request = replace(request, headers={**request.headers, **headers})
            return await session.send(request)

    @asynccontextmanager
    async def stream(
        self, method: str, url: str, headers: Mapping[str, str], *, idle_seconds: float
    ) -> "AsyncIterator[OutgoingStream]":
        """Send a request whose response may have any size; see `OutgoingStream`."""
        streams = self._streams or await self._open_streams()
        with call_span(method, url):
            sent = {**headers, **(propagation_headers() or {})}
            async with streams.open(method, url, sent, idle_seconds=idle_seconds) as response:
                yield response

    async def close(self) -> None:
        for session in (self._session, self._streams):
            if session is not None:
                await session.close()
        if self._guard is not None:
            self._guard[0].close()

    async def __aenter__(self) -> Self:
        await self._open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _open(self) -> "OutgoingSession":
        async with self._opening:
            if self._session is None:
                names, tls = await self._open_guard()
                session_class = await asyncio.to_thread(_load_session)
                self._session = session_class(self.policy, names, tls, per_host=self._per_host)
            return self._session

    async def _open_streams(self) -> "StreamSession":
        async with self._opening:
            if self._streams is None:
                names, tls = await self._open_guard()
                session_class = await asyncio.to_thread(_load_streams)
                self._streams = session_class(self.policy, names, tls, per_host=self._per_host)
            return self._streams

    async def _open_guard(self) -> "tuple[GuardedNames, SSLContext]":
        if self._guard is None:
            names_class, tls = await asyncio.to_thread(_load_guard)
            self._guard = names_class(self.policy, self._resolve or Resolver().resolve), tls
        return self._guard


# What a call needs is imported with the first one, in a thread: TLS with the trusted certificates
# and aiohttp take a quarter of a second.


def _load_guard() -> "tuple[type[GuardedNames], SSLContext]":
    from hublet.core.outgoing.dialer import GuardedNames, tls_context  # noqa: PLC0415 - as above.

    return GuardedNames, tls_context()


def _load_session() -> "type[OutgoingSession]":
    from hublet.core.outgoing.session import OutgoingSession  # noqa: PLC0415 - as above.

    return OutgoingSession


def _load_streams() -> "type[StreamSession]":
    from hublet.core.outgoing.streams import StreamSession  # noqa: PLC0415 - as above.

    return StreamSession
