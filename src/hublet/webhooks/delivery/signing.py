"""Signing of deliveries: Standard Webhooks signatures, and the secret itself."""

import base64
import binascii
import hmac
from collections.abc import Sequence

_PREFIX = "whsec_"


def key_of(secret: str) -> bytes:
    """Return the key that signs: decoded from base64 after `whsec_`, else the secret itself."""
    if secret.startswith(_PREFIX):
        encoded = secret.removeprefix(_PREFIX)
        try:
            # The padding may be missing.
            padded = encoded + "=" * (-len(encoded) % 4)
            return base64.b64decode(padded, validate=True) or secret.encode()
        except binascii.Error:
            return secret.encode()
    return secret.encode()


def sign(key: bytes, *, delivery_id: str, timestamp: int, body: bytes) -> str:
    signed = f"{delivery_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()


def headers_of(
    body: bytes,
    *,
    delivery_id: str,
    timestamp: int,
    attempt: int,
    secret: str | None,
    keys: Sequence[bytes],
) -> dict[str, str]:
    """Return the headers of one attempt; `timestamp` is its own, in seconds.

    There is a signature for each key, the current one first, so that a receiver may change its
    secret before or after we do.
    """
    headers = {
        "content-type": "application/json",
        "webhook-id": delivery_id,
        "webhook-timestamp": str(timestamp),
        "X-Webhook-Attempt": str(attempt),
    }
    if keys:
        headers["webhook-signature"] = " ".join(
            sign(key, delivery_id=delivery_id, timestamp=timestamp, body=body) for key in keys
        )
    if secret is not None:
        headers["X-Webhook-Secret"] = secret
    return headers
