"""Requests whose body never comes to its end."""

import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from patience import SOON_SECONDS
from processes import Place, Server, wait_until

Ending = Literal["farewell", "reset"]

_PIECE = 1 << 16
# Closing then means a reset instead of a farewell, as when a cable is pulled.
_ABRUPTLY = struct.pack("ii", 1, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    method: str
    path: str
    headers: Mapping[str, str]

    def head(self, **more: str) -> bytes:
        fields = {"Host": "hub.test", **self.headers, **more}
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
        return f"{self.method} {self.path} HTTP/1.1\r\n{lines}\r\n".encode()


def break_off(
    server: Server, upload: Upload, sent: bytes, *, announced: int, ending: Ending = "farewell"
) -> None:
    """Announce so many bytes, send these, and go away."""
    _send_and_leave(server, upload.head(Content_Length=str(announced)) + sent, ending=ending)


def break_off_between_chunks(server: Server, upload: Upload, sent: bytes) -> None:
    """Send these bytes in chunks of their own length, and go away before the last, empty one."""
    chunks = b"".join(
        b"%x\r\n%b\r\n" % (len(piece), piece)
        for piece in (sent[start : start + _PIECE] for start in range(0, len(sent), _PIECE))
    )
    _send_and_leave(server, upload.head(Transfer_Encoding="chunked") + chunks, ending="farewell")


def _send_and_leave(server: Server, data: bytes, *, ending: Ending) -> None:
    with socket.create_connection(_address(server), timeout=SOON_SECONDS) as connection:
        connection.sendall(data)
        if ending == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABRUPTLY)
            return
        connection.shutdown(socket.SHUT_WR)
        # The server hangs up when it has noticed; an answer may come before that.
        while connection.recv(_PIECE):
            pass


def _address(server: Server) -> tuple[str, int]:
    parts = urlsplit(server.address)
    assert parts.hostname is not None
    assert parts.port is not None
    return parts.hostname, parts.port


def incoming(place: Place) -> list[Path]:
    """Return the files that uploads have not come to the end of."""
    return list((place.data_dir / "blobs" / "incoming").glob("*"))


def wait_until_nothing_is_left(place: Place) -> None:
    wait_until(lambda: not incoming(place), seconds=SOON_SECONDS)


def resident_megabytes(server: Server) -> float:
    status = Path(f"/proc/{server.process.popen.pid}/status").read_text()
    sizes = dict(line.split(":", 1) for line in status.splitlines())
    return int(sizes["VmRSS"].split()[0]) / 1024
