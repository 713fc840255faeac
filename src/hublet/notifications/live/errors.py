"""What can be wrong with a stream."""

from hublet.core.errors import TooManyRequests


class TooManyStreams(TooManyRequests):
    def __init__(self, most: int) -> None:
        super().__init__(
            f"You have {most} notification streams open, which is the most there may be: "
            "close one first.",
            headers={"Retry-After": "5"},
        )
