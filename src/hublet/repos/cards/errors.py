"""What is wrong with the metadata of a README."""

from collections.abc import Sequence

from hublet.core.errors import InvalidRequest


class InvalidCard(InvalidRequest):
    """The public client shows each of the errors to its user."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__(
            f"The metadata in README.md is not valid: {' '.join(problems)}",
            extra={"errors": [{"message": problem} for problem in problems], "warnings": []},
        )
