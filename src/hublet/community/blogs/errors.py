"""What goes wrong with community blogs."""

from hublet.core.errors import InvalidRequest


class NothingToChange(InvalidRequest):
    def __init__(self) -> None:
        super().__init__("Give title or content: nothing else of a blog can be changed.")
