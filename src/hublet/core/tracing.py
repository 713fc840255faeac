"""Traces: spans of requests, transactions, tasks, attempts and calls, sent to a collector by OTLP.

They are off unless `tracing.url` is set: nothing is imported then, and a span costs one comparison.
What a span says is what the log says: names, ids and counts, never content, addresses with their
query, or secrets. Like the log, this belongs to the process, not to one hub.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from typing import Any
from urllib.parse import urlsplit

from hublet.core.config import Settings

# The server's own loop of requests by machines.
_UNTRACED_PATHS = frozenset({"/healthz", "/readyz", "/metrics"})
_SERVER_ERROR = 500
_NO_SPAN: AbstractContextManager[Any] = nullcontext()


class TracingUnavailable(Exception):
    """Traces are wanted, and what sends them is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "tracing.url is set, and traces need the extra otel: pip install 'hublet[otel]', or "
            "unset HUBLET_TRACING_URL."
        )


class _Tracer:
    """What makes spans while traces are on."""

    def __init__(self, tracer: Any, *, propagates: bool) -> None:
        from opentelemetry import trace  # noqa: PLC0415 - an extra
        from opentelemetry.trace.propagation.tracecontext import (  # noqa: PLC0415 - an extra
            TraceContextTextMapPropagator,
        )

        self.tracer = tracer
        self.kinds = trace.SpanKind
        self.failed = trace.Status(trace.StatusCode.ERROR)
        self.propagator = TraceContextTextMapPropagator()
        self.propagates = propagates


_current: _Tracer | None = None


@asynccontextmanager
async def tracing(settings: Settings, exporter: Any = None) -> AsyncIterator[None]:
    """Send traces until the end of the block, if the settings name a collector."""
    if settings.tracing.url is None:
        yield
        return
    global _current  # noqa: PLW0603 - see above
    provider = await asyncio.to_thread(_open_provider, settings, exporter)
    _current = _Tracer(provider.get_tracer("hublet"), propagates=settings.tracing.propagate)
    try:
        yield
    finally:
        _current = None
        # It sends what is left, which blocks.
        await asyncio.to_thread(provider.shutdown)


def _open_provider(settings: Settings, exporter: Any) -> Any:
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415 - an extra
            OTLPSpanExporter,
        )
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415 - an extra
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415 - an extra
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415 - an extra
        from opentelemetry.sdk.trace.sampling import TraceIdRatioBased  # noqa: PLC0415 - an extra
    except ImportError:
        raise TracingUnavailable from None
    provider = TracerProvider(
        # By the trace's id alone: a caller who sends a traceparent cannot ask for more.
        sampler=TraceIdRatioBased(settings.tracing.ratio),
        resource=Resource.create({"service.name": "hublet"}),
    )
    sender = exporter or OTLPSpanExporter(endpoint=settings.tracing.url)
    provider.add_span_processor(BatchSpanProcessor(sender))
    return provider


def span(
    name: str, *, parent: str | None = None, **attributes: str | int
) -> AbstractContextManager[Any]:
    """Trace the block; spans inside it are its children.

    `parent` is what `current_traceparent` said where the block was caused, perhaps in another
    process: the block belongs to that trace then.
    """
    if _current is None:
        return _NO_SPAN
    context = None if parent is None else _current.propagator.extract({"traceparent": parent})
    return _current.tracer.start_as_current_span(  # type: ignore[no-any-return]
        name, context=context, attributes=attributes
    )


def is_on() -> bool:
    return _current is not None


def current_traceparent() -> str | None:
    """Return what a row says of the span that causes it; None while traces are off, or outside."""
    if _current is None:
        return None
    carrier: dict[str, str] = {}
    _current.propagator.inject(carrier)
    return carrier.get("traceparent")


def leaf_span(name: str, **attributes: str | int) -> AbstractContextManager[Any]:
    """Trace a block that may end in another context than it began in, as those of generators do."""
    return _NO_SPAN if _current is None else _leaf(_current, name, attributes)


@contextmanager
def _leaf(current: _Tracer, name: str, attributes: dict[str, str | int]) -> Iterator[Any]:
    opened = current.tracer.start_span(name, attributes=attributes)
    try:
        yield opened
    except BaseException as error:
        opened.record_exception(error)
        opened.set_status(current.failed)
        raise
    finally:
        opened.end()


def call_span(method: str, url: str) -> AbstractContextManager[Any]:
    """Trace a call to others; of its address only the host is told."""
    if _current is None:
        return _NO_SPAN
    attributes = {"http.request.method": method, "server.address": urlsplit(url).hostname or ""}
    return _current.tracer.start_as_current_span(  # type: ignore[no-any-return]
        f"call {method}", kind=_current.kinds.CLIENT, attributes=attributes
    )


def propagation_headers() -> dict[str, str]:
    """Return the headers that let the receiver of a call go on with the trace, if that is wanted."""
    headers: dict[str, str] = {}
    if _current is not None and _current.propagates:
        _current.propagator.inject(headers)
    return headers


def trace_requests(app: Any) -> Any:
    """Return the application with a span around each request; the same one while traces are off."""
    return app if _current is None else _TracedApplication(app, _current)


class _TracedApplication:
    def __init__(self, app: Any, current: _Tracer) -> None:
        self._app = app
        self._current = current

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["path"] in _UNTRACED_PATHS:
            await self._app(scope, receive, send)
            return
        headers = {
            key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]
        }
        with self._current.tracer.start_as_current_span(
            scope["method"],
            context=self._current.propagator.extract(headers),
            kind=self._current.kinds.SERVER,
            attributes={"http.request.method": scope["method"]},
        ) as opened:
            await self._app(scope, receive, self._noting_status(opened, send))
            route = getattr(scope.get("route"), "path", None) or "fast route"
            opened.update_name(f"{scope['method']} {route}")
            opened.set_attribute("http.route", route)
            if (exchange := scope.get("exchange")) is not None:
                opened.set_attribute("hublet.request_id", exchange.request_id)

    def _noting_status(self, opened: Any, send: Any) -> Any:
        async def answer(message: Any) -> None:
            if "status" in message:
                opened.set_attribute("http.response.status_code", message["status"])
                if message["status"] >= _SERVER_ERROR:
                    opened.set_status(self._current.failed)
            await send(message)

        return answer
