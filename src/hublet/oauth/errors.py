"""Errors of OAuth.

OAuthError                     400, with an error code that clients know (RFC 6749, 5.2)
├── InvalidClient              401, with a challenge
├── UnsupportedEncoding        415
├── RegistrationClosed         403
└── TranslatedError            an error of the hub, with its own status, in this form

RedirectedError                sent to the app, at its redirect URI

AuthorizationRefused           400, shown on a page of the hub: nobody has proven yet where
│                              a response may go
├── UnreadableRequest
├── ClientIdNeeded
├── ClientIdUnknown
├── RedirectUriNeeded
└── RedirectUriUnknown

NotFound                       404
├── UnknownApp
├── AppNotFound
├── SecretNotFound
├── LogoNotFound
├── AccessNotFound
└── PublisherNotFound
InvalidRequest                 400
├── InvalidApp
├── AppNotBound
├── RedirectUriRefused
├── ApplicationFormRefused
├── InvalidLogo
├── InvalidPublisher
└── TicketInvalid
Conflict                       409
├── TooManyApps
├── TooManySecrets
├── TooManyPublishers
├── PublisherExists
└── DeviceAlreadyDecided
NotAllowed                     403
└── FirstPartyAppProtected
TooLarge                       413
└── LogoTooLarge
TooManyRequests                429
├── TooManyDevices
└── TooManyGuesses

InvalidMetadata                control flow: client metadata breaks a rule
DocumentRefused                control flow: a metadata document cannot be used
"""

from hublet.core.errors import (
    Conflict,
    HubError,
    InvalidRequest,
    NotAllowed,
    NotFound,
    TooLarge,
    TooManyRequests,
)
from hublet.oauth.records import RedirectTarget

# What an error of another feature is called here, by its status.
_CODES_BY_STATUS = {
    401: "invalid_client",
    # The public command line gives up at any other word, and slows down at this one.
    429: "slow_down",
    500: "server_error",
    503: "temporarily_unavailable",
}
_MAX_QUOTED_URI = 500


class OAuthError(HubError):
    """The description is plain ASCII without quotes (RFC 6749, 5.2) and repeats no value."""

    status = 400

    def __init__(self, error: str, description: str, *, interval: int | None = None) -> None:
        more = {} if interval is None else {"interval": interval}
        super().__init__(
            error,
            headers={"Cache-Control": "no-store", "Pragma": "no-cache"},
            extra={"error_description": description, **more},
        )
        self.error = error
        self.description = description


class InvalidClient(OAuthError):
    status = 401

    def __init__(self, description: str = "The client id or the client secret is wrong.") -> None:
        super().__init__("invalid_client", description)
        self.headers["WWW-Authenticate"] = 'Basic realm="hublet"'


class UnsupportedEncoding(OAuthError):
    status = 415

    def __init__(self) -> None:
        super().__init__("invalid_request", "Content-Encoding: the body must not be compressed.")


class RegistrationClosed(OAuthError):
    status = 403

    def __init__(self) -> None:
        super().__init__(
            "access_denied", "Apps cannot register by themselves at this hub: ask a user of it."
        )


class TranslatedError(OAuthError):
    def __init__(self, error: HubError) -> None:
        super().__init__(_CODES_BY_STATUS.get(error.status, "invalid_request"), error.message)
        # Each instance stands for another status, which is the class's own matter elsewhere.
        self.__dict__["status"] = error.status
        self.headers |= error.headers


def to_oauth_error(error: HubError) -> OAuthError:
    """Return any error in the form that OAuth clients read."""
    return error if isinstance(error, OAuthError) else TranslatedError(error)


def invalid_request(description: str) -> OAuthError:
    return OAuthError("invalid_request", description)


def invalid_grant(description: str) -> OAuthError:
    return OAuthError("invalid_grant", description)


def invalid_scope(description: str) -> OAuthError:
    return OAuthError("invalid_scope", description)


def invalid_target(description: str) -> OAuthError:
    return OAuthError("invalid_target", description)


