"""Fault injection in test mode: responses that fail or are slow on purpose."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from hublet.core.http.exchange import request_id_of

# A test runner sends this header with its own requests, which no fault hits.
EXEMPT_HEADER = b"x-hublet-testing"
_CONTROL_PATHS = "/api/test-mode/"


@dataclass(slots=True, kw_only=True)
class Fault:
    """A fault of the next requests that match; without method and path every one does."""

    # None: the right response comes, only later.
    status: int | None = None
    delay_seconds: float = 0.0
    headers: Mapping[str, str] = field(default_factory=dict)
    method: str | None = None
    # As in a shell: * stands for anything.
    path: str | None = None
    times: int = 1

    def matches(self, method: str, path: str) -> bool:
        return self.method in {None, method} and (self.path is None or fnmatchcase(path, self.path))


class Faults:
    """Planned faults, in the order in which they were requested."""

    def __init__(self) -> None:
        self._planned: list[Fault] = []

    def plan(self, fault: Fault) -> None:
        self._planned.append(fault)

    def list_all(self) -> list[Fault]:
        return list(self._planned)

    def clear(self) -> None:
        self._planned.clear()

    def next_for(self, method: str, path: str) -> Fault | None:
        """Return the fault planned for this request, if any, and count it."""
        fault = next((each for each in self._planned if each.matches(method, path)), None)
        if fault is not None:
            fault.times -= 1
            if fault.times == 0:
                self._planned.remove(fault)
        return fault


class FaultMiddleware:
    """Middleware around the whole application, only in test mode."""

    def __init__(self, app: ASGIApp, faults: Faults) -> None:
        self._app = app
        self._faults = faults

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        fault = (
            self._faults.next_for(scope["method"], scope["path"]) if _applies_to(scope) else None
        )
        if fault is not None:
            await asyncio.sleep(fault.delay_seconds)
        if fault is None or fault.status is None:
            await self._app(scope, receive, send)
        else:
            request_id = request_id_of(dict(scope["headers"]))
            await _fault_response(fault, request_id)(scope, receive, send)


def _applies_to(scope: Scope) -> bool:
    return (
        scope["type"] == "http"
        and not scope["path"].startswith(_CONTROL_PATHS)
        and all(name != EXEMPT_HEADER for name, _ in scope["headers"])
    )


def _fault_response(fault: Fault, request_id: str) -> JSONResponse:
    return JSONResponse(
        {"error": "The hub is in test mode, and was asked to fail here."},
        status_code=fault.status or 500,
        headers={"X-Request-Id": request_id, **fault.headers},
    )
