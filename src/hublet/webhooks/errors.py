"""Errors of webhooks.

InvalidRequest (400)
    OneTargetNeeded, SecretsNotAllowed, SecretsTooLarge, WatchedIsPrivate, InvalidPeriod
NotFound (404)
    WebhookNotFound, WatchedNotFound, DeliveryNotFound
Conflict (409)
    TooManyWebhooks
    WebhookNotEnabled, DeliveryNotVisible, DeliveryInProgress: it is not sent again
"""

from hublet.core.errors import Conflict, InvalidRequest, NotFound
from hublet.webhooks.records import WebhookState


class WebhookNotFound(NotFound):
    def __init__(self, webhook_id: str) -> None:
        super().__init__(f"There is no webhook {webhook_id}.")


class OneTargetNeeded(InvalidRequest):
    def __init__(self) -> None:
        super().__init__("A webhook needs exactly one of url, job and jobSourceId.")


class SecretsNotAllowed(InvalidRequest):
    def __init__(self) -> None:
        super().__init__(
            "secrets: they are for a webhook with a jobSourceId; those of a job belong into job.secrets."
        )


class SecretsTooLarge(InvalidRequest):
    def __init__(self, limit: int) -> None:
        super().__init__(f"secrets: all of them together must have at most {limit} bytes.")


class WatchedNotFound(NotFound):
    """It does not exist, or the caller may not know that it does."""

    def __init__(self, place: int, type: str, name: str) -> None:  # noqa: A002 - the interface's word
        super().__init__(f"watched[{place}]: there is no {type} {name}, or you cannot see it.")


class WatchedIsPrivate(InvalidRequest):
    def __init__(self, place: int, type: str, name: str, *, organization: str) -> None:  # noqa: A002 - as above
        super().__init__(
            f"watched[{place}]: a webhook of {organization} cannot watch the {type} {name}, "
            "which is private to somebody else."
        )


class TooManyWebhooks(Conflict):
    def __init__(self, owner: str, limit: int) -> None:
        super().__init__(
            f"{owner} has {limit} webhooks, which is the most there may be: delete one first."
        )


class DeliveryNotFound(NotFound):
    def __init__(self, delivery_id: str) -> None:
        super().__init__(f"The webhook has no delivery {delivery_id}.")


class InvalidPeriod(InvalidRequest):
    def __init__(self) -> None:
        super().__init__("until must be later than since.")


class WebhookNotEnabled(Conflict):
    def __init__(self, state: WebhookState) -> None:
        why = "suspended after failures" if state is WebhookState.suspended else "disabled"
        super().__init__(f"The webhook is {why}, so nothing is sent again; enable it first.")


class DeliveryNotVisible(Conflict):
    def __init__(self) -> None:
        super().__init__(
            "What happened while the webhook's owner could not see the repository is never sent."
        )


class DeliveryInProgress(Conflict):
    def __init__(self, *, being_sent: bool) -> None:
        what = "being sent right now" if being_sent else "still to be tried again"
        super().__init__(f"The delivery is {what}; only one that has ended can be replayed.")
