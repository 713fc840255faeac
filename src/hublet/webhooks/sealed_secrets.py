"""Sealed secrets of a webhook: encrypted in the database, opened only to be used."""

from datetime import datetime, timedelta

import msgspec

from hublet.core.clock import now
from hublet.core.dataclasses import dataclass
from hublet.core.sealing import KeyRing
from hublet.webhooks.records import WebhookSecrets

# After a change the old secret also signs, so that a receiver has time to learn the new one.
OVERLAP = timedelta(hours=24)


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedSecrets:
    secret: bytes | None = None
    old_secret: bytes | None = None
    old_until: datetime | None = None
    for_job: bytes | None = None


def rotate(secrets: WebhookSecrets, secret: str) -> tuple[str | None, str | None, datetime | None]:
    """Return the secret, the old one and its expiry after a change; an empty one removes both."""
    if not secret:
        return None, None, None
    if secret == secrets.current or secrets.current is None:
        return secret, secrets.old, secrets.old_until
    return secret, secrets.current, now() + OVERLAP


def seal(keys: KeyRing, webhook_id: str, secrets: WebhookSecrets) -> SealedSecrets:
    def sealed(plain: str | None) -> bytes | None:
        context = _secret_context(webhook_id)
        return None if plain is None else keys.seal(plain.encode(), context=context)

    for_job = msgspec.json.encode(secrets.for_job) if secrets.for_job else None
    context = _job_context(webhook_id)
    return SealedSecrets(
        secret=sealed(secrets.current),
        old_secret=sealed(secrets.old),
        old_until=secrets.old_until,
        for_job=None if for_job is None else keys.seal(for_job, context=context),
    )


def unseal(keys: KeyRing, webhook_id: str, sealed: SealedSecrets) -> WebhookSecrets:
    """Unseal the secrets; an old secret that has expired is left out."""

    def opened(value: bytes | None) -> str | None:
        context = _secret_context(webhook_id)
        return None if value is None else keys.open(value, context=context).decode()

    still = sealed.old_until is not None and sealed.old_until > now()
    for_job = sealed.for_job and keys.open(sealed.for_job, context=_job_context(webhook_id))
    return WebhookSecrets(
        current=opened(sealed.secret),
        old=opened(sealed.old_secret) if still else None,
        old_until=sealed.old_until if still else None,
        for_job=msgspec.json.decode(for_job, type=dict[str, str]) if for_job else {},
    )


def _secret_context(webhook_id: str) -> str:
    return f"webhooks.secret:{webhook_id}"


def _job_context(webhook_id: str) -> str:
    return f"webhooks.job-secrets:{webhook_id}"
