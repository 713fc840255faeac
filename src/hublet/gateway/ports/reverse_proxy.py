"""Reverse proxy for the ports of jobs, and the middleware that routes their hosts to it."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from hublet.core.clock import monotonic
from hublet.core.database import Database
from hublet.core.errors import HubError
from hublet.core.http.error_responses import hub_error_response
from hublet.core.http.exchange import Exchange, client_address, request_id_of
from hublet.core.http.server_protocol import find_connection
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
from hublet.gateway.ports.hosts import PortHosts
from hublet.gateway.ports.open_connections import OpenConnection, OpenConnections
from hublet.gateway.ports.sessions import (
    ENTER_PATH,
    RESERVED_PREFIX,
    BrowserSessions,
    is_navigation,
)
from hublet.gateway.ports.upstream import Upstream
from hublet.gateway.records import JobPort, RemoteJobs
from hublet.runtime.supervisor.runner_selection import RunnerAvailability
from hublet.tokens.cache import CallerCache

log = get_logger("jobs")

_ROUTE = "a port of a job"
_SEE_OTHER = 303

Scope = Any
Application = Callable[[Any, Receive, Send], Awaitable[None]]


class PortsMiddleware:
    """ASGI middleware: requests for hosts of jobs go to the proxy, all others to the hub."""

    def __init__(self, hub: Application, ports: "ReverseProxy") -> None:
        self._hub = hub
        self._ports = ports

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._is_for_job(scope):
            await self._ports(scope, receive, send)
        else:
            await self._hub(scope, receive, send)

    def answer_now(self, scope: Any) -> bytes | None:
        """Let the hub answer without waiting, if it can and the request is for it."""
        answer_now = getattr(self._hub, "answer_now", None)
        return None if answer_now is None or self._is_for_job(scope) else answer_now(scope)

    def _is_for_job(self, scope: Any) -> bool:
        contains = self._ports.hosts.contains
        for name, value in scope["headers"]:  # noqa: SIM110 - `any` would cost twice as much.
            if name == b"host" and contains(value):
                return True
        return False


class ReverseProxy:
    """Answers requests for every host under the domain of jobs. One for each process of the hub."""

    def __init__(
        self,
        database: Database,
        *,
        callers: CallerCache,
        availability: RunnerAvailability,
        remote: RemoteJobs,
        metrics: Metrics,
    ) -> None:
        settings = database.hub.settings
        self.hosts = PortHosts(settings)
        self.access_log: AccessLog | None = None
        self._database = database
        self._metrics = metrics
        # The tunnels of other machines end at the same ports.
        self.authorizer = self._authorizer = PortAuthorizer(database, callers)
        self._open_connections = OpenConnections(self._authorizer)
        self.routes = self._routes = RouteCache(availability, remote)
        self._pool = ConnectionPool()
        self._sessions = BrowserSessions(settings)
        self._trusted = settings.server.trusted_proxies
        self._scheme = settings.base_url.partition(":")[0].encode()

    async def stop(self) -> None:
        await self._open_connections.stop()
        self._pool.close()
        self._routes.close()
        self._authorizer.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = monotonic()
        exchange = scope["exchange"] = self._exchange_of(scope)
        try:
            await self._answer(scope, receive, send, exchange)
        finally:
            self._record(scope, exchange, round((monotonic() - start) * 1_000_000))

    def _record(self, scope: Scope, exchange: Exchange, micros: int) -> None:
        method, status = scope["method"], exchange.status
        self._metrics.request(method=method, route=_ROUTE, status=status, micros=micros)
        if self.access_log is not None:
            host = next((value for name, value in scope["headers"] if name == b"host"), b"")
            self.access_log.write(
                method=method,
                path=f"//{host.decode('latin-1')}{scope['path']}",
                status=status,
                micros=micros,
                bytes_out=exchange.bytes_out,
                request_id=exchange.request_id,
                address=exchange.address,
                user=exchange.user,
            )

    def _exchange_of(self, scope: Scope) -> Exchange:
        peer = scope["client"][0] if scope.get("client") else "unknown"
        forwarded = [v.decode("latin-1") for k, v in scope["headers"] if k == b"x-forwarded-for"]
        address = client_address(peer, ",".join(forwarded) or None, trusted=self._trusted)
        return Exchange(
            request_id=request_id_of(dict(scope["headers"])),
            address=address,
            authorization=None,
            known_caller=None,
            user=None,
        )

    async def _answer(self, scope: Scope, receive: Receive, send: Send, exchange: Exchange) -> None:
        try:
            await self._serve(scope, receive, send, exchange)
        except ExchangeAborted:
            if (client := find_connection(scope)) is None:
                raise
            client.break_off()
        except HubError as error:
            await _send_error(error, exchange, scope, receive, send)
        except Exception:
            log.exception("a port of a job failed", request_id=exchange.request_id)
            if exchange.started:
                raise
            await _send_error(ProxyFailed(exchange.request_id), exchange, scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send, exchange: Exchange) -> None:
        request = _request_of(scope)
        host = request.first_of(b"host") or b""
        target = self.hosts.target_of(host)
        if target is None:
            raise NoSuchHost
        length = body_length(request)
        if request.target.startswith(RESERVED_PREFIX):
            raise await self._exchange_code(request, target)
        credentials = self._sessions.credentials_of(request, address=exchange.address)
        admission = await self._authorize(request, target, credentials)
        exchange.user = admission.user_name
        changes = HeaderChanges(
            without_authorization=admission.is_token_ours,
            cookies=self._sessions.cookies,
            forwarded_for=exchange.address.encode("latin-1"),
            scheme=self._scheme,
            host=host,
        )
        proxied = ProxyExchange(
            request=request,
            head=request_head(request, changes, length=length),
            length=length,
            receive=receive,
            send=send,
            client=find_connection(scope),
            exchange=exchange,
        )
        connection = OpenConnection(
            target=target,
            credentials=credentials,
            attempt=admission.reachable.job.attempt,
        )
        exchange.on_stop = connection.close_soon
        if proxied.client is not None:
            proxied.client.allow_slow_body()
        with self._open_connections.tracked(connection):
            await self._proxy(proxied, admission, connection)

    async def _authorize(
        self, request: ProxyRequest, target: JobPort, credentials: Credentials
    ) -> Admission:
        try:
            return await self._authorizer.admit(target, credentials)
        except PortTokenNeeded:
            if credentials.bearer is not None or not is_navigation(request):
                raise
            raise _Redirect(self._sessions.redirect_to_login(request, target)) from None

    async def _exchange_code(self, request: ProxyRequest, target: JobPort) -> "_Redirect":
        if request.method != b"GET" or request.target.partition(b"?")[0] != ENTER_PATH:
            raise NoSuchHost
        code, state, path = self._sessions.login_result(request)
        async with self._database.transaction() as conn:
            value = await service.exchange_code(conn, target, code=code, state=state)
        return _Redirect(self._sessions.set_cookie(value, path))

    async def _proxy(
        self, proxied: ProxyExchange, admission: Admission, connection: OpenConnection
    ) -> None:
        """Send the request over an idle connection, else over a new one."""
        reachable = admission.reachable
        key = (*reachable.attempt_key, connection.target.port)
        upstream = self._pool.acquire(key) if proxied.is_repeatable else None
        try:
            if upstream is not None:
                # No response: it was closed while idle, so the job has not seen the request.
                with suppress(NoResponse):
                    await self._send_over(upstream, key, proxied, connection)
                    return
            fresh = await self._routes.connect(
                reachable, connection.target.port, connection.credentials
            )
            await self._send_over(fresh, key, proxied, connection)
        except (ResponseLost, TimeoutError):
            raise BadResponse(reachable.job.id) from None

    async def _send_over(
        self,
        upstream: Upstream,
        key: tuple[str, int, int],
        proxied: ProxyExchange,
        connection: OpenConnection,
    ) -> None:
        try:
            await run_exchange(proxied, upstream, connection)
        finally:
            self._pool.release(key, upstream)


class _Redirect(HubError):
    """Redirect of a browser, raised like an error."""

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
    error: HubError, exchange: Exchange, scope: Scope, receive: Receive, send: Send
) -> None:
    """Send an error of the hub."""
    exchange.status = error.status
    error.headers |= {
        "x-request-id": exchange.request_id,
        "x-content-type-options": "nosniff",
        "cache-control": "no-store",
    }
    await hub_error_response(error)(scope, receive, send)
