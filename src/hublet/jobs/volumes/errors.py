"""What can be wrong with a volume before its attempt begins, and when it has ended."""

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


class GivenUp(Exception):
    """Nobody waits any more for what a thread was about to write."""
