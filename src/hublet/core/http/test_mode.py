"""What only a hub in test mode offers: a clock that can be moved, and faults on demand."""

from datetime import timedelta

from fastapi import Request

from hublet.core import clock
from hublet.core.http.faults import Fault, Faults
from hublet.core.http.routers import Router
from hublet.core.http.schemas import Clock, MoveClock, PlanFault
from hublet.core.schema import Done

router = Router(prefix="/api/test-mode", tags=["operations"])


@router.get("/clock", openapi_extra={"security": []})
async def read_clock() -> Clock:
    """Tell the hub's time and how far it was moved."""
    return Clock(now=clock.now(), offsetSeconds=clock.offset().total_seconds())


@router.post("/clock", openapi_extra={"security": []})
async def move_clock(request: Request, body: MoveClock) -> Clock:
    """Move this process's clock on top of earlier moves."""
    clock.move(timedelta(seconds=body.advanceSeconds))
    # What became due just now would else wait until its worker looks by itself.
    request.app.state.database.ring_all()
    return await read_clock()


@router.get("/faults", openapi_extra={"security": []})
async def list_faults(request: Request) -> list[PlanFault]:
    """List what is still to go wrong, in order."""
    faults: Faults = request.app.state.faults
    return [PlanFault.of(fault) for fault in faults.list_all()]


@router.post("/faults", openapi_extra={"security": []})
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


@router.delete("/faults", openapi_extra={"security": []})
async def clear_faults(request: Request) -> Done:
    """Let nothing go wrong any more."""
    faults: Faults = request.app.state.faults
    faults.clear()
    return Done()
