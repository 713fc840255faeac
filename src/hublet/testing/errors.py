"""Errors of a test's hub.

HubletTestingError
├── CannotLogIn     the public client of this process talks to another hub
├── CannotStart     the hub of the tests does not start
├── Refused         the hub answered a request of the test with an error
└── WaitedInVain    what the test waited for did not happen (an AssertionError too)
"""


class HubletTestingError(Exception):
    """Base class; the message is a sentence for the developer."""


class CannotLogIn(HubletTestingError):
    """The public client of this process talks to another hub."""


class CannotStart(HubletTestingError):
    """The hub of the tests does not start."""


class Refused(HubletTestingError):
    """The hub answered a request of the test with an error."""

    def __init__(self, request: str, status: int, response: str) -> None:
        super().__init__(f"{request} was answered with {status}: {response}")
        self.status = status


class WaitedInVain(HubletTestingError, AssertionError):
    """What the test waited for did not happen."""
