"""What only a hub in test mode offers: a clock that can be moved."""

from datetime import timedelta

from hublet.core import clock
from hublet.core.http.routers import Router
from hublet.core.http.schemas import Clock, MoveClock

router = Router(prefix="/api/test-mode", tags=["operations"])


@router.get("/clock", openapi_extra={"security": []})
async def read_clock() -> Clock:
    """Tell the hub's time and how far it was moved."""
    return Clock(now=clock.now(), offsetSeconds=clock.offset().total_seconds())


@router.post("/clock", openapi_extra={"security": []})
async def move_clock(body: MoveClock) -> Clock:
    """Move this process's clock on top of earlier moves."""
    clock.move(timedelta(seconds=body.advanceSeconds))
    return await read_clock()
