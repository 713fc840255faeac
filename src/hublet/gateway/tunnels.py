"""Tunnels between the machines of a hub: connections to a job that runs on another one.

A machine sends an order to that of the job: one request, which asks for an upgrade and has the order
sealed with the hub's key ring in its body. So nobody else can make or read one. It is for one machine,
for a minute and for one use, and carries the credentials of the client, whose rights both machines
check. After the upgrade the connection leads to a port of the job, to a process in it,
to what it uses, or brings what comes to a port in it.
"""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import msgspec

from hublet.core.database import Database
from hublet.core.dataclasses import dataclass
from hublet.core.errors import HubError
from hublet.core.http.error_responses import hub_error_response
from hublet.core.http.server_protocol import find_connection
from hublet.core.ids import random_bytes
from hublet.core.leases import lease_clock
from hublet.core.machine import identify
from hublet.core.sealing import SealBroken
from hublet.gateway import store
from hublet.gateway.errors import (
    CannotJoinNetwork,
    JobElsewhere,
    MachineAway,
    NetworkUnreachable,
    NothingListens,
    PortNotListening,
    ResponseLost,
    TunnelDenied,
    TunnelRefused,
)
from hublet.gateway.ports.authorization import Credentials
from hublet.gateway.ports.exchange import Splice
from hublet.gateway.ports.reverse_proxy import ReverseProxy
from hublet.gateway.ports.upstream import Upstream
from hublet.gateway.records import Guest, JobPort, TunnelOrder
from hublet.gateway.ssh import service
from hublet.gateway.ssh.job_attachment import AttachPointFinder, JobAttacher, SessionRequest
from hublet.gateway.ssh.remote_listeners import serve_listener
from hublet.gateway.ssh.remote_sessions import serve_session
from hublet.gateway.usage_meter import AttemptMeter, send_usage
from hublet.jobs.errors import SecretsGone
from hublet.runtime.attach.attachments import socket_pair
from hublet.runtime.errors import CannotAttach
from hublet.runtime.supervisor import machines_store

TUNNEL_PATH = "/.hublet/tunnel"
_PROTOCOL = "hublet-tunnel"
_CONTEXT = "tunnel"
_LIFE_SECONDS = 60.0
_CONNECT_SECONDS = 5.0
# Of a job that starts a shell slowly, and of the other machine's own limits.
_RESPONSE_SECONDS = 30.0
_MAX_ORDER_BYTES = 1 << 20
_MAX_REASON_BYTES = 1 << 16
_GONE = "The job, the key or the right to the job is gone."
_SWITCH = f"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: {_PROTOCOL}\r\n\r\n"

