"""Where a webhook leads: to a URL, to a job of its own, or to a copy of another job."""

from dataclasses import field
from typing import Any

from pydantic import MISSING

from hublet.core.config import Settings
from hublet.core.light_dataclasses import dataclass
from hublet.core.outgoing.networks import Policy
from hublet.core.outgoing.targets import check_target
from hublet.webhooks.errors import OneTargetNeeded
from hublet.webhooks.records import Webhook
from hublet.webhooks.schemas import CreateWebhook, UpdateWebhook


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Exactly one of the first three is set."""

    url: str | None = None
    # In wire names, without its secrets.
    job: dict[str, Any] | None = None
    job_source_id: str | None = None
    # Those that the request lists in the job itself.
    job_secrets: dict[str, str] = field(default_factory=dict, repr=False)

    def is_of_a_kind_with(self, webhook: Webhook) -> bool:
        return (self.url is None, self.job is None) == (webhook.url is None, webhook.job is None)

    def is_that_of(self, webhook: Webhook) -> bool:
        return (self.url, self.job, self.job_source_id) == (
            webhook.url,
            webhook.job,
            webhook.job_source_id,
        )


def find_target(request: CreateWebhook | UpdateWebhook, settings: Settings) -> Target | None:
    """Return the target that a request names, if it names one.

    A URL is checked as far as that is possible without looking up its name; whether there is a
    job of this id the database tells.
    """
    given = [
        each for each in (request.url, request.job, request.jobSourceId) if each is not MISSING
    ]
    if len(given) > 1:
        raise OneTargetNeeded
    if request.url is not MISSING:
        check_target(request.url, Policy.of(settings))
        return Target(url=request.url)
    if request.job is not MISSING:
        secrets = request.job.secrets
        return Target(
            job=request.job.model_dump(mode="json", exclude={"secrets"}),
            job_secrets={} if secrets is MISSING else secrets,
        )
    if request.jobSourceId is not MISSING:
        return Target(job_source_id=request.jobSourceId)
    return None
