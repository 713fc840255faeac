"""What can be wrong with a service account as a caller describes it."""

from hublet.core.errors import NotFound


class ServiceAccountNotFound(NotFound):
    def __init__(self, account_id: str) -> None:
        super().__init__(f"There is no service account {account_id}.")
