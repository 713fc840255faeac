"""What git's trees do not allow."""

from hublet.core.errors import InvalidRequest


class PathTaken(InvalidRequest):
    """A file cannot be where a folder is, nor a folder where a file is."""

    def __init__(self, path: str, *, by: str, place: str | None = None) -> None:
        where = place or path
        super().__init__(
            f"{path} cannot be added, because {where} is a {by}; delete that in the same commit."
        )
