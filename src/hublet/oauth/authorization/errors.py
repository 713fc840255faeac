"""What can be wrong with an authorization request.

AuthorizationRefused   told on a page of ours: nobody has proven yet where the answer may go
├── NotReadable
├── ClientIdNeeded
├── ClientIdUnknown
├── RedirectUriNeeded
└── RedirectUriUnknown
Returned               told to the app, at its redirect URI
"""

from hublet.core.errors import InvalidRequest
from hublet.oauth.authorization.targets import Target

_SHOWN = 500


class AuthorizationRefused(InvalidRequest):
    """`advice` tells who wrote the app what to change."""

    def __init__(self, message: str, *, advice: str = "") -> None:
        super().__init__(message)
        self.advice = advice


class NotReadable(AuthorizationRefused):
    def __init__(self, reason: str) -> None:
        super().__init__(f"The request of the app cannot be read: {reason}.")


class ClientIdNeeded(AuthorizationRefused):
    def __init__(self) -> None:
        super().__init__("client_id: exactly one is needed.")


class ClientIdUnknown(AuthorizationRefused):
    def __init__(self, reason: str) -> None:
        super().__init__(f"client_id: {reason}")


class RedirectUriNeeded(AuthorizationRefused):
    def __init__(self) -> None:
        super().__init__("redirect_uri: exactly one is needed.")


class RedirectUriUnknown(AuthorizationRefused):
    def __init__(self, requested: str, *, differences: list[str]) -> None:
        super().__init__(
            f"redirect_uri: {requested[:_SHOWN]} is not one that the app registered.",
            advice=" ".join(differences) or "The app has registered none.",
        )


class Returned(Exception):
    """An error of RFC 6749, 4.1.2.1 or of OpenID Connect; the description is plain ASCII."""

    def __init__(self, error: str, description: str, *, target: Target) -> None:
        super().__init__(description)
        self.error = error
        self.description = description
        self.target = target
