"""Deliveries to a receiver, as our hub makes them, without a socket."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import httpx2
import msgspec

from hublet.webhooks.delivery.signing import headers_of, key_of

ID = "6af9736529ea2002586654b5"
PAYLOAD: dict[str, Any] = {
    "event": {"action": "update", "scope": "repo.content"},
    "repo": {
        "type": "model",
        "name": "ada/engine",
        "id": "6af9735f29ea2002586654a4",
        "private": False,
        "url": {
            "web": "https://hub.example.com/ada/engine",
            "api": "https://hub.example.com/api/models/ada/engine",
        },
        "owner": {"id": "6af973580ae3c85584efc477"},
        "tags": ["license:mit"],
        "headSha": "359d420fdc59764d9148b9191bef8f025f9cecd2",
    },
    "updatedRefs": [
        {
            "ref": "refs/heads/main",
            "oldSha": None,
            "newSha": "359d420fdc59764d9148b9191bef8f025f9cecd2",
        }
    ],
    "webhook": {"id": "6af9736029ea2002586654a6", "version": 3},
}
BODY = msgspec.json.encode(PAYLOAD)
JSON = {"content-type": "application/json"}


def signed(
    *secrets: str, body: bytes = BODY, delivery_id: str = ID, seconds_ago: int = 0
) -> dict[str, str]:
    """Return the headers of our hub: the first secret goes along, all of them sign."""
    return headers_of(
        body,
        delivery_id=delivery_id,
        timestamp=int(datetime.now(UTC).timestamp()) - seconds_ago,
        attempt=1,
        secret=secrets[0] if secrets else None,
        keys=[key_of(secret) for secret in secrets],
    )


def a_payload(**parts: Any) -> bytes:
    """Return a body; name only the parts that the test is about."""
    return msgspec.json.encode(PAYLOAD | parts)


async def post(
    app: Any,
    path: str,
    *,
    body: bytes = BODY,
    headers: Mapping[str, str] = JSON,
    method: str = "POST",
) -> httpx2.Response:
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://receiver.test") as client:
        return await client.request(method, path, content=body, headers=dict(headers))


async def get(app: Any, path: str, headers: Mapping[str, str] | None = None) -> httpx2.Response:
    return await post(app, path, body=b"", headers=headers or {}, method="GET")
