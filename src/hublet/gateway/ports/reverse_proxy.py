"""Reverse proxy for the ports of jobs, and the middleware that routes their hosts to it."""

import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from hublet.core.clock import monotonic
from hublet.core.config import Settings
from hublet.core.database import Database
from hublet.core.errors import HubError
from hublet.core.http.error_responses import hub_error_response
from hublet.core.http.exchange import Exchange as Known
from hublet.core.http.exchange import client_address
from hublet.core.http.server_protocol import find_connection
from hublet.core.ids import new_request_id
from hublet.core.logs import AccessLog, get_logger
from hublet.core.metrics import Metrics
from hublet.gateway.errors import (
    BadResponse,
    ExchangeAborted,
    NoResponse,
    NoSuchHost,
    PortTokenNeeded,
    ProxyFailed,
    ResponseLost,
)
from hublet.gateway.ports import service
from hublet.gateway.ports.authorization import Admission, Credentials, PortAuthorizer
from hublet.gateway.ports.connections import ConnectionPool, RouteCache
from hublet.gateway.ports.exchange import ProxyExchange, Receive, Send, run_exchange
from hublet.gateway.ports.headers import HeaderChanges, ProxyRequest, body_length, request_head
from hublet.gateway.ports.open_connections import OpenConnection, OpenConnections
from hublet.gateway.ports.sessions import (
    ENTER_PATH,
    RESERVED_PREFIX,
    BrowserSessions,
    is_navigation,
)
from hublet.gateway.ports.upstream import Upstream
from hublet.gateway.records import JobPort
from hublet.runtime.supervisor.runner_selection import RunnerAvailability
from hublet.tokens.cache import CallerCache

_PORT_SUFFIX = re.compile(r":[0-9]{0,5}$")
_LAST_PORT = 65535


class PortHosts:
    """The hosts under the domain of jobs; the hub's own host is never one of them."""

    def __init__(self, settings: Settings) -> None:
        domain = settings.jobs_domain.lower()
        self._domain = domain.encode()
        self._below = b"." + self._domain
        self._own = (urlsplit(settings.base_url).hostname or "").encode()
        self._pattern = re.compile(rf"([0-9a-z]{{24}})--([1-9][0-9]{{0,4}})\.{re.escape(domain)}")

    def are_under(self, host: bytes) -> bool:
        """Tell whether a Host header names the domain or anything below it."""
        if self._domain not in (host := host.lower()):
            return False
        name = host.partition(b":")[0].rstrip(b".")
        return name != self._own and (name == self._domain or name.endswith(self._below))

    def target_of(self, host: bytes) -> JobPort | None:
        """Return what a Host header names; exactly so, with any port or none behind it."""
        name = _PORT_SUFFIX.sub("", host.decode("latin-1").lower())
        found = self._pattern.fullmatch(name)
        if found is None or int(found[2]) > _LAST_PORT:
            return None
        return JobPort(found[1], int(found[2]))


log = get_logger("jobs")

_ROUTE = "a port of a job"
_SEE_OTHER = 303

Scope = Any


