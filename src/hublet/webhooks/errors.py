"""What can be wrong with a webhook as a caller describes it."""

from hublet.core.errors import Conflict, InvalidRequest, NotFound


class WebhookNotFound(NotFound):
    def __init__(self, webhook_id: str) -> None:
        super().__init__(f"There is no webhook {webhook_id}.")


class OneTargetNeeded(InvalidRequest):
    def __init__(self) -> None:
        super().__init__("A webhook needs exactly one of url, job and jobSourceId.")


class SecretsNotForThis(InvalidRequest):
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


class SourceJobNotFound(NotFound):
    def __init__(self, job_id: str, *, owner: str) -> None:
        super().__init__(f"jobSourceId: {owner} has no job {job_id}.")
