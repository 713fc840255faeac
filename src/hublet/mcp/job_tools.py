"""Tools for what runs by itself: jobs, and the deliveries of webhooks."""

import asyncio
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from hublet.core.clock import monotonic
from hublet.core.errors import InvalidRequest
from hublet.core.schema import Flag, Schema
from hublet.jobs import list_store
from hublet.jobs import service as jobs
from hublet.jobs.access import JobAccess, filter_for, get_access
from hublet.jobs.auth import recheck_access
from hublet.jobs.errors import JobNotFound, NamespaceNotFound
from hublet.jobs.logs.reader import find_tail
from hublet.jobs.logs.source import JobLog, open_log
from hublet.jobs.logs.watcher import find_log
from hublet.jobs.presenter import render, render_all
from hublet.jobs.records import JOBS as JOB_CHANGES
from hublet.jobs.records import Availability, JobRecord
from hublet.jobs.request_schemas import JobRequest
from hublet.jobs.schemas import Job
from hublet.mcp.records import JOBS, REPLAY_WEBHOOKS, WEBHOOKS
from hublet.mcp.tools import MAX_TEXT, Tool, ToolCall, invalid
from hublet.webhooks import service as webhooks
from hublet.webhooks.activity import service as activity
from hublet.webhooks.activity import store as activity_store
from hublet.webhooks.activity.records import DeliveryFilter, states_named
from hublet.webhooks.activity.schemas import Delivery, Sent
from hublet.webhooks.auth import access_to_organization, access_to_own
from hublet.webhooks.records import WebhookAccess
from hublet.webhooks.schemas import Webhook, render_webhook

_MOST_JOBS = 50
_MOST_SECONDS = 300
# Progress is told at least so often, so that nobody takes a long wait for the end.
_TOLD_SECONDS = 5.0
_STOP_LOOK_SECONDS = 1.0
_TAIL_BYTES = 4 * MAX_TEXT
_JOB = TypeAdapter[Any](JobRequest)

JobId = Annotated[str, Field(min_length=1, max_length=64)]
Namespace = Annotated[str, Field(max_length=200, description="An organization; else your own.")]
Text = Annotated[str, Field(max_length=65_536)]


class UseJobs(Schema):
    operation: Literal["run", "ps", "inspect", "logs", "wait", "cancel"]
    namespace: Namespace = ""
    job_id: Annotated[JobId | None, Field(description="For all but run and ps.")] = None
    image: Annotated[str, Field(max_length=512, description="For run, as in python:3.12.")] = ""
    command: Annotated[list[Text], Field(description="For run: the program and its words.")] = (
        Field(default=[])
    )
    flavor: Annotated[str, Field(max_length=64, description="For run: the hardware.")] = "cpu-basic"
    environment: Annotated[
        dict[str, Text],
        Field(description="For run. Never a secret: what you send here is stored and shown."),
    ] = Field(default={})
    timeout_seconds: Annotated[int | None, Field(gt=0, description="For run.")] = None
    lines: Annotated[
        int, Field(ge=1, le=1000, description="For logs and wait: of the log, the last.")
    ] = 100
    wait_seconds: Annotated[int, Field(ge=1, le=_MOST_SECONDS, description="For wait.")] = 60
    running_only: Annotated[Flag, Field(description="For ps.")] = False


class JobsResult(Schema):
    jobs: list[Job]
    is_over: Annotated[bool | None, Field(description="Of one job.")] = None
    log: Annotated[str | None, Field(description="The last lines that it printed.")] = None
    log_is_cut: bool = False


async def _use_jobs(call: ToolCall, request: UseJobs) -> JobsResult:
    access = await _job_access(call, request)
    if request.operation == "run":
        return await _run(call, access, request)
    if request.operation == "ps":
        return await _list_jobs(call, access, running_only=request.running_only)
    if request.job_id is None:
        raise InvalidRequest(f"job_id is needed for {request.operation}.")
    if request.operation == "cancel":
        async with call.database.transaction() as conn:
            await jobs.cancel(conn, access, request.job_id)
    if request.operation == "wait":
        await _wait(call, access, request.job_id, seconds=request.wait_seconds)
    with_log = request.operation in {"logs", "wait"}
    return await _show(call, access, request.job_id, lines=request.lines if with_log else 0)


async def _job_access(call: ToolCall, request: UseJobs) -> JobAccess:
    caller = call.get_caller()
    async with call.database.read() as conn:
        try:
            return await get_access(conn, caller, request.namespace or caller.user_name)
        except NamespaceNotFound:
            if request.job_id is None:
                raise
            raise JobNotFound(request.job_id) from None


async def _run(call: ToolCall, access: JobAccess, request: UseJobs) -> JobsResult:
    fields: dict[str, Any] = {
        "dockerImage": request.image,
        "flavor": request.flavor,
        "environment": request.environment,
        "timeoutSeconds": request.timeout_seconds,
    }
    if request.command:
        fields["command"] = request.command
    try:
        body = _JOB.validate_python(fields)
    except ValidationError as error:
        raise invalid(error) from None
    availability: Availability = call.request.app.state.jobs
    await jobs.prepare(call.database, availability, access, body)
    async with call.database.transaction() as conn:
        job = await render(conn, access, await jobs.start(conn, access, body))
    return JobsResult(jobs=[job], is_over=False)


