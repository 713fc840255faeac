"""What can be wrong with a volume when its attempt has ended."""

from hublet.core.errors import NotFound


class BucketGone(NotFound):
    """It was deleted or renamed, or the creator may not see it any more."""

    def __init__(self) -> None:
        super().__init__("The bucket that was mounted is not there any more.")
