"""Service of webhooks: create, update, enable, disable and delete them, and open their secrets."""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import MISSING

from hublet.accounts.organizations import audit_store as audit
from hublet.core.clock import now
from hublet.core.database import Connection, Reader
from hublet.core.ids import new_object_id, random_bytes
from hublet.jobs import webhook_jobs
from hublet.repos.records import Repo
from hublet.tokens.delegations import Delegation
from hublet.tokens.errors import ScopeNeeded
from hublet.tokens.records import Scope
from hublet.webhooks import store
from hublet.webhooks.errors import (
    OneTargetNeeded,
    SecretsNotAllowed,
    SecretsTooLarge,
    TooManyWebhooks,
    WebhookNotFound,
)
from hublet.webhooks.records import (
    DELIVERIES_CHANNEL,
    WebhookAccess,
    WebhookRecord,
    WebhookSecrets,
    WebhookState,
)
from hublet.webhooks.resolution import RequestedTarget, find_target, find_watched
from hublet.webhooks.schemas import CreateWebhook, UpdateWebhook
from hublet.webhooks.sealed_secrets import rotate, seal, unseal

# Names and values of a job's secrets together, in bytes.
MAX_SECRETS = 262_144
# Of a secret that the hub makes.
_SECRET_BYTES = 24


async def list_of(conn: Reader, access: WebhookAccess) -> list[WebhookRecord]:
    return await store.list_of(conn, owner_id=access.owner.id)


async def list_watching(conn: Reader, access: WebhookAccess, repo: Repo) -> list[WebhookRecord]:
    """Return the owner's webhooks that watch a repository, by its own name or by its owner's."""
    targets = {repo.id, repo.owner_id}
    return [
        webhook
        for webhook in await list_of(conn, access)
        if any(each.target in targets for each in webhook.watched)
    ]


async def get(conn: Reader, access: WebhookAccess, webhook_id: str) -> WebhookRecord:
    webhook = await store.find(conn, webhook_id, owner_id=access.owner.id)
    if webhook is None:
        raise WebhookNotFound(webhook_id)
    return webhook


async def get_to_send(conn: Reader, access: WebhookAccess, webhook_id: str) -> WebhookRecord:
    """Return a webhook that the caller may let act by hand: to start a job needs its scope."""
    webhook = await get(conn, access, webhook_id)
    if webhook.url is None and not access.caller.may(Scope.jobs, on=access.owner.id):
        raise ScopeNeeded([Scope.jobs])
    return webhook


async def secrets_of(conn: Reader, webhook_id: str) -> WebhookSecrets:
    """Open the sealed secrets of a webhook, for its deliveries."""
    sealed = await store.find_sealed(conn, webhook_id)
    if sealed is None:
        raise WebhookNotFound(webhook_id)
    return unseal(conn.hub.keys, webhook_id, sealed)


async def create(conn: Connection, access: WebhookAccess, request: CreateWebhook) -> WebhookRecord:
    target = find_target(request, conn.hub.settings)
    if target is None:
        raise OneTargetNeeded
    await _check_limit(conn, access)
    webhook = WebhookRecord(
        id=new_object_id(),
        owner_id=access.owner.id,
        creator_id=access.caller.user_id,
        watched=await find_watched(conn, access, request.watched),
        domains=tuple(request.domains),
        created_at=now(),
    )
    webhook, secrets = _apply_request(webhook, WebhookSecrets(), request, target)
    webhook = await _with_rights(conn, access, webhook)
    await store.add(conn, webhook, seal(conn.hub.keys, webhook.id, secrets))
    await _audit(conn, access, "webhook.create", webhook)
    return await get(conn, access, webhook.id)


async def _with_rights(
    conn: Reader, access: WebhookAccess, webhook: WebhookRecord
) -> WebhookRecord:
    """Return a webhook with what the caller can give it: every change counts, also of its URL."""
    return replace(
        webhook,
        delegation=await _delegate(conn, access, webhook),
        private_owners=access.caller.lasting_owners_within(Scope.read_repos),
    )


async def _delegate(
    conn: Reader, access: WebhookAccess, webhook: WebhookRecord
) -> Delegation | None:
    """Return what the caller grants to a webhook that starts a job, which they must be able to run.

    Every change counts: with another thing to watch, the same job gets another payload.
    """
    if webhook.url is not None:
        return None
    return await webhook_jobs.delegate(
        conn, access.caller, access.owner, job=webhook.job, source_id=webhook.job_source_id
    )


async def _check_limit(conn: Connection, access: WebhookAccess) -> None:
    await conn.lock(f"webhooks of {access.owner.id}")
    limit = conn.hub.settings.webhooks.per_owner
    if await store.count_of(conn, owner_id=access.owner.id) >= limit:
        raise TooManyWebhooks(access.owner.name, limit)


