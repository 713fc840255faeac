"""What an OAuth endpoint answers when it refuses (RFC 6749, 5.2).

OAuthError             400, with the error code that clients know
├── InvalidClient      401, with a challenge
├── UnsupportedEncoding 415
└── Translated         an error of the edge, with its own status, in this form
"""

from hublet.core.errors import HubError

# What an error of another feature is called here, by its status.
_NAMES = {
    401: "invalid_client",
    # The public command line gives up at any other word, and slows down at this one.
    429: "slow_down",
    500: "server_error",
    503: "temporarily_unavailable",
}


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


class Translated(OAuthError):
    def __init__(self, error: HubError) -> None:
        super().__init__(_NAMES.get(error.status, "invalid_request"), error.message)
        # Each instance stands for another status, which is the class's own matter elsewhere.
        self.__dict__["status"] = error.status
        self.headers |= error.headers


def as_oauth(error: HubError) -> OAuthError:
    """Tell any error in the form that OAuth clients read."""
    return error if isinstance(error, OAuthError) else Translated(error)


def invalid_request(description: str) -> OAuthError:
    return OAuthError("invalid_request", description)


def invalid_grant(description: str) -> OAuthError:
    return OAuthError("invalid_grant", description)


def invalid_scope(description: str) -> OAuthError:
    return OAuthError("invalid_scope", description)


def invalid_target(description: str) -> OAuthError:
    return OAuthError("invalid_target", description)
