"""The landing page: what this server is, where it listens, and what came of late."""

import base64
import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime
from html import escape

from starlette.types import Scope

from hublet.receiver.activity import Seen
from hublet.receiver.http.answers import Answer
from hublet.receiver.surroundings import space_host

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
    address: str, paths: Iterable[str], seen: Iterable[Seen], *, is_open: bool
) -> Answer:
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
{_table(seen)}
</body>
</html>
"""
    return Answer(200, page.encode(), media_type=b"text/html; charset=utf-8", headers=_HEADERS)


def _table(seen: Iterable[Seen]) -> str:
    rows = "".join(_row(each) for each in seen)
    if not rows:
        return "<p>None since this server started.</p>"
    head = "<tr><th>Time (UTC)</th><th>Endpoint</th><th>Status</th><th>Milliseconds</th></tr>"
    return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>"


def _row(seen: Seen) -> str:
    moment = datetime.fromtimestamp(seen.at, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return (
        f"<tr><td>{moment}</td><td><code>{escape(seen.path)}</code></td>"
        f"<td>{seen.status}</td><td>{seen.milliseconds:.1f}</td></tr>"
    )
