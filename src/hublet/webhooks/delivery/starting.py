"""What starts the job of a delivery in this hub."""

from hublet.core.database import Database
from hublet.jobs import webhook_jobs
from hublet.jobs.webhook_jobs import WebhookStart
from hublet.webhooks.delivery.jobs import JobOrder


async def start_job(database: Database, order: JobOrder) -> str:
    return await webhook_jobs.start(
        database,
        WebhookStart(
            webhook_id=order.webhook_id,
            owner_id=order.owner_id,
            creator_id=order.creator_id,
            key=order.key,
            job=order.job,
            source_id=order.source_id,
            environment=order.environment,
            secrets=order.secrets,
        ),
    )
