"""What can be wrong with an attachment."""

from collections.abc import Iterable

from hublet.core.errors import InvalidRequest, NotFound


class AttachmentNotFound(NotFound):
    def __init__(self, name: str) -> None:
        super().__init__(f"There is no attachment {name}.")


class NotAnAttachment(InvalidRequest):
    def __init__(self, media_types: Iterable[str]) -> None:
        super().__init__(f"Content-Type must be one of {', '.join(media_types)}.")


class EmptyAttachment(InvalidRequest):
    def __init__(self) -> None:
        super().__init__("The body must be the content of a file; it is empty.")
