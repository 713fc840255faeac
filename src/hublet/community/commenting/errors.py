"""What goes wrong when somebody comments."""

from hublet.core.errors import Conflict, NotAllowed


class CannotAnswerHidden(Conflict):
    def __init__(self) -> None:
        super().__init__("This comment is hidden: it cannot be answered any more.")


class NotYours(NotAllowed):
    """Somebody wants to change what is neither theirs nor their organization's."""

    def __init__(self, action: str, what: str) -> None:
        super().__init__(f"You cannot {action} this {what}: it is somebody else's.")
