"""What can be wrong with a device request."""

from hublet.core.errors import TooManyRequests


class TooManyDevices(TooManyRequests):
    def __init__(self) -> None:
        super().__init__(
            "Too many device codes of this app wait for a decision; try again in a minute.",
            headers={"Retry-After": "60"},
        )
