"""What goes wrong with downloads."""

from hublet.core.errors import NotFound


class ContentMissing(NotFound):
    """Git has the pointer to a large file, and nobody uploaded what it points to."""

    def __init__(self, path: str) -> None:
        # Without a code: the clients would remember that there is no such file.
        super().__init__(
            f"The content of {path} is not here: its pointer was pushed without it, "
            "or it was deleted for good."
        )
