"""Errors of the runtime: what is wrong with a volume before or after an attempt."""

from hublet.core.errors import InvalidRequest, NotFound


class BucketGone(NotFound):
    """It was deleted or renamed, or the creator may not see it any more."""

    def __init__(self) -> None:
        super().__init__("The bucket that was mounted is not there any more.")


class NestedTooDeeply(InvalidRequest):
    def __init__(self, limit: int) -> None:
        super().__init__(
            f"A volume cannot be mounted: its folders are nested more than {limit} deep."
        )


class CommitTooLarge(InvalidRequest):
    def __init__(self, commit: str, rule: str) -> None:
        super().__init__(f"The commit {commit} is too large to be mounted: {rule}.")


class CheckoutAbandoned(Exception):
    """Nobody waits any more for what a thread was about to write."""
