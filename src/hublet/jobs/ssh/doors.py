"""One connection by SSH: who is let in, and what they may ask for."""

import base64
import socket
from collections.abc import Awaitable, Callable
from typing import Protocol

import asyncssh
from asyncssh.constants import DISC_BY_APPLICATION, DISC_NO_MORE_AUTH_METHODS_AVAILABLE

from hublet.core.clock import monotonic
from hublet.core.limits import Limiter, Policy
from hublet.jobs.ssh.forwarding import Forward
from hublet.jobs.ssh.listening import Listener
from hublet.jobs.ssh.records import Guest
from hublet.jobs.ssh.sessions import Session

# Keys that one connection may try.
_MOST_KEYS = 10
# What one connection may have at a time, and ask for in all.
_MOST_SESSIONS, _MOST_LISTENERS = 50, 20
_GONE = "The job, the key or the right to the job is gone."


class House(Protocol):
    """What all connections of one gateway share."""

    limiter: Limiter
    policy: Policy

    async def admit(self, job_id: str, *, fingerprint: str, data: str) -> Guest | None: ...

    async def welcome(self, door: "Door", guest: Guest) -> None: ...

    def forget(self, door: "Door") -> None: ...

    def session(self, guest: Guest, *, touch: Callable[[], None]) -> Session: ...

    def forward(
        self, guest: Guest, *, host: str, port: int, touch: Callable[[], None]
    ) -> Awaitable[Forward]: ...

    async def listen(self, guest: Guest, port: int) -> socket.socket | None: ...


class Door(asyncssh.SSHServer):
    """`is_welcome` is false where there are too many already."""

    def __init__(self, house: House, *, is_welcome: bool) -> None:
        self._house = house
        self._is_welcome = is_welcome
        self._conn: asyncssh.SSHServerConnection | None = None
        self._tried = 0
        self._listeners = 0
        self._sessions: list[Session] = []
        self._admitted: Guest | None = None
        # Known when the client has shown that it has the key.
        self.guest: Guest | None = None
        self.address = ""
        self.touched_at = monotonic()

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._conn = conn
        self.address = str(conn.get_extra_info("peername", ("",))[0])
        if not self._is_welcome:
            conn.abort()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - as the library names it.
        self._conn = None
        self._house.forget(self)

    def begin_auth(self, username: str) -> bool:  # noqa: ARG002 - everybody needs a key.
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    async def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        """Tell whether a key opens the job; the same refusal for whatever is missing."""
        self._admitted = None
        if not self._may_try():
            return False
        self._admitted = await self._house.admit(
            username,
            fingerprint=key.get_fingerprint(),
            data=base64.b64encode(key.public_data).decode(),
        )
        if self._admitted is not None:
            self._house.limiter.forgive(self._house.policy, self.address)
        return self._admitted is not None

    def _may_try(self) -> bool:
        self._tried += 1
        verdict = self._house.limiter.count(self._house.policy, self.address)
        if self._conn is not None and self._tried > _MOST_KEYS:
            self._conn.disconnect(DISC_NO_MORE_AUTH_METHODS_AVAILABLE, "Too many keys were tried.")
            return False
        return verdict.allowed

    async def auth_completed(self) -> None:
        guest = self._admitted
        if guest is None:
            self.close(_GONE)
            return
        self.guest = guest
        await self._house.welcome(self, guest)

    def session_requested(self) -> Session | bool:
        self._sessions = [session for session in self._sessions if not session.is_over]
        if self.guest is None or len(self._sessions) >= _MOST_SESSIONS:
            return False
        session = self._house.session(self.guest, touch=self.touch)
        self._sessions.append(session)
        return session

    def connection_requested(
        self,
        dest_host: str,
        dest_port: int,
        orig_host: str,  # noqa: ARG002 - as the library names it.
        orig_port: int,  # noqa: ARG002 - as above.
    ) -> Awaitable[Forward] | bool:
        if self.guest is None:
            return False
        return self._house.forward(self.guest, host=dest_host, port=dest_port, touch=self.touch)

    async def server_requested(self, listen_host: str, listen_port: int) -> Listener | bool:
        self._listeners += 1
        if self.guest is None or self._conn is None or self._listeners > _MOST_LISTENERS:
            return False
        made = await self._house.listen(self.guest, listen_port)
        if made is None:
            return False
        return Listener(self._conn, made, host=listen_host, touch=self.touch)

    def touch(self) -> None:
        self.touched_at = monotonic()

    def close(self, reason: str = _GONE) -> None:
        """End the connection and everything of it, with a word to the client."""
        if self._conn is not None:
            self._conn.disconnect(DISC_BY_APPLICATION, reason)
