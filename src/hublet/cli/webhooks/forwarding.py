"""Forwarding of deliveries to a port of this machine, as the hub would have sent them."""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hublet.client.webhooks import Delivery

# As long as the hub itself would wait.
_SECONDS = 15.0
_MAX_RESPONSE_BYTES = 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardResult:
    # None when no answer came, and then there is a reason.
    status: int | None
    reason: str | None = None
    milliseconds: int

    @property
    def is_good(self) -> bool:
        return self.status is not None and 200 <= self.status < 300  # noqa: PLR2004 - as HTTP has it


def parse_target(url: str) -> str:
    try:
        parts = urlsplit(url)
        _port = parts.port
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in {"http", "https"} or not parts.hostname or "@" in parts.netloc:
        raise typer.BadParameter(
            f"{url} is not an address such as http://localhost:8080/hook.", param_hint="--forward"
        )
    return url


def _body(payload: "Mapping[str, Any]") -> bytes:
    """Write the payload as the hub does: compact, and letters as they are."""
    return json.dumps(payload, separators=(",", ":"), ensure_ascii=False).encode()


def send(
    url: str, delivery: "Delivery", payload: "Mapping[str, Any]", *, secret: str | None
) -> ForwardResult:
    """Post a delivery with the headers of the hub; a signature needs the secret."""
    from http.client import HTTPException
    from urllib.request import Request

    from hublet.client.errors import NotReachable
    from hublet.client.transport import open_request
    from hublet.core.clock import micros, monotonic
    from hublet.webhooks.delivery.signing import headers_of, key_of

    body = _body(payload)
    headers = headers_of(
        body,
        delivery_id=delivery["id"],
        timestamp=micros() // 1_000_000,
        attempt=max(delivery["attempts"], 1),
        secret=secret or None,
        keys=[key_of(secret)] if secret else [],
    )
    request = Request(url, data=body, headers=headers, method="POST")  # noqa: S310 - `read_target` lets only http and https through
    began = monotonic()
    status, reason = None, None
    try:
        with open_request(request, endpoint=url, timeout=_SECONDS) as answer:
            answer.read(_MAX_RESPONSE_BYTES)
            status = answer.status
    except NotReachable as error:
        reason = error.reason
    except (OSError, HTTPException):
        reason = "the connection broke"
    return ForwardResult(
        status=status, reason=reason, milliseconds=round((monotonic() - began) * 1000)
    )
