"""Pages of the receiver: the landing page, or a `ui` of the user's own with its lifespan."""

import asyncio
import base64
import hashlib
import hmac
import importlib
import inspect
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import cache
from html import escape
from http import HTTPStatus
from importlib.resources import files
from typing import Any, NamedTuple, cast

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hublet.receiver.environment import space_host
from hublet.receiver.requests import path_in
from hublet.receiver.responses import SHOWN_BYTES, RecentDelivery, not_allowed, not_found

# The part of the address that asks for payloads too.
PAYLOADS = "payloads"
_ASGI_PARAMETERS = 3


def public_address(request: Request) -> str:
    """Return the address under which the visitor reached this server, without a final slash."""
    root = request.scope.get("root_path", "")
    if (host := space_host()) is not None:
        return f"https://{host}{root}"
    # These headers are rendered only for the visitor who sent them, so they need no trust.
    is_tls = "https" in {request.headers.get("x-forwarded-proto"), request.scope.get("scheme")}
    return f"{'https' if is_tls else 'http'}://{request.headers.get('host', 'localhost')}{root}"


class SecretState(NamedTuple):
    """How senders show that they may send."""

    known: int
    requires_signature: bool

    @property
    def is_open(self) -> bool:
        return self.known == 0


@cache
def _style() -> str:
    """Return the hub's own style: a file of this package, read without loading anything of the hub."""
    return (files("hublet") / "core" / "static" / "hublet.css").read_text(encoding="utf-8")


@cache
def _headers() -> dict[str, str]:
    digest = base64.b64encode(hashlib.sha256(_style().encode()).digest()).decode()
    # Nothing is fetched and nothing runs; a space shows its page in a frame of the hub.
    return {
        "content-security-policy": (
            f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
        ),
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "no-store",
    }


def knows_secret(request: Request, secrets: Sequence[str]) -> bool:
    """Tell whether the visitor has shown a secret of this server as the password (RFC 7617)."""
    scheme, _, credentials = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return False
    try:
        _, _, password = base64.b64decode(credentials, validate=True).partition(b":")
    except ValueError:
        return False
    # All of them, so that the time tells nothing about which one was nearly right.
    matches = [hmac.compare_digest(password, each.encode()) for each in secrets]
    return any(matches)


def ask_for_secret() -> Response:
    headers = {
        "www-authenticate": 'Basic realm="A webhook secret as the password", charset="UTF-8"'
    }
    sentence = "Payloads are for who knows a secret of this server: it is the password.\n"
    return PlainTextResponse(sentence, HTTPStatus.UNAUTHORIZED, headers)


def landing_page(
    address: str,
    handlers: Mapping[str, str],
    recent: Iterable[RecentDelivery],
    secret: SecretState,
    *,
    with_payloads: bool,
) -> Response:
    """Return the page; `handlers` are the names of functions by their paths."""
    items = "".join(
        f"<li><div><code>POST {escape(address + path)}</code>"
        f'<p class="quiet small">handled by <code>{escape(name)}</code></p></div></li>'
        for path, name in handlers.items()
    )
    endpoints = f'<ul class="found">{items}</ul>' if items else "<p>There is no endpoint yet.</p>"
    deliveries = list(recent)
    page = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Webhooks</title>
