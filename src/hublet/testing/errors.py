"""What can go wrong for a test that uses a hub.

HubletTestingError
├── CannotStart     the hub of the tests does not come up
├── Refused         the hub answered an errand of the test with an error
└── WaitedInVain    what the test waited for did not happen (an AssertionError too)
"""


class HubletTestingError(Exception):
    """Base of all of them; the message is a sentence for the developer."""


class CannotStart(HubletTestingError):
    """The hub of the tests does not come up."""


class Refused(HubletTestingError):
    """The hub answered an errand of the test with an error."""

    def __init__(self, request: str, status: int, answer: str) -> None:
        super().__init__(f"{request} was answered with {status}: {answer}")
        self.status = status


class WaitedInVain(HubletTestingError, AssertionError):
    """What the test waited for did not happen."""
