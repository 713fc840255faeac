"""What can be wrong with an access that somebody takes back."""

from hublet.core.errors import NotFound


class AccessNotFound(NotFound):
    def __init__(self, access_id: str) -> None:
        super().__init__(f"There is no access {access_id}, or it has ended.")
