"""Why an app cannot register itself (RFC 7591, 3.2.2)."""

from hublet.oauth.errors import OAuthError


class RegistrationClosed(OAuthError):
    status = 403

    def __init__(self) -> None:
        super().__init__(
            "access_denied", "Apps cannot register by themselves at this hub: ask a user of it."
        )


def invalid_redirect_uri(description: str) -> OAuthError:
    return OAuthError("invalid_redirect_uri", description)


def invalid_metadata(description: str) -> OAuthError:
    return OAuthError("invalid_client_metadata", description)
