"""Resolver of host names, in threads of its own so that it never blocks anything else."""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

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
