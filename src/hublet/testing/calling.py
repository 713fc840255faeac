"""Calls of a test's own to its hub, with nothing but Python's library."""

import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any

from hublet.testing.errors import Refused

# What a test plans to go wrong is not meant for the test itself.
_EXEMPT = {"X-Hublet-Testing": "1"}
_SECONDS = 30.0

# Proxies of the developer's lead elsewhere.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def call(
    method: str,
    url: str,
    *,
    token: str | None = None,
    body: object = None,
    query: Mapping[str, object] | None = None,
) -> Any:
    """Return the JSON of the answer, or raise Refused."""
    if query:
        url += "?" + urllib.parse.urlencode(query, doseq=True)
    headers = {**_EXEMPT, "Content-Type": "application/json"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers=headers, method=method)  # noqa: S310 - it is the hub
    try:
        with _opener.open(request, timeout=_SECONDS) as answer:
            return json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        with error:
            told = error.read().decode(errors="replace")
        raise Refused(f"{method} {url}", error.code, told) from None