Application = Callable[[Any, Any, Any], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _SealedOrder:
    """An order, and for whom and until when it is, on the clock of leases."""

    machine_id: str
    until: int
    nonce: str
    order: TunnelOrder


class Tunnels:
    """Opens tunnels to the other machines of the hub; see `RemoteJobs`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._machine_id = identify(database.hub.settings).id

    def is_elsewhere(self, machine_id: str | None) -> bool:
        return machine_id is not None and machine_id != self._machine_id

    async def open(self, machine_id: str, order: TunnelOrder) -> socket.socket:
        """Return a socket that leads to what was ordered. Raises MachineAway and TunnelRefused."""
        async with self._database.read() as conn:
            machine = await machines_store.find(conn, machine_id)
        if machine is None or machine.is_lost or not machine.address:
            raise MachineAway(order.job_id, machine.name if machine else machine_id)
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                upstream = await _connect(machine.address)
        except (OSError, TimeoutError):
            raise MachineAway(order.job_id, machine.name) from None
        try:
            async with asyncio.timeout(_RESPONSE_SECONDS):
                return await self._ask(upstream, machine, order)
        except (ResponseLost, OSError, TimeoutError):
            upstream.abort()
            raise MachineAway(order.job_id, machine.name) from None
        except BaseException:
            upstream.abort()
            raise

    async def _ask(
        self, upstream: Upstream, machine: machines_store.MachineRecord, order: TunnelOrder
    ) -> socket.socket:
        body = self._seal(machine.id, order)
        head = (
            f"POST {TUNNEL_PATH} HTTP/1.1\r\nhost: {urlsplit(machine.address).netloc}\r\n"
            f"connection: upgrade\r\nupgrade: {_PROTOCOL}\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        upstream.send_head(head.encode() + body, is_head=False, may_switch=True)
        await upstream.head()
        if upstream.switched is None:
            raise TunnelRefused(await _read_reason(upstream))
        ours, theirs = socket_pair()
        inner = await _transport_of(theirs)
        _, early = upstream.switched
        inner.write(early)
        Splice().join(inner, upstream.transport)
        return ours

    def _seal(self, machine_id: str, order: TunnelOrder) -> bytes:
        sealed = _SealedOrder(
            machine_id=machine_id,
            until=lease_clock() + round(_LIFE_SECONDS * 1_000_000),
            nonce=random_bytes(16).hex(),
            order=order,
        )
        return self._database.hub.keys.seal(msgspec.json.encode(sealed), context=_CONTEXT)


async def _connect(address: str) -> Upstream:
    parts = urlsplit(address)
    tls = ssl.create_default_context() if parts.scheme == "https" else None
    port = parts.port or (443 if tls else 80)
    loop = asyncio.get_running_loop()
    _, upstream = await loop.create_connection(Upstream, parts.hostname or "", port, ssl=tls)
    return upstream


async def _read_reason(upstream: Upstream) -> str:
    """Return the sentence of a refusal."""
    body, more = b"", True
    while more and len(body) < _MAX_REASON_BYTES:
        piece, more = await upstream.piece()
        body += piece
    upstream.abort()
    try:
        return str(msgspec.json.decode(body)["error"])
    except (msgspec.DecodeError, KeyError, TypeError):
        return "The machine of the job gave no answer that could be read."


class _Paused(asyncio.Protocol):
    """Reads nothing, so that no byte is lost before the splice."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - that of a socket is one.
        transport.pause_reading()


async def _transport_of(made: socket.socket) -> asyncio.Transport:
    transport, _ = await asyncio.get_running_loop().create_connection(_Paused, sock=made)
    return transport


class TunnelMiddleware:
    """ASGI middleware: serves the orders of other machines; all other requests go on."""

    def __init__(
        self,
        app: Application,
        database: Database,
        *,
        ports: ReverseProxy,
        find_attach_point: AttachPointFinder,
        meter: AttemptMeter,
    ) -> None:
        self._app = app
        # Orders have bodies, and none of them is answered so.
        self.answer_now = getattr(app, "answer_now", None)
        self._database = database
        self._ports = ports
        # Without tunnels of its own: an order ends here.
        self._attacher = JobAttacher(database=database, find_attach_point=find_attach_point)
        self._machine_id = identify(database.hub.settings).id
        self._meter = meter

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["path"] != TUNNEL_PATH:
            await self._app(scope, receive, send)
            return
        try:
            await self._serve(await self._open(await _read_body(receive)), scope)
        except HubError as error:
            await hub_error_response(error)(scope, receive, send)

    async def _open(self, body: bytes) -> TunnelOrder:
        """Return the order in a request. Raises TunnelDenied."""
        try:
            plain = self._database.hub.keys.open(body, context=_CONTEXT)
        except SealBroken:
            raise TunnelDenied from None
        sealed = msgspec.json.decode(plain, type=_SealedOrder)
        now = lease_clock()
        if sealed.machine_id != self._machine_id or sealed.until < now:
            raise TunnelDenied
        # In the database: this machine may have several processes, and each could be asked.
        async with self._database.transaction() as conn:
            if not await store.use_order(conn, sealed.nonce, now=now, until=sealed.until):
                raise TunnelDenied
        return sealed.order

    async def _serve(self, order: TunnelOrder, scope: Any) -> None:
        if order.kind == "port":
            await self._join(scope, await self._dial_port(order), order)
            return
        if order.kind == "usage":
            await self._serve_usage(scope, order)
            return
        guest = await self._admit(order)
        try:
            if order.kind == "forward":
                made = await self._attacher.dial(guest, host=order.host, port=order.port)
                await self._join(scope, made, order)
            elif order.kind == "listen":
                listener = await self._attacher.listen(guest, order.port)
                await self._join_to(scope, order, lambda made: serve_listener(made, listener))
            else:
                await self._run_session(scope, guest, order)
        except NothingListens:
            raise PortNotListening(order.job_id, order.port) from None
        except CannotJoinNetwork as error:
            raise NetworkUnreachable(order.job_id, str(error)) from None
        except (CannotAttach, SecretsGone) as error:
            raise TunnelRefused(str(error)) from None

    async def _dial_port(self, order: TunnelOrder) -> socket.socket:
        credentials = Credentials(bearer=order.bearer, cookie=order.cookie, address=order.address)
        target = JobPort(order.job_id, order.port)
        reachable = (await self._ports.authorizer.admit(target, credentials)).reachable
        if reachable.job.attempt != order.attempt:
            raise JobElsewhere(order.job_id)
        return await self._ports.routes.dial(reachable, order.port)

    async def _admit(self, order: TunnelOrder) -> Guest:
        async with self._database.read() as conn:
            guest = await service.admit(
                conn,
                order.job_id,
                fingerprint=order.fingerprint,
                data=order.key_data,
                address=order.address,
            )
        if guest is None or guest.running.job.attempt != order.attempt:
            raise TunnelRefused(_GONE)
        return guest

    async def _run_session(self, scope: Any, guest: Guest, order: TunnelOrder) -> None:
        request = msgspec.json.decode(order.session, type=SessionRequest)
        attachment = await self._attacher.begin(guest, request)
        await self._join_to(scope, order, lambda made: serve_session(made, attachment))

    async def _serve_usage(self, scope: Any, order: TunnelOrder) -> None:
        async with self._database.read() as conn:
            running = await store.find_running(conn, order.job_id)
        if running is None or running.job.attempt != order.attempt:
            raise JobElsewhere(order.job_id)
        measure = partial(self._meter, running.runner, running.handle)
        await self._join_to(scope, order, lambda made: send_usage(made, measure))

    async def _join_to(
        self,
        scope: Any,
        order: TunnelOrder,
        serve: Callable[[socket.socket], Coroutine[None, None, None]],
    ) -> None:
        """Hand the connection of a request over to what serves a socket here."""
        ours, theirs = socket_pair()
        serving = asyncio.create_task(serve(ours), name=f"remote-{order.kind}")
        try:
            await self._join(scope, theirs, order)
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    async def _join(self, scope: Any, made: socket.socket, order: TunnelOrder) -> None:
        """Hand the connection of a request over to a socket, until both have ended."""
        inner = await _transport_of(made)
        held = find_connection(scope)
        taken = None if held is None else held.take_over()
        if taken is None:
            inner.abort()
            raise MachineAway(order.job_id, "that asked")
        transport, early = taken
        transport.write(_SWITCH.encode())
        inner.write(early)
        splice = Splice()
        splice.join(transport, inner)
        try:
            await splice.done.wait()
        finally:
            splice.abort()


async def _read_body(receive: Any) -> bytes:
    body, more = bytearray(), True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect" or len(body) > _MAX_ORDER_BYTES:
            raise TunnelDenied
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return bytes(body)
