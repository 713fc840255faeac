"""What can be wrong with a request for a message of the hub."""

from hublet.core.errors import NotFound


class MessageNotFound(NotFound):
    def __init__(self, message_id: str) -> None:
        super().__init__(f"There is no message {message_id} for you.")
