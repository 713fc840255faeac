"""What can be wrong with what somebody wants to watch or to mute."""

from hublet.core.errors import Conflict, NotFound


class TargetNotFound(NotFound):
    """It does not exist, is of another type, or the caller may not know that it exists."""

    def __init__(self, place: int, type: str, target_id: str) -> None:  # noqa: A002 - the interface's word
        super().__init__(
            f"add[{place}]: there is no {type} with the id {target_id}, or you cannot see it."
        )


class ListTooLong(Conflict):
    def __init__(self, verb: str, limit: int) -> None:
        super().__init__(f"add: nobody can {verb} more than {limit}; delete some first.")
