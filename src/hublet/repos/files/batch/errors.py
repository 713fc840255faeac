"""What goes wrong with a batch."""

from collections.abc import Sequence

from hublet.core.errors import HubError, InvalidRequest, TooLarge
from hublet.core.light_dataclasses import dataclass


class InvalidLine(InvalidRequest):
    def __init__(self, number: int, problem: str) -> None:
        super().__init__(f"Line {number} of the batch: {problem}")


class TooManyOperations(InvalidRequest):
    def __init__(self, limit: int) -> None:
        super().__init__(f"A batch must have 1 to {limit} operations, one on each line.")


class BatchTooLarge(TooLarge):
    def __init__(self, limit: int) -> None:
        super().__init__(
            f"A batch must have at most {limit} bytes; larger files go by PUT, one by one."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why one operation cannot be done."""

    path: str
    error: str


class BatchFailed(HubError):
    """Some operations cannot be done, so none was; the public client reads which."""

    status = 422

    def __init__(self, failures: Sequence[Failure], *, of: int) -> None:
        super().__init__(
            f"{len(failures)} of {of} operations cannot be done, so nothing was changed.",
            extra={"failed": [{"path": each.path, "error": each.error} for each in failures]},
        )
