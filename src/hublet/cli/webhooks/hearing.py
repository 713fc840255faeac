"""Which of the deliveries that a stream tells of are news."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hublet.client.webhooks import Delivery

_REMEMBERED = 10_000


class Heard:
    """Remembers what was heard: a stream tells of each change, and after a break some twice."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, int]] = {}

    def is_news(self, delivery: "Delivery") -> bool:
        """Tell whether a delivery was sent just now: for the first time, or by a replay.

        That the hub tries again what has not arrived is no news.
        """
        before = self._known.pop(delivery["id"], None)
        self._known[delivery["id"]] = (delivery["state"], delivery["attempts"])
        if len(self._known) > _REMEMBERED:
            del self._known[next(iter(self._known))]
        if before is None:
            return True
        state, attempts = before
        had_ended = state != "pending"
        return had_ended and (delivery["state"] == "pending" or delivery["attempts"] > attempts)
