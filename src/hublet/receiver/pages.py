"""Pages of the receiver: the landing page, or a `ui` of the user's own with its lifespan."""

import asyncio
import base64
import hashlib
import importlib
import inspect
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from html import escape
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hublet.receiver.environment import space_host
from hublet.receiver.requests import path_in
from hublet.receiver.responses import RecentDelivery, not_allowed, not_found

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 48rem; margin: 2rem auto; padding: 0 1rem;
       color: #1c1c1c; background: #fff; }
code { font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid #ddd; }
@media (prefers-color-scheme: dark) {
  body { color: #eee; background: #161616; } th, td { border-color: #444; } }
"""
_STYLE_DIGEST = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
# Nothing is fetched and nothing runs; a space shows its page in a frame of the hub.
_HEADERS = {
    "content-security-policy": (
        f"default-src 'none'; style-src 'sha256-{_STYLE_DIGEST}'; base-uri 'none'; "
        "form-action 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
_ASGI_PARAMETERS = 3


def public_address(request: Request) -> str:
    """Return the address under which the visitor reached this server, without a final slash."""
    root = request.scope.get("root_path", "")
    if (host := space_host()) is not None:
        return f"https://{host}{root}"
    # These headers are rendered only for the visitor who sent them, so they need no trust.
    is_tls = "https" in {request.headers.get("x-forwarded-proto"), request.scope.get("scheme")}
    return f"{'https' if is_tls else 'http'}://{request.headers.get('host', 'localhost')}{root}"


def landing_page(
    address: str, paths: Iterable[str], recent: Iterable[RecentDelivery], *, is_open: bool
) -> Response:
    items = "".join(f"<li><code>POST {escape(address + path)}</code></li>" for path in paths)
    endpoints = f"<ul>{items}</ul>" if items else "<p>There is no endpoint yet.</p>"
    page = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Webhooks</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>This server receives webhooks</h1>
<p>A webhook tells this server when something changes on a hub: a repository, a discussion, a pull
request. Create one that points to an endpoint below, with the secret that this server knows:</p>
<p><code>hf webhooks create --watch model:NAME --url URL --secret SECRET</code></p>
{"<p><strong>No secret is set: these endpoints are open to everyone.</strong></p>" if is_open else ""}
<h2>Endpoints</h2>
{endpoints}
<h2>Last deliveries</h2>
{_deliveries_table(recent)}
</body>
</html>
"""
    return HTMLResponse(page, headers=_HEADERS)


def _deliveries_table(recent: Iterable[RecentDelivery]) -> str:
    rows = "".join(_delivery_row(each) for each in recent)
    if not rows:
        return "<p>None since this server started.</p>"
    head = "<tr><th>Time (UTC)</th><th>Endpoint</th><th>Status</th><th>Milliseconds</th></tr>"
    return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"


def _delivery_row(delivery: RecentDelivery) -> str:
    at = datetime.fromtimestamp(delivery.at, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return (
        f"<tr><td>{at}</td><td><code>{escape(delivery.path)}</code></td>"
        f"<td>{delivery.status}</td><td>{delivery.milliseconds:.1f}</td></tr>"
    )


def application_for(ui: Any) -> ASGIApp:
    """Return the ASGI application of a `ui`, which serves every path that is no webhook."""
    if isinstance(ui, str):
        return serve_at_root(HTMLResponse(ui))
    if isinstance(ui, Response):
        return serve_at_root(ui)
    if any(each.__module__.partition(".")[0] == "gradio" for each in type(ui).__mro__):
        return _mount_gradio(ui)
    if not callable(ui):
        raise TypeError(
            f"ui is {type(ui).__name__}, and must be HTML, a response, a function that returns "
            "one of these, or an ASGI application."
        )
    count = len(inspect.signature(ui).parameters)
    if count == _ASGI_PARAMETERS:
        return cast("ASGIApp", ui)
    return serve_at_root(_render_with(ui, takes_request=count == 1))


def serve_at_root(page: ASGIApp) -> ASGIApp:
    """Return an application that serves the page for `GET /` and refuses everything else."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if path_in(scope) not in {"", "/"}:
            await not_found()(scope, receive, send)
        elif scope["method"] not in {"GET", "HEAD"}:
            await not_allowed("GET")(scope, receive, send)
        else:
            await page(scope, receive, send)

    return serve


def _render_with(function: Callable[..., Any], *, takes_request: bool) -> ASGIApp:
    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        arguments = [Request(scope, receive)] if takes_request else []
        if inspect.iscoroutinefunction(function):
            page = await function(*arguments)
        else:
            page = await asyncio.to_thread(function, *arguments)
        response = page if isinstance(page, Response) else HTMLResponse(str(page))
        await response(scope, receive, send)

    return serve


def _mount_gradio(blocks: Any) -> ASGIApp:
    """Mount an interface of gradio, which depends on FastAPI."""
    gradio, fastapi = (importlib.import_module(name) for name in ("gradio", "fastapi"))
    mounted: ASGIApp = gradio.mount_gradio_app(fastapi.FastAPI(), blocks, path="/")
    return mounted


@asynccontextmanager
async def run_lifespan(application: ASGIApp) -> AsyncIterator[None]:
    """Start an application and stop it at the end; one without a lifespan is left alone."""
    requests: asyncio.Queue[Message] = asyncio.Queue()
    replies: asyncio.Queue[Message | None] = asyncio.Queue()

    async def run() -> None:
        scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}
        try:
            await application(scope, requests.get, replies.put)
        finally:
            await replies.put(None)

    task = asyncio.create_task(run())
    await requests.put({"type": "lifespan.startup"})
    started = await replies.get()
    if started is not None and started["type"] == "lifespan.startup.failed":
        await task
        raise RuntimeError(f"The page could not be started: {started.get('message', '')}")
    yield
    await requests.put({"type": "lifespan.shutdown"})
    await asyncio.wait({task})
    if started is not None:
        task.result()
    else:
        # An application without a lifespan raised when it was asked to start.
        task.exception()
