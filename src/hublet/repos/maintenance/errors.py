"""What can be wrong with a bare repository."""

from hublet.core.errors import NotFound


class FolderGone(NotFound):
    """The row was there a moment ago, and its folder goes with it."""

    code = "RepoNotFound"

    def __init__(self) -> None:
        super().__init__("The repository was deleted a moment ago.")
