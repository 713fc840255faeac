"""Connections of a guest to what the job listens on, as `ssh -L` asks for them."""

import socket
from collections.abc import Callable
from contextlib import suppress

import asyncssh
from asyncssh.constants import OPEN_ADMINISTRATIVELY_PROHIBITED, OPEN_CONNECT_FAILED

from hublet.jobs.reaching.dialing.dialing import NothingListens, dial
from hublet.jobs.reaching.dialing.namespaces import NoWayIn
from hublet.jobs.runners.entering.visits import CannotEnter
from hublet.jobs.ssh import names
from hublet.jobs.ssh.pumps import Inlet, Outlet
from hublet.jobs.ssh.records import Guest
from hublet.jobs.ssh.visiting import Visiting

_HERE = frozenset({"localhost", "127.0.0.1", "::1", ""})
_NOT_THERE = "Only the job itself and its network group are reached through it: name localhost."


async def forward(
    visiting: Visiting, guest: Guest, *, host: str, port: int, touch: Callable[[], None]
) -> "Forward":
    """Connect to a port of the job, or of its network group; nothing else is reached through it."""
    job = guest.running.job
    if host not in _HERE and host != job.id and not names.is_of_group(job, host):
        raise asyncssh.ChannelOpenError(OPEN_ADMINISTRATIVELY_PROHIBITED, _NOT_THERE)
    try:
        inside = await visiting.inside(guest.running)
        if names.is_of_group(job, host):
            addresses = await visiting.addresses(guest.running, inside, host)
            made = await names.connect(inside, addresses, port)
        else:
            made = await dial(inside, port)
    except (NothingListens, OverflowError):
        made = None
    except (CannotEnter, NoWayIn) as error:
        raise asyncssh.ChannelOpenError(OPEN_CONNECT_FAILED, str(error)) from None
    if made is None:
        raise asyncssh.ChannelOpenError(
            OPEN_CONNECT_FAILED, f"Nothing at {host} listens on port {port}."
        )
    return Forward(made, touch=touch)


class Forward(asyncssh.SSHTCPSession[bytes]):
    def __init__(self, made: socket.socket, *, touch: Callable[[], None]) -> None:
        self._socket = made
        self._touch = touch
        self._sides = 2

    def connection_made(self, chan: asyncssh.SSHTCPChannel[bytes]) -> None:
        self._chan = chan

    def session_started(self) -> None:
        fd = self._socket.fileno()
        self._inlet = Inlet(
            fd,
            pause=self._chan.pause_reading,
            resume=self._chan.resume_reading,
            finish=self._finish,
        )
        self._outlet = Outlet(fd, deliver=self._deliver, ended=self._ended)

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:  # noqa: ARG002
        self._touch()
        self._inlet.write(data)

    def eof_received(self) -> bool:
        self._inlet.end()
        return True

    def pause_writing(self) -> None:
        self._outlet.pause()

    def resume_writing(self) -> None:
        self._outlet.resume()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - as above.
        self._outlet.close()
        self._inlet.close()
        self._socket.close()

    def _deliver(self, data: bytes) -> None:
        self._touch()
        with suppress(OSError):
            self._chan.write(data)

    def _ended(self) -> None:
        with suppress(OSError):
            self._chan.write_eof()
        self._end_side()

    def _finish(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
        self._end_side()

    def _end_side(self) -> None:
        self._sides -= 1
        if self._sides == 0:
            self._chan.close()
