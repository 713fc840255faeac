"""Errors that a caller may see.

HubError
├── InvalidRequest        400
├── AuthenticationNeeded  401
├── NotAllowed            403
├── NotFound              404
├── Conflict              409
├── TooLarge              413
├── TooManyRequests       429
├── NotImplementedHere    501
└── Unavailable           503

Raise one from any floor; `hublet.core.http` alone turns it into a response.
"""

from collections.abc import Mapping
from typing import Any, ClassVar


class HubError(Exception):
    """Base of every error whose message is safe to show to the caller."""

    status: int = 500
    # Sent as X-Error-Code only where the public clients know the code.
    code: ClassVar[str | None] = None

    def __init__(
        self,
        message: str,
        *,
        headers: Mapping[str, str] | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.headers = dict(headers or {})
        # What the clients read from the body beside the sentence.
        self.extra = dict(extra or {})


class InvalidRequest(HubError):
    status = 400


class AuthenticationNeeded(HubError):
    status = 401

    def __init__(self, message: str) -> None:
        super().__init__(message, headers={"WWW-Authenticate": "Bearer"})


class NotAllowed(HubError):
    status = 403


class NotFound(HubError):
    status = 404


class Conflict(HubError):
    status = 409


class TooLarge(HubError):
    status = 413


class TooManyRequests(HubError):
    status = 429


class NotImplementedHere(HubError):
    status = 501


class Unavailable(HubError):
    """The database or another part cannot answer now; the same request may succeed later."""

    status = 503

    def __init__(self, message: str, *, retry_after_seconds: int = 1) -> None:
        super().__init__(message, headers={"Retry-After": str(retry_after_seconds)})