<style>{_style()}</style>
</head>
<body>
<header class="top"><div class="wrap"><span class="brand">{_LOGO}<span>Webhooks</span></span></div></header>
<main class="plain-page admin receiver">
<h1>This server receives webhooks</h1>
<p>A webhook tells this server when something changes on a hub: a repository, a discussion, a pull
request. Create one that points to an endpoint below, with the secret that this server knows:</p>
<pre class="snip" tabindex="0"><code>hf webhooks create --watch model:NAME --url URL --secret SECRET</code></pre>
{_secret_note(secret)}
<h2>Endpoints</h2>
{endpoints}
<h2>Last deliveries</h2>
{_deliveries_table(deliveries, handlers, secret)}
{_payloads(deliveries, secret, is_shown=with_payloads)}
</main>
</body>
</html>
"""
    return HTMLResponse(page, headers=_headers())


_LOGO = (
    '<svg viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="8" '
    'fill="#2855bd"/><path d="M10 7.5v17M22 7.5v17M10 16h12" stroke="#fff" stroke-width="3.2" '
    'stroke-linecap="round"/><circle cx="16" cy="16" r="4.1" fill="#ffd166"/></svg>'
)


def _secret_note(secret: SecretState) -> str:
    if secret.is_open:
        return (
            '<p class="notice warn"><strong>No secret is set: these endpoints are open to everyone.'
            "</strong> Set <code>WEBHOOK_SECRET</code>, and give it to the hub.</p>"
        )
    known, it = "A secret is set", "it"
    if secret.known > 1:
        known, it = f"{secret.known} secrets are set", "one of them"
    rule = f"sign with {it}" if secret.requires_signature else f"send {it}, or sign with {it}"
    return f'<p class="notice good">{known}: senders must {rule}.</p>'


def _deliveries_table(
    recent: Sequence[RecentDelivery], handlers: Mapping[str, str], secret: SecretState
) -> str:
    if not recent:
        return "<p>None since this server started.</p>"
    titles = ("Time (UTC)", "Endpoint", "Handler", "Secret", "Status", "Milliseconds")
    head = "".join(f'<th scope="col">{title}</th>' for title in titles)
    rows = "".join(_delivery_row(each, handlers.get(each.path, ""), secret) for each in recent)
    return (
        '<div class="scroll card" tabindex="0" role="region" aria-label="Last deliveries">'
        f'<table class="ledger"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    )


def _delivery_row(delivery: RecentDelivery, handler: str, secret: SecretState) -> str:
    return (
        f"<tr><td>{_moment(delivery)}</td><td><code>{escape(delivery.path)}</code></td>"
        f"<td><code>{escape(handler)}</code></td><td>{_proof(delivery, secret)}</td>"
        f"<td>{_badge(delivery.status)}</td><td>{delivery.milliseconds:.1f}</td></tr>"
    )


def _moment(delivery: RecentDelivery) -> str:
    return datetime.fromtimestamp(delivery.at, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _badge(status: int) -> str:
    tone = "ok" if status < HTTPStatus.BAD_REQUEST else "bad"
    return f'<span class="badge {tone}">{status}</span>'


def _proof(delivery: RecentDelivery, secret: SecretState) -> str:
    if secret.is_open:
        return "none is set"
    if delivery.status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return "refused"
    return "signed" if delivery.is_signed else "sent along"


def _payloads(recent: Sequence[RecentDelivery], secret: SecretState, *, is_shown: bool) -> str:
    """Return what was sent and answered, which only those may see who know a secret."""
    if secret.is_open:
        return '<p class="quiet small">Payloads are shown here once a secret is set.</p>'
    if not is_shown:
        return (
            f'<p><a class="btn" href="?{PAYLOADS}">Show payloads and answers</a></p>'
            '<p class="quiet small">The browser asks for a password: it is a secret of this server, '
            "with any name.</p>"
        )
    shown = [each for each in recent if each.payload]
    if not shown:
        return "<p>No payload has come since this server started.</p>"
    return "<h2>Payloads and answers</h2>" + "".join(
        f'<details class="card group"><summary class="head">{_badge(each.status)}'
        f'<code>{escape(each.path)}</code> {_moment(each)}</summary><div class="body">'
        f"<h3>Payload</h3>{_code(each.payload, 'Payload')}<h3>Answer</h3>"
        f"{_code(each.answer, 'Answer')}</div></details>"
        for each in shown
    )


def _code(content: bytes, label: str) -> str:
    """Return bytes as text, JSON with a line for each field."""
    text = content.decode(errors="replace")
    try:
        text = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        if len(content) == SHOWN_BYTES:
            text += f"\n… only the first {SHOWN_BYTES} bytes are kept here."
    return (
        f'<pre class="snip" tabindex="0" role="region" aria-label="{label}">'
        f"<code>{escape(text) or 'empty'}</code></pre>"
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
