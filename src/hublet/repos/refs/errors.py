"""What goes wrong with branches and tags."""

from hublet.core.errors import Conflict, InvalidRequest


class InvalidRefName(InvalidRequest):
    def __init__(self, kind: str, rule: str) -> None:
        super().__init__(f"This is no name for a {kind}: {rule}.")


class RefExists(Conflict):
    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"There is a {kind} {name} already.")


class RefInTheWay(Conflict):
    """Git keeps refs like files: one cannot lie in another."""

    def __init__(self, name: str, *, other: str) -> None:
        super().__init__(f"There cannot be {name} beside {other}.")


class MainStays(InvalidRequest):
    def __init__(self) -> None:
        super().__init__("The branch main cannot be deleted.")


class NoBranch(InvalidRequest):
    def __init__(self, revision: str) -> None:
        super().__init__(f"{revision} is no branch; only the history of a branch can be squashed.")
