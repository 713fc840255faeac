"""Sender: makes one attempt, a call to a URL or the start of a job."""

import asyncio
from collections.abc import Mapping

from hublet.core import clock
from hublet.core.database import Database
from hublet.core.errors import HubError
from hublet.core.logs import get_logger
from hublet.core.outgoing.client import OutgoingClient
from hublet.core.outgoing.records import FailureReason, OutgoingRequest, OutgoingResponse
from hublet.core.tracing import span
from hublet.jobs import webhook_jobs
from hublet.jobs.webhook_jobs import WebhookStart
from hublet.webhooks.delivery.backoff import SECOND, read_retry_after
from hublet.webhooks.delivery.failure_messages import explain_failure, storable
from hublet.webhooks.delivery.records import DeliveryTarget
from hublet.webhooks.delivery.signing import headers_of
from hublet.webhooks.records import Attempt, ClaimedDelivery, Outcome, WebhookSecrets
from hublet.webhooks.triggers.payload import render_body

log = get_logger("webhooks")

_GONE = 410


class Sender:
    """Makes attempts, without an open transaction; every failure is an outcome."""

    def __init__(self, database: Database) -> None:
        settings = database.hub.settings
        self._database = database
        self._deadline = settings.webhooks.deadline_seconds
        self._client = OutgoingClient(settings)

    async def close(self) -> None:
        await self._client.close()

    async def attempt(self, delivery: ClaimedDelivery, target: DeliveryTarget) -> Outcome:
        if target.secrets is None:
            return _failure(
                delivery, target, started_at=clock.micros(), reason="secret-unreadable",
                detail="This hub cannot open the webhook's secret any more: please set it again.",
            )  # fmt: skip
        body = render_body(delivery.event.payload, target.webhook_id)
        number = delivery.attempts + 1
        with span(
            "delivery",
            parent=delivery.event.trace,
            delivery=delivery.id,
            webhook=target.webhook_id,
            attempt=number,
        ):
            if target.url is None:
                return await self._start_job(delivery, target, target.secrets, body)
            return await self._call(delivery, target, target.url, body)

    async def _call(
        self, delivery: ClaimedDelivery, target: DeliveryTarget, url: str, body: bytes
    ) -> Outcome:
        started_at = clock.micros()
        response = await self._client.send(
            OutgoingRequest(
                method="POST",
                url=url,
                headers=_headers(delivery, target, body, started_at),
                body=body,
                deadline_seconds=self._deadline,
            )
        )
        return _outcome_of(delivery, target, response, started_at)

    async def _start_job(
        self,
        delivery: ClaimedDelivery,
        target: DeliveryTarget,
        secrets: WebhookSecrets,
        body: bytes,
    ) -> Outcome:
        started_at, begun = clock.micros(), clock.monotonic()
        try:
            async with asyncio.timeout(self._deadline):
                job_id = await webhook_jobs.start(
                    self._database, _job_start(delivery, target, secrets, body.decode())
                )
        except TimeoutError:
            reason, detail = FailureReason.timeout.value, "The job could not be started in time."
        except HubError as error:
            reason, detail = "job-refused", error.message
        except Exception as error:
            log.exception("a job could not be started", webhook=target.webhook_id, exc_info=error)
            reason, detail = "job-failed", "The job could not be started; the hub tries again."
        else:
            took = round((clock.monotonic() - begun) * 1e6)
            attempt = Attempt(
                number=delivery.attempts + 1,
                started_at=started_at,
                job_id=job_id,
                total_micros=took,
            )
            return Outcome(delivery=delivery, attempt=attempt, succeeded=True)
        return _failure(delivery, target, started_at=started_at, reason=reason, detail=detail)


def _headers(
    delivery: ClaimedDelivery, target: DeliveryTarget, body: bytes, now: int
) -> dict[str, str]:
    keys = [] if target.key is None else [target.key]
    if target.old_key is not None and now < target.old_key_until:
        keys.append(target.old_key)
    return headers_of(
        body,
        delivery_id=delivery.id,
        timestamp=now // SECOND,
        attempt=delivery.attempts + 1,
        secret=None if target.secrets is None else target.secrets.current,
        keys=keys,
    )


def _job_start(
    delivery: ClaimedDelivery, target: DeliveryTarget, secrets: WebhookSecrets, body: str
) -> WebhookStart:
    environment = {
        "WEBHOOK_PAYLOAD": body,
        "WEBHOOK_REPO_ID": delivery.event.repo.name,
        "WEBHOOK_REPO_TYPE": delivery.event.repo.type,
        "WEBHOOK_ID": delivery.id,
    }
    if secrets.current is not None:
        environment["WEBHOOK_SECRET"] = secrets.current
    return WebhookStart(
        webhook_id=target.webhook_id,
        owner_id=target.owner_id,
        delegation=target.delegation,
        key=delivery.id,
        job=target.job,
        source_id=target.job_source_id,
        environment=environment,
        secrets=secrets.for_job,
    )


def _failure(
    delivery: ClaimedDelivery, target: DeliveryTarget, *, started_at: int, reason: str, detail: str
) -> Outcome:
    attempt = Attempt(
        number=delivery.attempts + 1,
        started_at=started_at,
        target=target.display_url,
        reason=reason,
        detail=storable(detail),
        total_micros=max(0, clock.micros() - started_at),
    )
    return Outcome(delivery=delivery, attempt=attempt)


def internal_error(delivery: ClaimedDelivery, target: DeliveryTarget) -> Outcome:
    """Return the outcome of an attempt that failed inside the hub; it is tried again."""
    return _failure(
        delivery, target, started_at=clock.micros(), reason="internal-error",
        detail="The hub itself failed; it tries again.",
    )  # fmt: skip


def _outcome_of(
    delivery: ClaimedDelivery, target: DeliveryTarget, response: OutgoingResponse, started_at: int
) -> Outcome:
    succeeded, is_blocked = response.succeeded, response.reason is FailureReason.blocked_target
    timings = response.timings
    attempt = Attempt(
        number=delivery.attempts + 1,
        started_at=started_at,
        target=target.display_url,
        status=response.status,
        reason=response.reason,
        detail=None if succeeded else explain_failure(response, repo_type=delivery.event.repo.type),
        dns_micros=timings.dns,
        connect_micros=timings.connect,
        tls_micros=timings.tls,
        first_byte_micros=timings.first_byte,
        total_micros=timings.total,
        # Nobody may read through this log what a blocked address answers.
        response=b"" if is_blocked else response.body,
        response_headers={} if is_blocked else _loggable(response.headers),
    )
    if succeeded:
        return Outcome(delivery=delivery, attempt=attempt, succeeded=True)
    return Outcome(
        delivery=delivery,
        attempt=attempt,
        gone=response.status == _GONE,
        retry_after=read_retry_after(response.headers.get("retry-after"), now=clock.now()),
    )


def _loggable(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers for the log: where a redirect leads may hold secrets, its host is in `detail`."""
    return {name: value for name, value in headers.items() if name != "location"}
