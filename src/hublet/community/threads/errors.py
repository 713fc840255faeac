"""What goes wrong in threads."""

from hublet.core.errors import Conflict, InvalidRequest, NotAllowed, NotFound


class ThreadNotFound(NotFound):
    def __init__(self, what: str) -> None:
        super().__init__(f"There is no {what}, or you cannot see it.")


class CommentNotFound(NotFound):
    def __init__(self, comment_id: str) -> None:
        super().__init__(f"There is no comment {comment_id} in this thread.")


class NotYourComment(NotAllowed):
    def __init__(self, action: str) -> None:
        super().__init__(f"You cannot {action} this comment: it is somebody else's.")


class CommentHidden(Conflict):
    def __init__(self) -> None:
        super().__init__("This comment is hidden: it cannot be edited any more.")


class NoReplyThere(InvalidRequest):
    def __init__(self) -> None:
        super().__init__("replyTo names no comment of this thread that can be answered.")
