"""What can be wrong with a change of one's preferences."""

from hublet.core.errors import InvalidRequest


class PrepaidAmountNeeded(InvalidRequest):
    def __init__(self) -> None:
        super().__init__(
            "prepaidAmount is required in the request that switches launch_prepaid_credits on."
        )
