"""The ports of jobs as hosts: in front of the hub, and apart from it."""

from contextlib import suppress
from typing import Any

from hublet.core.clock import monotonic
from hublet.core.database import Database
from hublet.core.errors import HubError
from hublet.core.http.addresses import client_address
from hublet.core.http.connections import find_held
from hublet.core.http.exchange import Exchange as Known
from hublet.core.http.rendering import hub_error_response
from hublet.core.ids import new_request_id
from hublet.core.logs import AccessLog, get_logger
from hublet.core.metrics import Metrics
from hublet.jobs.availability import Availability
from hublet.jobs.reaching import service
from hublet.jobs.reaching.errors import BadAnswer, EntryNeeded, NoSuchHost, Unexpected
from hublet.jobs.reaching.exchanges import BrokenOff, Exchange, Receive, Send, exchange
from hublet.jobs.reaching.gate import Admission, Gate, Shown
from hublet.jobs.reaching.hosts import Hosts
from hublet.jobs.reaching.open_ends import OpenEnd, OpenEnds
from hublet.jobs.reaching.records import Target
from hublet.jobs.reaching.visitors import ENTER, RESERVED, Visitors, is_navigation
from hublet.jobs.reaching.ways import Ways
from hublet.jobs.reaching.wire.heads import Asked, Changes, length_of, request_head
from hublet.jobs.reaching.wire.pool import Pool
from hublet.jobs.reaching.wire.upstream import AnswerLost, NothingHeard, Upstream
from hublet.tokens.cache import CallerCache

log = get_logger("jobs")

_ROUTE = "a port of a job"
_SEE_OTHER = 303

Scope = Any


class Ports:
    """Answers for every host under the domain of jobs. One for each process of the hub."""

    def __init__(
        self,
        database: Database,
        *,
        callers: CallerCache,
        availability: Availability,
        metrics: Metrics,
    ) -> None:
        settings = database.hub.settings
        self.hosts = Hosts(settings)
        self.access_log: AccessLog | None = None
        self._database = database
        self._metrics = metrics
        self._gate = Gate(database, callers)
        self._ends = OpenEnds(self._gate)
        self._ways = Ways(availability)
        self._pool = Pool()
        self._visitors = Visitors(settings)
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
        except BrokenOff:
            if (held := find_held(scope)) is None:
                raise
            held.break_off()
        except HubError as error:
            await _tell(error, known, scope, receive, send)
        except Exception:
            log.exception("a port of a job failed", request_id=known.request_id)
            if known.started:
                raise
            await _tell(Unexpected(known.request_id), known, scope, receive, send)

    async def _serve(self, scope: Scope, receive: Receive, send: Send, known: Known) -> None:
        asked = _asked(scope)
        host = asked.first_of(b"host") or b""
        target = self.hosts.target_of(host)
        if target is None:
            raise NoSuchHost
        length = length_of(asked)
        if asked.target.startswith(RESERVED):
            raise await self._enter(asked, target)
        shown = self._visitors.shown(asked)
        admission = await self._admitted(asked, target, shown)
        known.user = admission.user_name
        changes = Changes(
            without_authorization=admission.is_token_ours,
            cookies=self._visitors.cookies,
            forwarded_for=known.address.encode("latin-1"),
            scheme=self._scheme,
            host=host,
        )
        each = Exchange(
            asked=asked,
            head=request_head(asked, changes, length=length),
            length=length,
            receive=receive,
            send=send,
            held=find_held(scope),
            known=known,
        )
        end = OpenEnd(
            target=target,
            shown=shown,
            attempt=admission.found.job.attempt,
        )
        known.on_stop = end.close_soon
        with self._ends.holding(end):
            await self._pass(each, admission, end)

    async def _admitted(self, asked: Asked, target: Target, shown: Shown) -> Admission:
        try:
            return await self._gate.admit(target, shown)
        except EntryNeeded:
            if shown.bearer is not None or not is_navigation(asked):
                raise
            raise _Led(self._visitors.to_hub(asked, target)) from None

    async def _enter(self, asked: Asked, target: Target) -> "_Led":
        if asked.method != b"GET" or asked.target.partition(b"?")[0] != ENTER:
            raise NoSuchHost
        code, state, path = self._visitors.coming_back(asked)
        async with self._database.transaction() as conn:
            value = await service.exchange_code(conn, target, code=code, state=state)
        return _Led(self._visitors.let_in(value, path))

    async def _pass(self, each: Exchange, admission: Admission, end: OpenEnd) -> None:
        """Ask over a connection that is there already, else over a new one."""
        found = admission.found
        key = (*found.place, end.target.port)
        upstream = self._pool.take(key) if each.is_repeatable else None
        try:
            if upstream is not None:
                # Where nothing is heard it was closed while it waited, so nobody was asked yet.
                with suppress(NothingHeard):
                    await self._over(upstream, key, each, end)
                    return
            fresh = await self._ways.connect(found, end.target.port)
            await self._over(fresh, key, each, end)
        except (AnswerLost, TimeoutError):
            raise BadAnswer(found.job.id) from None

    async def _over(
        self, upstream: Upstream, key: tuple[str, int, int], each: Exchange, end: OpenEnd
    ) -> None:
        try:
            await exchange(each, upstream, end)
        finally:
            self._pool.give_back(key, upstream)


class _Led(HubError):
    """No failure: the browser goes on elsewhere."""

    status = _SEE_OTHER

    def __init__(self, headers: dict[str, str]) -> None:
        super().__init__("Go on there.", headers=headers)


def _asked(scope: Scope) -> Asked:
    query = scope["query_string"]
    path = scope.get("raw_path") or scope["path"].encode("latin-1", "replace")
    return Asked(
        method=scope["method"].encode(),
        target=path + b"?" + query if query else path,
        headers=list(scope["headers"]),
    )


async def _tell(error: HubError, known: Known, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer in the hub's own words."""
    known.status = error.status
    error.headers |= {
        "x-request-id": known.request_id,
        "x-content-type-options": "nosniff",
        "cache-control": "no-store",
    }
    await hub_error_response(error)(scope, receive, send)
