"""What can be wrong with a choice of tools."""

from hublet.core.errors import NotFound


class SpaceToolNotFound(NotFound):
    """It does not exist, or the caller may not know that it does."""

    def __init__(self, place: int, full_name: str) -> None:
        super().__init__(
            f"spaceTools[{place}]: there is no space {full_name}, or you cannot see it."
        )
