"""Routes about the hub itself: health, metrics, and what clients ask any hub at their start."""

import secrets

from fastapi import Request
from starlette.responses import Response

from hublet.core import outbox, queue
from hublet.core.database import Database
from hublet.core.errors import AuthenticationNeeded
from hublet.core.http.routers import Router
from hublet.core.http.schemas import AgentHarnesses, Health
from hublet.core.http.transactions import ReadConn
from hublet.core.metrics import Metrics

router = Router()


@router.get("/healthz", tags=["operations"], openapi_extra={"security": []})
async def check_health() -> Health:
    """Tell that the process is alive."""
    return Health(status="ok")


@router.get("/readyz", tags=["operations"], openapi_extra={"security": []})
async def check_readiness(request: Request) -> Health:
    """Tell that requests can be served: the database answers."""
    database: Database = request.app.state.database
    await database.check()
    return Health(status="ok")


@router.get(
    "/metrics",
    tags=["operations"],
    openapi_extra={"security": []},
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def read_metrics(request: Request, conn: ReadConn) -> Response:
    """Show metrics in the Prometheus text format; with the setting metrics_token, to its holder."""
    _check_metrics_token(request, conn.hub.settings.server.metrics_token)
    metrics: Metrics = request.app.state.metrics
    metrics.outbox.set(await outbox.count_waiting(conn))
    metrics.tasks.set(await queue.count_waiting(conn))
    metrics.parked.set(await queue.count_parked(conn))
    for count in metrics.counts:
        await count(conn)
    return Response(metrics.render(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _check_metrics_token(request: Request, expected: str | None) -> None:
    given = request.headers.get("authorization", "").removeprefix("Bearer ")
    if expected is not None and not secrets.compare_digest(given.encode(), expected.encode()):
        raise AuthenticationNeeded("The metrics need the token of the setting metrics_token.")


@router.get("/api/agent-harnesses", tags=["agents"], openapi_extra={"security": []})
async def list_agent_harnesses() -> AgentHarnesses:
    """Answer the public client's start-up question: this hub knows no agent harnesses."""
    return AgentHarnesses(standardEnvVars=[], harnesses={})


@router.get(
    "/api/telemetry/{topic:path}",
    tags=["agents"],
    openapi_extra={"security": []},
    status_code=204,
)
async def ignore_telemetry(topic: str) -> None:
    """Answer the HEAD requests that libraries send about their use; nothing is kept."""
