"""Verification of webhook signatures (Standard Webhooks) and of the plain secret."""

import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hublet.receiver.environment import now as current_time
from hublet.webhooks.delivery.signing import key_of, sign

SECRET_HEADER = "x-webhook-secret"  # noqa: S105 - a name, no secret.
SIGNATURE_HEADER = "webhook-signature"
TOLERANCE_SECONDS = 300.0
_SECONDS = re.compile(r"[0-9]{1,12}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    # 401 when a proof is missing, 403 when it is not good.
    status: int
    reason: str


# Client contract 2.3: these two to the letter.
_SECRET_MISSING = Refusal(status=401, reason="x-webhook-secret header not set.")
_SECRET_WRONG = Refusal(status=403, reason="Invalid webhook secret.")
_SIGNATURE_MISSING = Refusal(status=401, reason="webhook-signature header not set.")
_SIGNATURE_WRONG = Refusal(status=403, reason="Invalid webhook signature.")
_TIME_UNREADABLE = Refusal(
    status=403, reason="A webhook-signature needs webhook-id and webhook-timestamp, in seconds."
)
_TOO_OLD = Refusal(status=403, reason="The webhook-timestamp is too far from the time here.")


def verify(
    headers: Mapping[str, str],
    body: bytes,
    *,
    secrets: Sequence[str],
    require_signature: bool = False,
    tolerance_seconds: float | None = TOLERANCE_SECONDS,
    now: float | None = None,
) -> Refusal | None:
    """Return why a request is refused, or None when one of the secrets vouches for it.

    A good signature is enough, even beside a secret that is not ours: after a change the hub signs
    with the old secret as well, and sends only the new one. A signature that is there is always
    checked. Without secrets everything is let in. `tolerance_seconds=None` takes old requests too.
    """
    if isinstance(secrets, str):
        raise TypeError("secrets is a list of secrets, also when there is only one.")
    return find_refusal(
        {name.lower(): value for name, value in headers.items()},
        body,
        secrets=secrets,
        require_signature=require_signature,
        tolerance_seconds=tolerance_seconds,
        now=now,
    )


def find_refusal(
    headers: Mapping[str, str],
    body: bytes,
    *,
    secrets: Sequence[str],
    require_signature: bool,
    tolerance_seconds: float | None,
    now: float | None = None,
) -> Refusal | None:
    """Do what `verify` does, with headers whose names are in lower case."""
    if SIGNATURE_HEADER not in headers and require_signature:
        return _SIGNATURE_MISSING
    if not secrets:
        return None
    refusal = _check_secret(headers.get(SECRET_HEADER), secrets)
    if SIGNATURE_HEADER not in headers:
        return refusal
    forged = _check_signature(
        headers,
        body,
        secrets=secrets,
        now=current_time() if now is None else now,
        tolerance=tolerance_seconds,
    )
    return refusal if forged and refusal is _SECRET_WRONG else forged


def _check_secret(sent: str | None, secrets: Sequence[str]) -> Refusal | None:
    if sent is None:
        return _SECRET_MISSING
    # Every secret is compared, so that the time does not tell which one is nearest.
    matches = [hmac.compare_digest(_header_bytes(sent), secret.encode()) for secret in secrets]
    return None if any(matches) else _SECRET_WRONG


def _check_signature(
    headers: Mapping[str, str],
    body: bytes,
    *,
    secrets: Sequence[str],
    now: float,
    tolerance: float | None,
) -> Refusal | None:
    delivery_id, sent_at = headers.get("webhook-id"), headers.get("webhook-timestamp", "")
    if not delivery_id or not _SECONDS.fullmatch(sent_at):
        return _TIME_UNREADABLE
    timestamp = int(sent_at)
    expected = [
        sign(key_of(secret), delivery_id=delivery_id, timestamp=timestamp, body=body).encode()
        for secret in secrets
    ]
    sent = _header_bytes(headers[SIGNATURE_HEADER]).split()
    matches = [hmac.compare_digest(ours, each) for ours in expected for each in sent]
    if not any(matches):
        return _SIGNATURE_WRONG
    is_old = tolerance is not None and abs(now - timestamp) > tolerance
    return _TOO_OLD if is_old else None


def _header_bytes(text: str) -> bytes:
    # Servers decode the bytes of a header as latin-1; a text from elsewhere may hold more.
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode()
