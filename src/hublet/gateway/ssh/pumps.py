"""Pumps between a file descriptor and an SSH channel, no faster than the slower of them."""

import asyncio
import os
from collections.abc import Callable

_CHUNK = 1 << 16
# Watermarks: how many bytes wait for a slow reader before the sender is paused, and resumed.
HIGH_BYTES, _LOW_BYTES = 1 << 18, 1 << 16


class Outlet:
    """Pump from a descriptor into a channel; calls `ended` once, at the end of the file."""

    def __init__(
        self, fd: int, *, deliver: Callable[[bytes], None], ended: Callable[[], None]
    ) -> None:
        self._fd = fd
        self._deliver = deliver
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._is_over = False
        self.resume()

    def pause(self) -> None:
        # After the end the descriptor may have been reused.
        if not self._is_over:
            self._loop.remove_reader(self._fd)

    def resume(self) -> None:
        if not self._is_over:
            self._loop.add_reader(self._fd, self._read)

    def close(self) -> None:
        self.pause()
        self._is_over = True

    def _read(self) -> None:
        try:
            data = os.read(self._fd, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            # EIO: no process has the terminal open any more.
            data = b""
        if data:
            self._deliver(data)
        else:
            self.close()
            self._ended()


class Inlet:
    """Pump from a channel into a descriptor; calls `finish` when everything is written.

    `is_paused`: the sender was already paused before.
    """

    def __init__(
        self,
        fd: int,
        *,
        pause: Callable[[], None],
        resume: Callable[[], None],
        finish: Callable[[], None],
        is_paused: bool = False,
    ) -> None:
        self._fd = fd
        self._pause, self._resume, self._finish = pause, resume, finish
        self._loop = asyncio.get_running_loop()
        self._waiting = bytearray()
        self._is_paused = is_paused
        self._is_last = self._is_over = False

    def write(self, data: bytes) -> None:
        if self._is_over:
            return
        self._waiting += data
        self._flush()

    def end(self) -> None:
        self._is_last = True
        self._flush()

    def close(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._loop.remove_writer(self._fd)

    def _flush(self) -> None:
        if self._is_over:
            return
        try:
            while self._waiting:
                del self._waiting[: os.write(self._fd, self._waiting[:_CHUNK])]
        except BlockingIOError:
            self._loop.add_writer(self._fd, self._flush)
        except OSError:
            # The reader has closed its end.
            self._waiting.clear()
        else:
            self._loop.remove_writer(self._fd)
        self._balance()
        # `_balance` may have called back into `end`, which has finished already.
        if self._is_last and not self._waiting and not self._is_over:
            self.close()
            self._finish()

    def _balance(self) -> None:
        if not self._is_paused and len(self._waiting) > HIGH_BYTES:
            self._is_paused = True
            self._pause()
        elif self._is_paused and len(self._waiting) < _LOW_BYTES:
            self._is_paused = False
            self._resume()
