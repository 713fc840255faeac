"""What goes wrong with requests to read a gated repository."""

from hublet.core.errors import InvalidRequest, NotFound


class NotGated(InvalidRequest):
    def __init__(self, full_name: str) -> None:
        super().__init__(f"{full_name} is not gated.")


class HasAccess(InvalidRequest):
    def __init__(self, user: str, full_name: str) -> None:
        super().__init__(f"{user} has access to {full_name} already.")


class InvalidDecision(InvalidRequest):
    pass


class AccessRequestNotFound(NotFound):
    def __init__(self, what: str, full_name: str) -> None:
        super().__init__(f"There is no {what} for {full_name}.")
