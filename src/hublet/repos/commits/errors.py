"""What goes wrong with a commit."""

from hublet.core.errors import Conflict, InvalidRequest, TooLarge, Unavailable


class InvalidLine(InvalidRequest):
    """A line of the body breaks a rule."""

    def __init__(self, number: int, rule: str) -> None:
        super().__init__(f"Line {number}: {rule}")


class InvalidCommit(InvalidRequest):
    """The body as a whole breaks a rule."""


class CommitTooLarge(TooLarge):
    pass


class ParentMoved(Conflict):
    """The commit is meant for another state of the branch."""

    def __init__(self, revision: str, *, parent: str, head: str) -> None:
        super().__init__(
            f"parentCommit is {parent}, but {revision} is at {head} by now; "
            "read it again and repeat the change."
        )


class StorageUnavailable(Unavailable):
    """The disk is full, or it fails."""

    def __init__(self) -> None:
        super().__init__("The hub cannot store content right now; please try again shortly.")
