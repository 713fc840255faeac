"""Why a client ID metadata document is not taken."""


class DocumentRefused(Exception):
    """The sentence is for the app's developer: a page shows it, a token request never does."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
