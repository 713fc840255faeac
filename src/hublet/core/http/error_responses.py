"""Error responses: every error is rendered in one form, or in the form of its protocol."""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from hublet.core.database import DatabaseUnavailable
from hublet.core.errors import HubError, InvalidRequest
from hublet.core.http.validation import describe_problems
from hublet.core.logs import get_logger

log = get_logger("http")

_LONGEST_HEADER = 1000

_PLAIN = {
    404: "There is nothing at this address: {method} {path}.",
    405: "{method} is not possible at {path}.",
}


# Protocols with a form of their own for errors, by the path of their endpoint.
_forms: dict[str, Callable[[HubError], HubError]] = {}


def set_error_form(path: str, form: Callable[[HubError], HubError]) -> None:
    """Render every error at this path, also those of the edge, in the form of its protocol."""
    _forms[path] = form


# Renders the body of an error from its status, its sentence and its further fields.
ErrorBody = Callable[[int, str, Mapping[str, Any]], Mapping[str, Any]]

# Protocols whose errors have another body altogether, by a pattern of their addresses.
_bodies: list[tuple[re.Pattern[str], ErrorBody, str]] = []


def set_error_body(paths: str, *, body: ErrorBody, media_type: str) -> None:
    """Render every error at these paths (a regular expression), also those of the edge, so."""
    # A name in a path may have a line break in it, wherever that comes from.
    _bodies.append((re.compile(paths, re.DOTALL), body, media_type))


# Renders an error as a page; the floor of the pages sets it.
ErrorPage = Callable[[Request, HubError], Awaitable[Response]]
_pages: list[ErrorPage] = []


def set_error_page(page: ErrorPage) -> None:
    """Render errors so for people who look with a browser."""
    _pages[:] = [page]


def _is_for_people(request: Request) -> bool:
    """Tell whether a browser asks, outside the API, where no protocol has errors of its own."""
    path: str = request.scope["path"]
    if path.startswith("/api/") or path in _forms or not _pages:
        return False
    if any(pattern.fullmatch(path) for pattern, _, _ in _bodies):
        return False
    headers = request.headers
    # A program sends no cookies, so that a script of a page counts as its browser.
    is_browser = "cookie" in headers and "authorization" not in headers
    return is_browser or "text/html" in headers.get("accept", "")


async def _negotiate(request: Request, error: HubError, plain: Response) -> Response:
    """Return an error as a page for people, and as it is for programs."""
    response = await _pages[0](request, error) if _is_for_people(request) else plain
    if not request.scope["path"].startswith("/api/"):
        response.headers.add_vary_header("Accept")
    return response


def _render_body(
    path: str, status: int, message: str, extra: Mapping[str, Any]
) -> tuple[Mapping[str, Any], str]:
    for pattern, body, media_type in _bodies:
        if pattern.fullmatch(path):
            return body(status, message, extra), media_type
    return {"error": message, **extra}, "application/json"


def error_response(
    message: str,
    *,
    status: int,
    code: str | None = None,
    headers: Mapping[str, str] | None = None,
    extra: Mapping[str, Any] | None = None,
    path: str = "",
) -> Response:
    body, media_type = _render_body(path, status, message, extra or {})
    response = Response(
        msgspec.json.encode(body),
        status_code=status,
        media_type=media_type,
        headers=dict(headers or {}),
    )
    if code:
        response.headers["X-Error-Code"] = code
    # Header values are Latin-1 at best, and one line.
    if message.isascii() and message.isprintable():
        response.headers["X-Error-Message"] = message[:_LONGEST_HEADER]
    return response


def hub_error_response(error: HubError, *, path: str = "") -> Response:
    if isinstance(error, DatabaseUnavailable):
        log.warning("database unavailable", reason=error.reason)
    if path in _forms:
        error = _forms[path](error)
    return error_response(
        error.message,
        status=error.status,
        code=error.code,
        headers=error.headers,
        extra=error.extra,
        path=path,
    )


_UNEXPECTED = "Something went wrong on our side. Tell the operator the request id {}."


def unexpected_response(request_id: str, *, path: str) -> Response:
    return error_response(_UNEXPECTED.format(request_id), status=500, path=path)


async def _handle_unexpected(request: Request, _error: Exception) -> Response:
    # The framework raises the error again once this is sent, and the edge writes the log.
    request_id: str = request.scope["exchange"].request_id
    if _is_for_people(request):
        return await _pages[0](request, HubError(_UNEXPECTED.format(request_id)))
    return unexpected_response(request_id, path=request.scope["path"])


async def negotiate_error(request: Request, error: HubError) -> Response:
    """Return an error as a page for people, and in the form of the path for programs."""
    plain = hub_error_response(error, path=request.scope["path"])
    return await _negotiate(request, error, plain)


async def _handle_hub_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HubError)  # noqa: S101 - registered for this class only
    return await negotiate_error(request, error)


async def _handle_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - as above
    invalid = InvalidRequest(describe_problems(error.errors()))
    plain = error_response(invalid.message, status=400, path=request.scope["path"])
    return await _negotiate(request, invalid, plain)


async def _handle_http_exception(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - as above
    pattern = _PLAIN.get(error.status_code, str(error.detail))
    message = pattern.replace("{method}", request.method).replace("{path}", request.url.path)
    shown = HubError(message, headers=error.headers)
    shown.status = error.status_code
    plain = error_response(
        message, status=error.status_code, headers=error.headers, path=request.scope["path"]
    )
    return await _negotiate(request, shown, plain)


async def _handle_disconnect(request: Request, _error: Exception) -> Response:
    # The client is gone; for the log it is no failure of the hub.
    return error_response("The body ended too early.", status=400, path=request.scope["path"])


def install_error_handlers(app: FastAPI) -> None:
    app.add_exception_handler(HubError, _handle_hub_error)
    app.add_exception_handler(RequestValidationError, _handle_invalid)
    app.add_exception_handler(HTTPException, _handle_http_exception)
    app.add_exception_handler(ClientDisconnect, _handle_disconnect)
    app.add_exception_handler(Exception, _handle_unexpected)
