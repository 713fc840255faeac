"""What can go wrong while a person enters a code."""

from hublet.core.errors import Conflict, TooManyRequests


class TooManyGuesses(TooManyRequests):
    def __init__(self, seconds: int) -> None:
        super().__init__(
            f"Too many wrong codes. Try again in {seconds} seconds.",
            headers={"Retry-After": str(seconds)},
        )


class DecidedAlready(Conflict):
    def __init__(self) -> None:
        super().__init__(
            "Somebody decided about this code already, or it has expired. "
            "Start again on your device."
        )
