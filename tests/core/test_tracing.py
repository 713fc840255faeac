"""Traces: what is told to a collector, and that nothing is while they are off."""

import gzip
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx2
import pytest
from fastapi import FastAPI
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from hublet.app import with_edge
from hublet.core import queue
from hublet.core.config import Settings
from hublet.core.config.settings import TracingSettings
from hublet.core.database import Database
from hublet.core.outgoing.client import OutgoingClient
from hublet.core.outgoing.records import OutgoingRequest
from hublet.core.queue import NewTask
from hublet.core.tracing import span, trace_requests, tracing
from patience import SOON_SECONDS
from people import Headers
from processes import Place, serving, wait_until
from workers import drain

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
URL = "http://localhost:4318/v1/traces"


def with_traces(settings: Settings, **changes: object) -> Settings:
    return replace(settings, tracing=TracingSettings(url=URL, **changes))  # type: ignore[arg-type]


def by_name(exporter: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {each.name: each for each in exporter.get_finished_spans()}


async def test_a_request_and_its_transaction_are_one_trace_which_goes_on_with_the_callers(
    app: FastAPI, settings: Settings, ada: Headers
) -> None:
    exporter = InMemorySpanExporter()
    async with tracing(with_traces(settings), exporter):
        transport = httpx2.ASGITransport(app=trace_requests(with_edge(app)))
        async with httpx2.AsyncClient(transport=transport, base_url="http://hub.test") as client:
            made = await client.post(
                "/api/repos/create?secret=1",
                headers=ada | {"traceparent": PARENT},
                json={"name": "engine"},
            )
            await client.get("/healthz")
    assert made.status_code == 200

    found = by_name(exporter)
    request = found["POST /api/repos/create"]
    assert f"{request.context.trace_id:032x}" == PARENT.split("-")[1]
    assert request.attributes is not None
    assert request.attributes["http.response.status_code"] == 200
    assert request.attributes["hublet.request_id"] == made.headers["x-request-id"]
    parent = found["transaction"].parent
    assert parent is not None
    assert parent.span_id == request.context.span_id
    told = "".join(each.to_json() for each in exporter.get_finished_spans())
    assert "secret" not in told
    assert ada["Authorization"].removeprefix("Bearer ") not in told
    assert not [name for name in found if "healthz" in name]


async def test_a_task_is_a_trace_of_its_own(database: Database) -> None:
    exporter = InMemorySpanExporter()
    async with tracing(with_traces(database.hub.settings), exporter):
        async with database.transaction() as conn:
            await queue.add(conn, NewTask(kind="repos.remove-orphans", body="{}", key="one"))
        await drain(database)

    task = by_name(exporter)["task repos.remove-orphans"]
    assert task.attributes is not None
    assert (task.parent, task.attributes["task"]) == (None, "one")


class _Collector(BaseHTTPRequestHandler):
    """A receiver of OTLP, and of calls."""

    spans: list[str]
    headers_seen: list[str | None]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/v1/traces":
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            sent = ExportTraceServiceRequest.FromString(body)
            for resource in sent.resource_spans:
                for scope in resource.scope_spans:
                    self.spans.extend(each.name for each in scope.spans)
        else:
            self.headers_seen.append(self.headers.get("traceparent"))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[tuple[str, type[_Collector]]]:
    handler = type("Collector", (_Collector,), {"spans": [], "headers_seen": []})
    server = HTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", handler
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("propagate", [False, True])
async def test_strangers_hear_of_a_trace_only_if_told_so(
    settings: Settings, collector: tuple[str, type[_Collector]], *, propagate: bool
) -> None:
    address, handler = collector
    open_settings = replace(settings, server=replace(settings.server, test_mode=True))
    exporter = InMemorySpanExporter()
    async with (
        tracing(with_traces(open_settings, propagate=propagate), exporter),
        OutgoingClient(open_settings) as client,
    ):
        with span("outside"):
            await client.send(OutgoingRequest(method="POST", url=f"{address}/hook?key=secret"))

    call = by_name(exporter)["call POST"]
    assert call.attributes is not None
    assert call.attributes["server.address"] == "127.0.0.1"
    expected = f"00-{call.context.trace_id:032x}-{call.context.span_id:016x}-{call.context.trace_flags:02x}"
    assert handler.headers_seen == [expected if propagate else None]


@pytest.mark.full
def test_a_hub_sends_its_traces_to_a_collector(
    place: Place, collector: tuple[str, type[_Collector]]
) -> None:
    address, handler = collector
    with (
        serving(place, variables={"HUBLET_TRACING_URL": f"{address}/v1/traces"}) as server,
        server.client(server.token) as client,
    ):
        assert client.get("/api/whoami-v2").status_code == 200
    # What was left is sent at the stop.
    wait_until(lambda: "transaction" in handler.spans, seconds=SOON_SECONDS)
    assert any(name.startswith("GET ") for name in handler.spans)


def test_nothing_is_imported_while_traces_are_off() -> None:
    code = (
        "import sys, hublet.serving; "
        "print([name for name in sys.modules if name.startswith('opentelemetry.sdk')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"
