"""What can go wrong with looking at deliveries and sending them again."""

from hublet.core.errors import Conflict, InvalidRequest, NotFound
from hublet.webhooks.records import State


class DeliveryNotFound(NotFound):
    def __init__(self, delivery_id: str) -> None:
        super().__init__(f"The webhook has no delivery {delivery_id}.")


class InvalidPeriod(InvalidRequest):
    def __init__(self) -> None:
        super().__init__("until must be later than since.")


class WebhookNotEnabled(Conflict):
    def __init__(self, state: State) -> None:
        why = "suspended after failures" if state is State.suspended else "disabled"
        super().__init__(f"The webhook is {why}, so nothing is sent again; enable it first.")


class DeliveryOutOfSight(Conflict):
    def __init__(self) -> None:
        super().__init__(
            "What happened while the webhook's owner could not see the repository is never sent."
        )


class DeliveryUnderWay(Conflict):
    def __init__(self, *, being_sent: bool) -> None:
        what = "being sent right now" if being_sent else "still to be tried again"
        super().__init__(f"The delivery is {what}; only one that has ended can be replayed.")
