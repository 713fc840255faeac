"""What goes wrong with discussions and pull requests."""

from collections.abc import Sequence

from hublet.core.errors import Conflict, NotAllowed, NotFound

_MOST_NAMES = 10


class DiscussionNotFound(NotFound):
    def __init__(self, full_name: str, number: int) -> None:
        super().__init__(f"There is no discussion {number} in {full_name}.")


class DiscussionsDisabled(NotAllowed):
    def __init__(self, full_name: str) -> None:
        super().__init__(f"Discussions are disabled in {full_name}.")


class NotYourDiscussion(NotAllowed):
    def __init__(self, action: str) -> None:
        super().__init__(
            f"You cannot {action}: only its author and those who may write to the repository can."
        )


class NoPullRequest(Conflict):
    def __init__(self, number: int) -> None:
        super().__init__(f"Discussion {number} is no pull request.")


class StatusStands(Conflict):
    """The status cannot change to what is asked for."""

    def __init__(self, noun: str, status: str) -> None:
        super().__init__(f"This {noun} is {status} already.")


class TitleStands(Conflict):
    def __init__(self, noun: str) -> None:
        super().__init__(f"This {noun} has that title already.")


class NotClosed(Conflict):
    def __init__(self) -> None:
        super().__init__("Close this pull request before its ref is deleted.")


class RefGone(Conflict):
    def __init__(self) -> None:
        super().__init__("The ref of this pull request was deleted: its commits cannot be reached.")


class MergeConflicts(Conflict):
    """The same places of the same files changed on both sides."""

    def __init__(self, paths: Sequence[str]) -> None:
        named = ", ".join(paths[:_MOST_NAMES])
        more = f" and {len(paths) - _MOST_NAMES} more" if len(paths) > _MOST_NAMES else ""
        super().__init__(f"This pull request conflicts with its base in {named}{more}.")
