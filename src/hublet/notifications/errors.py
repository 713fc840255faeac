"""What can be wrong with a request about notifications."""

from hublet.core.errors import InvalidRequest


class EitherIdsOrAll(InvalidRequest):
    def __init__(self) -> None:
        super().__init__(
            "Say what to change: either discussionIds, with at least one id, or applyToAll=true, "
            "not both."
        )
