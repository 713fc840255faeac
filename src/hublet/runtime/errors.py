"""Errors of the runtime.

HubError
├── NotFound
│   └── BucketGone          a mounted bucket was deleted or is hidden from the creator
└── InvalidRequest
    ├── NestedTooDeeply     a volume has too many levels of folders
    └── CommitTooLarge      a commit is too large to be mounted
Exception
├── CannotRun               the attempt can never start as it was ordered
│   ├── ImageAbsent         the registry has no such image
│   ├── ImageDenied         the registry does not give the image to this login, or to nobody
│   └── RegistryUnavailable the registry does not answer, or not as registries do
├── CannotRunYet            the attempt cannot start now, but may later
├── CannotAttach            no process can be started in the attempt
├── PortClosed              nothing in the attempt listens on the port
├── NetworkFailed           the kernel refused a network for jobs
└── CheckoutAbandoned       nobody waits for the checkout any more
"""

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


class CannotRun(Exception):
    """The attempt can never begin as it was ordered; the text is for the job's message."""


class ImageAbsent(CannotRun):
    """The registry has no such image."""


class ImageDenied(CannotRun):
    """The registry does not give the image to this login, or to nobody."""


class RegistryUnavailable(CannotRun):
    """The registry does not answer, or not as registries do."""

    def __init__(
        self, sentence: str, *, is_passing: bool = True, retry_after: float | None = None
    ) -> None:
        super().__init__(sentence)
        # Whether it may be different in a moment.
        self.is_passing = is_passing
        self.retry_after = retry_after


class CannotRunYet(Exception):
    """The attempt cannot begin right now; the text is for the job's message."""


class CannotAttach(Exception):
    """No process can be started in the attempt; the text is for whoever requested it."""


class PortClosed(Exception):
    """Nothing in the attempt listens on the port."""


class NetworkFailed(Exception):
    """The kernel, or ip or nft, refused to make a network; the text says what."""


class CheckoutAbandoned(Exception):
    """Nobody waits any more for what a thread was about to write."""