class ReverseProxy:
    """Answers for every host under the domain of jobs. One for each process of the hub."""

    def __init__(
        self,
        database: Database,
        *,
        callers: CallerCache,
        availability: RunnerAvailability,
        metrics: Metrics,
    ) -> None:
        settings = database.hub.settings
        self.hosts = PortHosts(settings)
        self.access_log: AccessLog | None = None
        self._database = database
        self._metrics = metrics
        self._gate = PortAuthorizer(database, callers)
        self._ends = OpenConnections(self._gate)
        self._ways = RouteCache(availability)
        self._pool = ConnectionPool()
        self._visitors = BrowserSessions(settings)
        self._trusted = settings.server.trusted_proxies
        self._scheme = settings.base_url.partition(":")[0].encode()

    async def stop(self) -> None:
        await self._ends.stop()
        self._pool.close()
        self._ways.close()
        self._gate.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = monotonic()
        known = scope["exchange"] = self._known(scope)
        try:
            await self._answer(scope, receive, send, known)
        finally:
            self._close(scope, known, round((monotonic() - start) * 1_000_000))

    def _close(self, scope: Scope, known: Known, micros: int) -> None:
        method, status = scope["method"], known.status
        self._metrics.request(method=method, route=_ROUTE, status=status, micros=micros)
        if self.access_log is not None:
            host = next((value for name, value in scope["headers"] if name == b"host"), b"")
            self.access_log.write(
                method=method,
                path=f"//{host.decode('latin-1')}{scope['path']}",
                status=status,
                micros=micros,
                bytes_out=known.bytes_out,
                request_id=known.request_id,
                address=known.address,
                user=known.user,
            )

    def _known(self, scope: Scope) -> Known:
        peer = scope["client"][0] if scope.get("client") else "unknown"
        said = [v.decode("latin-1") for k, v in scope["headers"] if k == b"x-forwarded-for"]
        address = client_address(peer, ",".join(said) or None, trusted=self._trusted)
        return Known(
            request_id=new_request_id(),
            address=address,
            authorization=None,
            known_caller=None,
            user=None,
        )

    async def _answer(self, scope: Scope, receive: Receive, send: Send, known: Known) -> None:
        try:
            await self._serve(scope, receive, send, known)
        except ExchangeAborted:
            if (held := find_connection(scope)) is None:
                raise
            held.break_off()
        except HubError as error:
            await _send_error(error, known, scope, receive, send)
        except Exception:
            log.exception("a port of a job failed", request_id=known.request_id)
            if known.started:
                raise
            await _send_error(ProxyFailed(known.request_id), known, scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send, known: Known) -> None:
        asked = _request_of(scope)
        host = asked.first_of(b"host") or b""
        target = self.hosts.target_of(host)
        if target is None:
            raise NoSuchHost
        length = body_length(asked)
        if asked.target.startswith(RESERVED_PREFIX):
            raise await self._enter(asked, target)
        shown = self._visitors.shown(asked)
        admission = await self._admitted(asked, target, shown)
        known.user = admission.user_name
        changes = HeaderChanges(
            without_authorization=admission.is_token_ours,
            cookies=self._visitors.cookies,
            forwarded_for=known.address.encode("latin-1"),
            scheme=self._scheme,
            host=host,
        )
        each = ProxyExchange(
            asked=asked,
            head=request_head(asked, changes, length=length),
            length=length,
            receive=receive,
            send=send,
            held=find_connection(scope),
            known=known,
        )
        end = OpenConnection(
            target=target,
            shown=shown,
            attempt=admission.found.job.attempt,
        )
        known.on_stop = end.close_soon
        with self._ends.holding(end):
            await self._pass(each, admission, end)

    async def _admitted(
        self, asked: ProxyRequest, target: JobPort, shown: Credentials
    ) -> Admission:
        try:
            return await self._gate.admit(target, shown)
        except PortTokenNeeded:
            if shown.bearer is not None or not is_navigation(asked):
                raise
            raise _Redirect(self._visitors.to_hub(asked, target)) from None

    async def _enter(self, asked: ProxyRequest, target: JobPort) -> "_Redirect":
        if asked.method != b"GET" or asked.target.partition(b"?")[0] != ENTER_PATH:
            raise NoSuchHost
        code, state, path = self._visitors.coming_back(asked)
        async with self._database.transaction() as conn:
            value = await service.exchange_code(conn, target, code=code, state=state)
        return _Redirect(self._visitors.let_in(value, path))

    async def _pass(self, each: ProxyExchange, admission: Admission, end: OpenConnection) -> None:
        """Ask over a connection that is there already, else over a new one."""
        found = admission.found
        key = (*found.place, end.target.port)
        upstream = self._pool.take(key) if each.is_repeatable else None
        try:
            if upstream is not None:
                # Where nothing is heard it was closed while it waited, so nobody was asked yet.
                with suppress(NoResponse):
                    await self._over(upstream, key, each, end)
                    return
            fresh = await self._ways.connect(found, end.target.port)
            await self._over(fresh, key, each, end)
        except (ResponseLost, TimeoutError):
            raise BadResponse(found.job.id) from None

    async def _over(
        self,
        upstream: Upstream,
        key: tuple[str, int, int],
        each: ProxyExchange,
        end: OpenConnection,
    ) -> None:
        try:
            await run_exchange(each, upstream, end)
        finally:
            self._pool.give_back(key, upstream)


class _Redirect(HubError):
    """No failure: the browser goes on elsewhere."""

    status = _SEE_OTHER

    def __init__(self, headers: dict[str, str]) -> None:
        super().__init__("Go on there.", headers=headers)


def _request_of(scope: Scope) -> ProxyRequest:
    query = scope["query_string"]
    path = scope.get("raw_path") or scope["path"].encode("latin-1", "replace")
    return ProxyRequest(
        method=scope["method"].encode(),
        target=path + b"?" + query if query else path,
        headers=list(scope["headers"]),
    )


async def _send_error(
    error: HubError, known: Known, scope: Scope, receive: Receive, send: Send
) -> None:
    """Answer in the hub's own words."""
    known.status = error.status
    error.headers |= {
        "x-request-id": known.request_id,
        "x-content-type-options": "nosniff",
        "cache-control": "no-store",
    }
    await hub_error_response(error)(scope, receive, send)


Application = Callable[[Any, Receive, Send], Awaitable[None]]


class PortsMiddleware:
    def __init__(self, hub: Application, ports: ReverseProxy) -> None:
        self._hub = hub
        self._ports = ports

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            for name, value in scope["headers"]:
                if name == b"host" and self._ports.hosts.are_under(value):
                    await self._ports(scope, receive, send)
                    return
        await self._hub(scope, receive, send)
