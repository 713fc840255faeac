"""What listens in the job of the proxy's benchmark: as little as can be, so that the rest shows.

`/` gives a short answer, `/bulk/<bytes>` so many, and an upgrade repeats whatever is said.
"""

import asyncio
import os
import sys
from typing import cast

import uvloop

_SHORT = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 5\r\n\r\nhello"
_SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n"
_PIECE = bytes(1 << 18)


class Served(asyncio.Protocol):
    def __init__(self) -> None:
        self._received = b""
        self._repeats = False
        self._left = 0
        self._is_paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._repeats:
            self._transport.write(data)
            return
        self._received += data
        while b"\r\n\r\n" in self._received:
            head, _, self._received = self._received.partition(b"\r\n\r\n")
            self._answer(head)

    def _answer(self, head: bytes) -> None:
        if b"\r\nupgrade:" in head.lower():
            self._repeats = True
            self._transport.write(_SWITCH)
        elif head.startswith(b"GET /bulk/"):
            self._left = int(head[10:].partition(b" ")[0])
            self._transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % self._left)
            self._go_on()
        else:
            self._transport.write(_SHORT)

    def _go_on(self) -> None:
        while self._left and not self._is_paused:
            piece = _PIECE[: self._left]
            self._left -= len(piece)
            self._transport.write(piece)

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        self._go_on()


async def main() -> None:
    port, core = int(sys.argv[1]), int(sys.argv[2])
    if core >= 0:
        # Not on the core of the hub that started it.
        os.sched_setaffinity(0, {core})
    server = await asyncio.get_running_loop().create_server(Served, "127.0.0.1", port)
    print("listening", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