async def _list_jobs(call: ToolCall, access: JobAccess, *, running_only: bool) -> JobsResult:
    wanted = filter_for(access)
    async with call.database.read() as conn:
        found = await list_store.list_of(conn, wanted, before="", limit=_MOST_JOBS)
        if running_only:
            found = [job for job in found if not job.stage.is_terminal]
        return JobsResult(jobs=await render_all(conn, access, found))


async def _show(call: ToolCall, access: JobAccess, job_id: str, *, lines: int) -> JobsResult:
    async with call.database.read() as conn:
        job = await jobs.get(conn, access, job_id)
        rendered = await render(conn, access, job)
        # After the stage: the log of a job that is over has its last line.
        log = await find_log(conn, job.id) if lines else None
    text, is_cut = ("", False) if log is None else await asyncio.to_thread(_tail, log, lines)
    return JobsResult(
        jobs=[rendered],
        is_over=job.stage.is_terminal,
        log=None if log is None else text,
        log_is_cut=is_cut,
    )


def _tail(log: JobLog, lines: int) -> tuple[str, bool]:
    """Return the last lines without their times, and whether the first of them are left out."""
    start = find_tail(log, lines)
    with open_log(log) as opened:
        if opened is None:
            return "", False
        # A line may have 64 KiB.
        first = max(start, opened.size - _TAIL_BYTES)
        data = opened.read(opened.size - first, first)
    texts = [line.partition(b" ")[2].decode(errors="replace") for line in data.split(b"\n")]
    text = "\n".join(texts if first == start else texts[1:]).rstrip("\n")
    return text[-MAX_TEXT:], first > start or len(text) > MAX_TEXT


async def _wait(call: ToolCall, access: JobAccess, job_id: str, *, seconds: int) -> JobRecord:
    """Wait until a job is over, or so many seconds; report each stage, and that it goes on."""
    start, told_at, told = monotonic(), 0.0, ""
    with call.database.subscribe(JOB_CHANGES) as changes:
        while True:
            async with call.database.read() as conn:
                job = await jobs.get(conn, access, job_id)
            elapsed = monotonic() - start
            if job.stage != told or elapsed >= told_at + _TOLD_SECONDS:
                # Who lost the token or the role meanwhile is told no more.
                await recheck_access(call.request, call.database, access, job_id)
                await call.report(round(elapsed, 1), float(seconds), f"{job_id}: {job.stage}")
                told_at, told = elapsed, job.stage
            if job.stage.is_terminal or elapsed >= seconds or call.stopping.is_set():
                return job
            await changes.wait(timeout=min(_STOP_LOOK_SECONDS, seconds - elapsed))


class ReadWebhooks(Schema):
    operation: Literal["list", "activity"] = "list"
    namespace: Namespace = ""
    webhook_id: Annotated[str | None, Field(max_length=64, description="For activity.")] = None
    state: Literal["pending", "delivered", "failed", "unsent"] | None = None
    limit: Annotated[int, Field(ge=1, le=100)] = 20


class WebhooksResult(Schema):
    webhooks: list[Webhook]
    deliveries: Annotated[list[Delivery], Field(description="Newest first.")]


async def _webhook_access(call: ToolCall, namespace: str) -> WebhookAccess:
    caller = call.get_caller()
    if namespace in {"", caller.user_name}:
        return access_to_own(call.request, caller)
    async with call.database.read() as conn:
        return await access_to_organization(call.request, conn, caller, namespace)


async def _read_webhooks(call: ToolCall, request: ReadWebhooks) -> WebhooksResult:
    access = await _webhook_access(call, request.namespace)
    async with call.database.read() as conn:
        if request.operation == "list":
            found, deliveries = await webhooks.list_of(conn, access), []
        elif request.webhook_id is None:
            raise InvalidRequest("webhook_id is needed for activity.")
        else:
            found = [await webhooks.get(conn, access, request.webhook_id)]
            filters = DeliveryFilter(states=states_named(request.state))
            window = await activity_store.list_of(conn, found[0].id, filters, limit=request.limit)
            deliveries = [Delivery.of(each) for each in window.deliveries]
    base_url = call.base_url
    rendered = [Webhook.model_validate(render_webhook(each, base_url=base_url)) for each in found]
    return WebhooksResult(webhooks=rendered, deliveries=deliveries)


class ReplayDelivery(Schema):
    namespace: Namespace = ""
    webhook_id: Annotated[str, Field(min_length=1, max_length=64)]
    delivery_id: Annotated[str, Field(min_length=1, max_length=64)]


async def _replay(call: ToolCall, request: ReplayDelivery) -> Sent:
    access = await _webhook_access(call, request.namespace)
    await call.report(0, 1, "The delivery is sent; its answer may take 20 seconds.")
    sent = await activity.replay(call.database, access, request.webhook_id, request.delivery_id)
    return Sent.of(sent)


JOB_TOOLS: tuple[Tool[Any], ...] = (
    Tool(info=JOBS, arguments=UseJobs, result=JobsResult, run=_use_jobs),
    Tool(info=WEBHOOKS, arguments=ReadWebhooks, result=WebhooksResult, run=_read_webhooks),
    Tool(info=REPLAY_WEBHOOKS, arguments=ReplayDelivery, result=Sent, run=_replay),
)
