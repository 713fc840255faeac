"""Pages of the receiver: the landing page, or an application of the user's own with its lifespan."""

import asyncio
import base64
import hashlib
import importlib
import inspect
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from html import escape
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hublet.receiver.environment import space_host
from hublet.receiver.requests import path_in
from hublet.receiver.responses import PlainResponse, RecentDelivery, not_allowed, not_found

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
_HEADERS = [
    (
        b"content-security-policy",
        f"default-src 'none'; style-src 'sha256-{_STYLE_DIGEST}'; base-uri 'none'; "
        "form-action 'none'".encode(),
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]


def address_of(scope: Scope) -> str:
    """Return where the visitor found this server, without a slash at the end."""
    root = scope.get("root_path", "")
    if (host := space_host()) is not None:
        return f"https://{host}{root}"
    said = {name: value.decode("latin-1") for name, value in scope["headers"]}
    # Only shown to whoever says it, so nobody has to be trusted.
    is_safe = said.get(b"x-forwarded-proto") == "https" or scope.get("scheme") == "https"
    return f"{'https' if is_safe else 'http'}://{said.get(b'host', 'localhost')}{root}"


def landing_page(
    address: str, paths: Iterable[str], seen: Iterable[RecentDelivery], *, is_open: bool
) -> PlainResponse:
    hooks = "".join(f"<li><code>POST {escape(address + path)}</code></li>" for path in paths)
    listed = f"<ul>{hooks}</ul>" if hooks else "<p>There is no endpoint yet.</p>"
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
{listed}
<h2>Last deliveries</h2>
{_deliveries_table(seen)}
</body>
</html>
"""
    return PlainResponse(
        200, page.encode(), media_type=b"text/html; charset=utf-8", headers=_HEADERS
    )


def _deliveries_table(seen: Iterable[RecentDelivery]) -> str:
    rows = "".join(_delivery_row(each) for each in seen)
    if not rows:
        return "<p>None since this server started.</p>"
    head = "<tr><th>Time (UTC)</th><th>Endpoint</th><th>Status</th><th>Milliseconds</th></tr>"
    return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"


def _delivery_row(seen: RecentDelivery) -> str:
    moment = datetime.fromtimestamp(seen.at, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return (
        f"<tr><td>{moment}</td><td><code>{escape(seen.path)}</code></td>"
        f"<td>{seen.status}</td><td>{seen.milliseconds:.1f}</td></tr>"
    )


_ASGI_PARAMETERS = 3


def application_of(ui: Any) -> ASGIApp:
    """Return an application for all that is no webhook; what cannot be shown is a TypeError."""
    if isinstance(ui, str):
        return _serve_at_root(HTMLResponse(ui))
    if isinstance(ui, Response):
        return _serve_at_root(ui)
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
    return _serve_at_root(_render_with(ui, takes_request=count == 1))


def _serve_at_root(page: ASGIApp) -> ASGIApp:
    async def show(scope: Scope, receive: Receive, send: Send) -> None:
        if path_in(scope) not in {"", "/"}:
            await not_found()(scope, receive, send)
        elif scope["method"] not in {"GET", "HEAD"}:
            await not_allowed("GET")(scope, receive, send)
        else:
            await page(scope, receive, send)

    return show


def _render_with(function: Callable[..., Any], *, takes_request: bool) -> ASGIApp:
    async def show(scope: Scope, receive: Receive, send: Send) -> None:
        arguments = [Request(scope, receive)] if takes_request else []
        if inspect.iscoroutinefunction(function):
            shown = await function(*arguments)
        else:
            shown = await asyncio.to_thread(function, *arguments)
        response = shown if isinstance(shown, Response) else HTMLResponse(str(shown))
        await response(scope, receive, send)

    return show


def _mount_gradio(blocks: Any) -> ASGIApp:
    """Mount an interface of gradio, which brings FastAPI along."""
    gradio, fastapi = (importlib.import_module(name) for name in ("gradio", "fastapi"))
    mounted: ASGIApp = gradio.mount_gradio_app(fastapi.FastAPI(), blocks, path="/")
    return mounted


async def serve_lifespan(
    lifespan: AbstractAsyncContextManager[None], receive: Receive, send: Send
) -> None:
    """Hold a lifespan open for as long as the server says."""
    await receive()
    try:
        async with lifespan:
            await send({"type": "lifespan.startup.complete"})
            await receive()
    except Exception as error:
        await send({"type": "lifespan.startup.failed", "message": str(error)})
        raise
    await send({"type": "lifespan.shutdown.complete"})


@asynccontextmanager
async def run_lifespan(application: ASGIApp) -> AsyncIterator[None]:
    """Start an application and stop it at the end; one that knows no lifespan is left alone."""
    told: asyncio.Queue[Message] = asyncio.Queue()
    heard: asyncio.Queue[Message | None] = asyncio.Queue()

    async def live() -> None:
        scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}
        try:
            await application(scope, told.get, heard.put)
        finally:
            await heard.put(None)

    task = asyncio.create_task(live())
    await told.put({"type": "lifespan.startup"})
    started = await heard.get()
    if started is not None and started["type"] == "lifespan.startup.failed":
        await task
        raise RuntimeError(f"The page could not be started: {started.get('message', '')}")
    yield
    await told.put({"type": "lifespan.shutdown"})
    # Whoever does not know it has raised long ago.
    await asyncio.wait({task})
    if started is not None:
        task.result()
    else:
        task.exception()
