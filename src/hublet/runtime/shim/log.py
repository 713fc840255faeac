"""Log writer of the shim: a line for each line that the job prints, with its time."""

import os
import time

PIECE = 65536
CONTINUATION = range(0x80, 0xC0)


class Log:
    """The log of the job, append-only: `<microseconds> <line>` for each line."""

    def __init__(self, path: str, *, limit: int, offset: int) -> None:
        self.fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self.size = os.fstat(self.fd).st_size
        self.limit, self.offset, self.stamp = limit, offset, 0
        # The incomplete last line, and the last complete one.
        self.rest = self.last = b""
        # An earlier writer may have been killed in the middle of a line.
        if self.size and os.pread(self.fd, 1, self.size - 1) != b"\n":
            self.append(b"\n")
        self.full = self.size >= limit

    def add(self, data: bytes) -> None:
        whole, newline, self.rest = (self.rest + data).rpartition(b"\n")
        if newline:
            self.lines(whole + newline)
        while len(self.rest) > PIECE:
            piece, self.rest = cut(self.rest)
            self.lines(piece + b"\n")

    def close(self) -> None:
        if self.rest:
            self.lines(self.rest + b"\n")
        self.rest = b""

    def shut(self) -> None:
        """Close the log and its file, for who writes some lines before the shim does."""
        self.close()
        os.close(self.fd)

    def lines(self, data: bytes) -> None:
        self.last = data[-PIECE:].rstrip(b"\n").rpartition(b"\n")[2]
        if self.full:
            return
        if len(data) > PIECE:
            data = b"\n".join(map(in_pieces, data.split(b"\n")))
        if not data.isascii():
            data = data.decode("utf-8", "replace").encode()
        # Times never decrease, even if the clock is set back.
        self.stamp = max(self.stamp, time.time_ns() // 1000 + self.offset)
        stamp = b"%d " % self.stamp
        text = data.replace(b"\r\n", b"\n")[:-1].replace(b"\n", b"\n" + stamp)
        self.append(stamp + text + b"\n")

    def append(self, data: bytes) -> None:
        if self.size + len(data) > self.limit:
            self.full = True
            data = data[: data.rfind(b"\n", 0, max(self.limit - self.size, 0)) + 1]
            words = b"===== The log is full (%d bytes): what comes later is not kept ====="
            data += b"%d " % self.stamp + words % self.limit + b"\n"
        try:
            written = os.write(self.fd, data)
        except OSError:
            written = 0
        if written == len(data):
            self.size += written
        else:
            # The disk is full: no line is better than half a line, and the job goes on.
            os.ftruncate(self.fd, self.size)


def cut(line: bytes) -> tuple[bytes, bytes]:
    at = PIECE
    # Not in the middle of a character, which has at most four bytes.
    while at > PIECE - 3 and line[at] in CONTINUATION:
        at -= 1
    return line[:at], line[at:]


def in_pieces(line: bytes) -> bytes:
    pieces = []
    while len(line) > PIECE:
        piece, line = cut(line)
        pieces.append(piece)
    return b"\n".join([*pieces, line])
