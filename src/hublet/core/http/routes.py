"""HTTP for the hub itself: health, metrics, start-up requests of clients, controls of test mode."""

import secrets
from datetime import timedelta
from typing import NoReturn

from fastapi import Request
from starlette.responses import Response

from hublet.core import clock
from hublet.core.database import Database
from hublet.core.errors import AuthenticationNeeded, NotFound, Unavailable
from hublet.core.http.faults import Fault, Faults
from hublet.core.http.routers import Router
from hublet.core.http.schemas import (
    AgentHarnesses,
    Clock,
    Health,
    MoveClock,
    PlanFault,
    ProvisionedServices,
)
from hublet.core.http.transactions import Db
from hublet.core.metrics import Metrics
from hublet.core.schema import Done

operations_router = Router()


@operations_router.get("/healthz", tags=["operations"], openapi_extra={"security": []})
async def check_health() -> Health:
    """Tell that the process is alive."""
    return Health(status="ok")


@operations_router.get("/readyz", tags=["operations"], openapi_extra={"security": []})
async def check_readiness(request: Request) -> Health:
    """Tell that requests can be served: the database answers, and the process is not about to stop."""
    database: Database = request.app.state.database
    if database.hub.process.is_draining:
        raise Unavailable("This process is about to stop: send requests to another one.")
    await database.check()
    return Health(status="ok")


@operations_router.get(
    "/metrics",
    tags=["operations"],
    openapi_extra={"security": []},
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def read_metrics(request: Request, database: Db) -> Response:
    """Show metrics in the Prometheus text format; with the setting metrics_token, to its holder."""
    _check_metrics_token(request, database.hub.settings.server.metrics_token)
    metrics: Metrics = request.app.state.metrics
    await metrics.refresh(database)
    return Response(await metrics.render(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _check_metrics_token(request: Request, expected: str | None) -> None:
    given = request.headers.get("authorization", "").removeprefix("Bearer ")
    if expected is not None and not secrets.compare_digest(given.encode(), expected.encode()):
        raise AuthenticationNeeded("The metrics need the token of the setting metrics_token.")


clients_router = Router()
_PROVISIONING = "/api/agentic/provisioning"


@clients_router.get("/api/agent-harnesses", tags=["agents"], openapi_extra={"security": []})
async def list_agent_harnesses() -> AgentHarnesses:
    """Answer the public client's start-up question: this hub knows no agent harnesses."""
    return AgentHarnesses(standardEnvVars=[], harnesses={})


@clients_router.get(f"{_PROVISIONING}/health", tags=["agents"], openapi_extra={"security": []})
async def check_provisioning() -> Health:
    """Tell a program that looks for services that the hub is there."""
    return Health(status="ok")


@clients_router.get(f"{_PROVISIONING}/services", tags=["agents"], openapi_extra={"security": []})
async def list_provisioned_services() -> ProvisionedServices:
    """List what agents may buy here: nothing, because nothing here costs anything."""
    return ProvisionedServices(data=[])


@clients_router.api_route(
    f"{_PROVISIONING}/{{rest:path}}",
    response_model=None,
    methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
    include_in_schema=False,
)
async def refuse_provisioning() -> NoReturn:
    raise NotFound(
        "This hub sells no accounts and no services: a person makes a token at "
        "/settings/tokens, or allows an app by the device flow. See /llms.txt."
    )


@clients_router.get(
    "/api/telemetry/{topic:path}",
    tags=["agents"],
    openapi_extra={"security": []},
    status_code=204,
)
async def ignore_telemetry(topic: str) -> None:
    """Answer the HEAD requests that libraries send about their use; nothing is kept."""


test_mode_router = Router(prefix="/api/test-mode", tags=["operations"])


@test_mode_router.get("/clock", openapi_extra={"security": []})
async def read_clock() -> Clock:
    """Tell the hub's time and how far it was moved."""
    return Clock(now=clock.now(), offsetSeconds=clock.offset().total_seconds())


@test_mode_router.post("/clock", openapi_extra={"security": []})
async def move_clock(request: Request, body: MoveClock) -> Clock:
    """Move this process's clock on top of earlier moves."""
    clock.move(timedelta(seconds=body.advanceSeconds))
    # What became due just now would else wait until its worker looks by itself.
    request.app.state.database.wake_all()
    return await read_clock()


@test_mode_router.get("/faults", openapi_extra={"security": []})
async def list_faults(request: Request) -> list[PlanFault]:
    """List what is still to go wrong, in order."""
    faults: Faults = request.app.state.faults
    return [PlanFault.of(fault) for fault in faults.list_all()]


@test_mode_router.post("/faults", openapi_extra={"security": []})
async def plan_fault(request: Request, body: PlanFault) -> Done:
    """Let the next requests that fit fail or wait; requests of test mode itself never do."""
    faults: Faults = request.app.state.faults
    faults.plan(
        Fault(
            status=body.status,
            delay_seconds=body.delaySeconds,
            headers=body.headers,
            method=body.method,
            path=body.path,
            times=body.times,
        )
    )
    return Done()


@test_mode_router.delete("/faults", openapi_extra={"security": []})
async def clear_faults(request: Request) -> Done:
    """Let nothing go wrong any more."""
    faults: Faults = request.app.state.faults
    faults.clear()
    return Done()


# `test_mode_router` is added only in test mode.
ROUTERS: tuple[Router, ...] = (operations_router, clients_router)
