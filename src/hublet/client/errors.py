"""Errors of the client; no message ever contains a token.

ClientError
├── InvalidEndpoint   the address cannot be that of a hub
├── NotReachable      no hub answered
├── NotUnderstood     something answered, but not as a hub does
├── Refused           the hub answered with an error
└── LoginFailed       a device login was refused or not allowed in time
"""

_MAX_CHARACTERS = 2000


class ClientError(Exception):
    """A request failed; the message is a sentence for the user."""


class InvalidEndpoint(ClientError):
    def __init__(self) -> None:
        # The address itself stays out: somebody may have put a password into it.
        super().__init__(
            "The address of a hub looks like https://hub.example.com: http or https, a host, "
            "and no user name, path, query or fragment."
        )


class NotReachable(ClientError):
    """No hub answers: no connection, or a response that no hub sends."""

    def __init__(self, endpoint: str, reason: str) -> None:
        self.endpoint = endpoint
        self.reason = reason
        super().__init__(
            f"No hub answers at {endpoint} ({reason}). Is it running? Start one with "
            "`hublet serve`, or name another one with --endpoint or HUBLET_ENDPOINT."
        )


class NotUnderstood(ClientError):
    """A response lacks something; what is in the message, as the hub or the command may be wrong."""

    def __init__(self, endpoint: str, error: Exception) -> None:
        self.endpoint = endpoint
        found = _clean(f"{type(error).__name__}: {error}")
        super().__init__(
            f"What answers at {endpoint} is not understood ({found}). Is it a hub, and about as "
            "old as this command? Name another one with --endpoint or HUBLET_ENDPOINT."
        )


class Refused(ClientError):
    """The hub refused the request, with its own sentence."""

    def __init__(
        self,
        status: int,
        sentence: str,
        *,
        code: str | None = None,
        request_id: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        self.status = status
        self.sentence = _clean(sentence)
        # Of an OAuth endpoint the code of the RFC, elsewhere that of `X-Error-Code`.
        self.code = code
        self.request_id = request_id
        # Seconds.
        self.retry_after = retry_after
        super().__init__(self.sentence)


class LoginFailed(ClientError):
    """The login was refused, or nobody allowed it in time."""


def _clean(sentence: str) -> str:
    """Replace control characters, which could move the cursor of a terminal."""
    return "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}"
        for letter in " ".join(sentence.split())[:_MAX_CHARACTERS]
    )
