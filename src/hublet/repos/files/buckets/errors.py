"""What goes wrong before a bucket is found."""

from hublet.core.errors import NotFound


class OwnerNotFound(NotFound):
    def __init__(self, name: str) -> None:
        super().__init__(f"There is no user or organization {name}.")
