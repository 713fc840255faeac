"""What can be wrong with an app, or with what somebody does to it."""

from hublet.core.errors import Conflict, InvalidRequest, NotAllowed, NotFound


class UnknownApp(NotFound):
    """No app has this client id. `reason` tells a developer more than a caller may need to know."""

    def __init__(self, reason: str = "No app has this client id.") -> None:
        super().__init__("No app has this client id.")
        self.reason = reason


class AppNotFound(NotFound):
    def __init__(self, client_id: str) -> None:
        super().__init__(f"There is no app {client_id}, or it is not yours to manage.")


class TooManyApps(Conflict):
    def __init__(self, limit: int) -> None:
        super().__init__(
            f"The owner has {limit} apps, which is the most there may be: delete one first."
        )


class InvalidApp(InvalidRequest):
    """The message names the field and the rule."""


class NotBound(InvalidRequest):
    def __init__(self, client_id: str) -> None:
        super().__init__(
            f"The app {client_id} is bound to no organization, which the token exchange needs."
        )


class PartOfTheHub(NotAllowed):
    def __init__(self, client_id: str) -> None:
        super().__init__(f"The app {client_id} is part of the hub and stays as it is.")


class SecretNotFound(NotFound):
    def __init__(self, secret_id: str) -> None:
        super().__init__(f"The app has no secret {secret_id}.")


class TooManySecrets(Conflict):
    def __init__(self, limit: int) -> None:
        super().__init__(
            f"The app has {limit} secrets that still work: delete one, or let one expire first."
        )
