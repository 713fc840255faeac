"""One trace from a request over its event to the delivery and the job that it causes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta

import httpx2
import pytest
from fastapi import FastAPI
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from hublet.app import with_edge
from hublet.core import queue
from hublet.core.config.settings import TracingSettings
from hublet.core.database import Database
from hublet.core.queue import NewTask
from hublet.core.tracing import current_traceparent, span, trace_requests, tracing
from people import Headers
from runtime.supervisor.scripted_runner import ScriptedRunner
from runtime.supervisor.supervised_jobs import a_job, a_supervisor, set_jobs
from scratch_database import wait_until
from webhooks.engine_rows import a_webhook, delivering, settle, trigger
from webhooks.receivers import receiving
from workers import drain


@asynccontextmanager
async def traced(database: Database) -> AsyncIterator[InMemorySpanExporter]:
    """Keep the spans of the block; all of them are there when it ends."""
    exporter = InMemorySpanExporter()
    settings = replace(
        database.hub.settings, tracing=TracingSettings(url="http://localhost:4318/v1/traces")
    )
    async with tracing(settings, exporter):
        yield exporter


def span_of(exporter: InMemorySpanExporter, beginning: str) -> ReadableSpan:
    spans = exporter.get_finished_spans()
    found = [each for each in spans if each.name.startswith(beginning)]
    assert found, sorted({each.name for each in spans})
    return found[0]


def parent_of(each: ReadableSpan) -> tuple[int, int]:
    assert each.parent is not None
    return each.parent.trace_id, each.parent.span_id


def key_of(each: ReadableSpan) -> tuple[int, int]:
    return each.context.trace_id, each.context.span_id


async def test_what_reacts_to_an_event_belongs_to_the_trace_of_the_request(
    app: FastAPI, database: Database, ada: Headers
) -> None:
    async with traced(database) as exporter:
        transport = httpx2.ASGITransport(app=trace_requests(with_edge(app)))
        async with httpx2.AsyncClient(transport=transport, base_url="http://hub.test") as client:
            body = {"name": "engine"}
            await client.post("/api/repos/create", headers=ada, json=body)
            gone = await client.request("DELETE", "/api/repos/delete", headers=ada, json=body)
        assert gone.status_code == 200
        await drain(database)

    request = span_of(exporter, "DELETE /api/repos/delete")
    assert parent_of(span_of(exporter, "task reaction:repo.deleted")) == key_of(request)


async def test_an_attempt_of_a_delivery_belongs_to_the_trace_of_its_event(
    database: Database,
) -> None:
    async with traced(database) as exporter, receiving() as receiver:
        webhook_id = await a_webhook(database, receiver.url)
        with span("cause"):
            await trigger(database, webhook_id)
        # Another process would find nothing but the row.
        async with delivering(database) as deliverer:
            await settle(deliverer)

    delivery = span_of(exporter, "delivery")
    assert parent_of(delivery) == key_of(span_of(exporter, "cause"))
    assert parent_of(span_of(exporter, "call POST")) == key_of(delivery)


async def test_an_attempt_of_a_job_belongs_to_the_trace_of_who_asked_for_it(
    database: Database,
) -> None:
    set_jobs(database, cores=1000, memory_bytes=2**50)
    runner = ScriptedRunner()
    async with traced(database) as exporter:
        with span("cause"):
            job_id = await a_job(database)
        supervisor = a_supervisor(database, runner)
        supervisor.start()

        async def is_launched() -> bool:
            return (job_id, 1) in runner.attempts

        await wait_until(is_launched)
        await supervisor.finish()
        await supervisor.abandon()

    assert parent_of(span_of(exporter, "job attempt")) == key_of(span_of(exporter, "cause"))


@pytest.mark.parametrize(
    ("delay", "is_joined"),
    [
        pytest.param(timedelta(), True, id="one that is due belongs to it"),
        pytest.param(timedelta(hours=1), False, id="a delayed one begins another trace"),
    ],
)
async def test_a_task_and_the_trace_in_which_it_is_added(
    database: Database, delay: timedelta, *, is_joined: bool
) -> None:
    async with traced(database):
        with span("cause"):
            cause = current_traceparent()
            async with database.transaction() as conn:
                task = NewTask(kind="knit", body="{}", key="one", delay=delay)
                await queue.add(conn, task)
    async with database.read() as conn:
        stored = await conn.fetch_value("SELECT trace FROM tasks WHERE id = 'one'")

    assert cause is not None
    assert stored == (cause if is_joined else None)


async def test_rows_name_no_trace_while_traces_are_off(database: Database, ada: Headers) -> None:
    webhook_id = await a_webhook(database, "http://localhost/hook")
    await trigger(database, webhook_id)
    await a_job(database)

    async with database.read() as conn:
        for table in ("outbox", "tasks", "webhook_events", "jobs"):
            assert not await conn.fetch_value(f"SELECT count(trace) FROM {table}"), table
    assert current_traceparent() is None
