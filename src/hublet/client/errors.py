"""What can go wrong between a command and a hub; no message ever holds a token.

ClientError
├── InvalidEndpoint   the address is none that a hub can have
├── NotReachable      no hub answered
├── NotUnderstood     something answered, but not as a hub does
└── Refused           the hub answered, and said no
"""

_LONGEST = 2000


class ClientError(Exception):
    """Anything that keeps a command from its answer, told in a sentence."""


class InvalidEndpoint(ClientError):
    def __init__(self) -> None:
        # The address itself stays out: somebody may have put a password into it.
        super().__init__(
            "The address of a hub looks like https://hub.example.com: http or https, a host, "
            "and no user name, path, query or fragment."
        )


class NotReachable(ClientError):
    """Also what answers, but in a form that no hub has."""

    def __init__(self, endpoint: str, reason: str) -> None:
        self.endpoint = endpoint
        self.reason = reason
        super().__init__(
            f"No hub answers at {endpoint} ({reason}). Is it running? Start one with "
            "`hublet serve`, or name another one with --endpoint or HUBLET_ENDPOINT."
        )


class NotUnderstood(ClientError):
    """What was found missing stays in the sentence: the hub, or this command, may have a fault."""

    def __init__(self, endpoint: str, error: Exception) -> None:
        self.endpoint = endpoint
        found = _clean(f"{type(error).__name__}: {error}")
        super().__init__(
            f"What answers at {endpoint} is not understood ({found}). Is it a hub, and about as "
            "old as this command? Name another one with --endpoint or HUBLET_ENDPOINT."
        )


class Refused(ClientError):
    """The hub's own sentence, and what else it said."""

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


def _clean(sentence: str) -> str:
    """Keep what a stranger wrote from moving the cursor of a terminal."""
    return "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}"
        for letter in " ".join(sentence.split())[:_LONGEST]
    )