def invalid_redirect_uri(description: str) -> OAuthError:
    return OAuthError("invalid_redirect_uri", description)


def invalid_client_metadata(description: str) -> OAuthError:
    return OAuthError("invalid_client_metadata", description)


class UnknownApp(NotFound):
    """No app has this client id; `reason` tells the developer more than the message does."""

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


class RedirectUriRefused(InvalidRequest):
    """The message names the field, then the rule."""

    def __init__(self, rule: str, *, field: str = "redirectUris") -> None:
        super().__init__(f"{field}: {rule}")


class ApplicationFormRefused(InvalidRequest):
    """The fields of the form break a rule of the API's own shapes; the message says which."""


class AppNotBound(InvalidRequest):
    def __init__(self, client_id: str) -> None:
        super().__init__(
            f"The app {client_id} is bound to no organization, which the token exchange needs."
        )


class FirstPartyAppProtected(NotAllowed):
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


class LogoNotFound(NotFound):
    def __init__(self, app_id: str) -> None:
        super().__init__(f"There is no logo of an app {app_id}.")


class InvalidLogo(InvalidRequest):
    def __init__(self) -> None:
        super().__init__("The body must be a PNG, JPEG, GIF or WebP image.")


class LogoTooLarge(TooLarge):
    def __init__(self, limit: int) -> None:
        super().__init__(f"A logo must have at most {limit} bytes.")


class AuthorizationRefused(InvalidRequest):
    """The request cannot be trusted; `advice` tells the app's developer what to change."""

    def __init__(self, message: str, *, advice: str = "") -> None:
        super().__init__(message)
        self.advice = advice


class UnreadableRequest(AuthorizationRefused):
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
            f"redirect_uri: {requested[:_MAX_QUOTED_URI]} is not one that the app registered.",
            advice=" ".join(differences) or "The app has registered none.",
        )


class RedirectedError(Exception):
    """An error of RFC 6749, 4.1.2.1 or of OpenID Connect; the description is plain ASCII."""

    def __init__(self, error: str, description: str, *, target: RedirectTarget) -> None:
        super().__init__(description)
        self.error = error
        self.description = description
        self.target = target


class TicketInvalid(InvalidRequest):
    def __init__(self) -> None:
        super().__init__(
            "The page is too old, or belongs to another session. Go back to the app and start again."
        )


class AccessNotFound(NotFound):
    def __init__(self, access_id: str) -> None:
        super().__init__(f"There is no access {access_id}, or it has ended.")


class TooManyDevices(TooManyRequests):
    def __init__(self) -> None:
        super().__init__(
            "Too many device codes of this app wait for a decision; try again in a minute.",
            headers={"Retry-After": "60"},
        )


class TooManyGuesses(TooManyRequests):
    def __init__(self, seconds: int) -> None:
        super().__init__(
            f"Too many wrong codes. Try again in {seconds} seconds.",
            headers={"Retry-After": str(seconds)},
        )


class DeviceAlreadyDecided(Conflict):
    def __init__(self) -> None:
        super().__init__(
            "Somebody decided about this code already, or it has expired. "
            "Start again on your device."
        )


class InvalidPublisher(InvalidRequest):
    """The message names the field and the rule."""


class PublisherNotFound(NotFound):
    def __init__(self, publisher_id: str) -> None:
        super().__init__(f"The repository has no trusted publisher {publisher_id}.")


class PublisherExists(Conflict):
    def __init__(self, publisher_id: str) -> None:
        super().__init__(
            f"The repository trusts the same issuer and claims already: {publisher_id}."
        )


class TooManyPublishers(Conflict):
    def __init__(self, limit: int) -> None:
        super().__init__(
            f"The repository has {limit} trusted publishers, which is the most: delete one first."
        )


class InvalidMetadata(Exception):
    """The reason names the field of the client metadata and the rule."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class DocumentRefused(Exception):
    """The sentence is for the app's developer: a page shows it, a token request never does."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