async def update(
    conn: Connection, access: WebhookAccess, webhook_id: str, request: UpdateWebhook
) -> WebhookRecord:
    """Change what the request names; another kind of target takes the place of the old one.

    A job is from now on started in the name of the caller.
    """
    target = find_target(request, conn.hub.settings)
    before = await _lock(conn, access, webhook_id)
    webhook = before
    if request.watched:
        watched = await find_watched(conn, access, request.watched, before=before.watched)
        webhook = replace(webhook, watched=watched)
    if request.domains is not MISSING:
        webhook = replace(webhook, domains=tuple(request.domains))
    webhook, secrets = _apply_request(webhook, await secrets_of(conn, webhook_id), request, target)
    webhook = await _with_rights(conn, access, webhook)
    await store.update(conn, webhook, seal(conn.hub.keys, webhook_id, secrets))
    if target is not None and not target.equals_target_of(before):
        await store.reset_health(conn, webhook_id)
    conn.wake(DELIVERIES_CHANNEL)
    fields = sorted(request.model_fields_set - (set() if request.watched else {"watched"}))
    await _audit(conn, access, "webhook.update", webhook, details={"fields": fields})
    return await get(conn, access, webhook_id)


def _apply_request(
    webhook: WebhookRecord,
    secrets: WebhookSecrets,
    request: CreateWebhook | UpdateWebhook,
    target: RequestedTarget | None,
) -> tuple[WebhookRecord, WebhookSecrets]:
    """Return the webhook and its secrets with the target and the secrets of a request."""
    if target is not None:
        if not target.has_same_kind_as(webhook):
            secrets = replace(secrets, for_job={})
        webhook = replace(
            webhook, url=target.url, job=target.job, job_source_id=target.job_source_id
        )
    for_job = _merge_job_secrets(webhook, secrets.for_job, request, target)
    secrets = replace(secrets, for_job=for_job)
    if request.secret is not MISSING:
        current, old, until = rotate(secrets, request.secret)
        secrets = replace(secrets, current=current, old=old, old_until=until)
    return replace(webhook, secret_names=tuple(for_job)), secrets


def _merge_job_secrets(
    webhook: WebhookRecord,
    stored: Mapping[str, str],
    request: CreateWebhook | UpdateWebhook,
    target: RequestedTarget | None,
) -> dict[str, str]:
    """Interface 4.3: listed keys are replaced, an empty value removes one, the others stay."""
    listed = {} if target is None else target.job_secrets
    if request.secrets is not MISSING:
        if webhook.job_source_id is None:
            raise SecretsNotAllowed
        listed = request.secrets
    merged = {name: value for name, value in {**stored, **listed}.items() if value}
    if sum(len(name) + len(value.encode()) for name, value in merged.items()) > MAX_SECRETS:
        raise SecretsTooLarge(MAX_SECRETS)
    return merged


async def rotate_secret(conn: Connection, access: WebhookAccess, webhook_id: str) -> str:
    """Give a webhook a secret that nobody chose, and return it: it is shown this once.

    It has the form of Standard Webhooks, whose libraries take no other.
    """
    secret = f"whsec_{b64encode(random_bytes(_SECRET_BYTES)).decode()}"
    await update(conn, access, webhook_id, UpdateWebhook(secret=secret))
    return secret


async def enable(conn: Connection, access: WebhookAccess, webhook_id: str) -> WebhookRecord:
    """Enable a webhook again, and reset the health of its target."""
    before = await _lock(conn, access, webhook_id)
    await store.reset_health(conn, webhook_id)
    return await _set_state(conn, access, before, WebhookState.enabled, "webhook.enable")


async def disable(conn: Connection, access: WebhookAccess, webhook_id: str) -> WebhookRecord:
    """Disable a webhook; deliveries that are not in progress end as unsent."""
    before = await _lock(conn, access, webhook_id)
    disabled = await _set_state(conn, access, before, WebhookState.disabled, "webhook.disable")
    await store.withdraw_deliveries(conn, webhook_id)
    return disabled


async def _set_state(
    conn: Connection, access: WebhookAccess, before: WebhookRecord, state: WebhookState, action: str
) -> WebhookRecord:
    conn.wake(DELIVERIES_CHANNEL)
    if before.state is not state:
        await store.set_state(conn, before.id, state)
        await _audit(conn, access, action, before)
    return replace(before, state=state)


async def delete(conn: Connection, access: WebhookAccess, webhook_id: str) -> None:
    """Delete a webhook with all its deliveries, past and pending."""
    webhook = await _lock(conn, access, webhook_id)
    await store.remove(conn, webhook_id)
    conn.wake(DELIVERIES_CHANNEL)
    await _audit(conn, access, "webhook.delete", webhook)


async def _lock(conn: Connection, access: WebhookAccess, webhook_id: str) -> WebhookRecord:
    """Lock a webhook until the transaction ends, because its secrets are read and then written."""
    await conn.lock(f"webhook {webhook_id}")
    return await get(conn, access, webhook_id)


async def _audit(
    conn: Connection,
    access: WebhookAccess,
    action: str,
    webhook: WebhookRecord,
    *,
    details: Mapping[str, Any] | None = None,
) -> None:
    owner = access.owner
    if owner.is_organization:
        await audit.record(conn, owner.id, access.actor, action, target=webhook.id, details=details)
