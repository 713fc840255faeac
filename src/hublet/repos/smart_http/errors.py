"""What goes wrong between git and the hub."""

from hublet.core.errors import InvalidRequest, TooLarge, Unavailable


class MalformedRequest(InvalidRequest):
    def __init__(self, rule: str) -> None:
        super().__init__(f"This is no request of git's: {rule}.")


class RequestTooLarge(TooLarge):
    def __init__(self, largest: int) -> None:
        super().__init__(f"A request of git's must have at most {largest} bytes.")


class GitBusy(Unavailable):
    def __init__(self) -> None:
        super().__init__("Too many git requests are running; try again shortly.")


class GitStumbled(Unavailable):
    def __init__(self) -> None:
        super().__init__("Git could not read this repository; try again, or tell the operator.")


class PushRefused(Exception):
    """Nothing of a push is taken; the text says why, for the person who pushed."""


class BadPack(PushRefused):
    """Git could not take the objects of a push apart."""
