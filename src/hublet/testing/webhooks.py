"""What became of webhooks, as a test sees it."""

from collections import Counter
from typing import Any

from hublet.testing.process import HubProcess
from hublet.testing.waiting import wait_until

Delivery = dict[str, Any]


class Webhooks:
    def __init__(self, process: HubProcess) -> None:
        self._process = process

    def deliveries(self, webhook: str = "") -> list[Delivery]:
        """Return the deliveries of a webhook, by its id or its URL, or of all; oldest first.

        Each is what `GET /api/settings/webhooks/{id}/deliveries/{id}` shows: state, event,
        payload, headers and every attempt.
        """
        found: list[Delivery] = self._process.ask("deliveries", webhook=webhook)["deliveries"]
        return found

    def wait_for(
        self,
        webhook: str = "",
        *,
        count: int = 1,
        state: str | None = "delivered",
        action: str | None = None,
        scope: str | None = None,
        timeout: float = 5.0,
    ) -> list[Delivery]:
        """Wait until there are so many deliveries of this kind, and return all of the kind.

        `state` is delivered, failed, unsent or pending; None takes any.
        """
        wanted = {"state": state, "action": action, "scope": scope}

        def look() -> list[Delivery]:
            found = [each for each in self.deliveries(webhook) if _is_like(each, wanted)]
            return found if len(found) >= count else []

        return wait_until(
            look,
            seconds=timeout,
            otherwise=lambda _: self._complaint(webhook, count, wanted, timeout),
        )

    def _complaint(
        self, webhook: str, count: int, wanted: dict[str, str | None], seconds: float
    ) -> str:
        kind = ", ".join(f"{name} {value}" for name, value in wanted.items() if value is not None)
        found = Counter(map(_in_words, self.deliveries(webhook)))
        there_are = "; ".join(f"{number} of {words}" for words, number in found.items())
        return (
            f"Waited {seconds:g} seconds for {count} deliveries ({kind or 'of any kind'}) of "
            f"{webhook or 'any webhook'}. There are: {there_are or 'none'}."
        )


def _is_like(delivery: Delivery, wanted: dict[str, str | None]) -> bool:
    shown = {"state": delivery["state"], **delivery.get("event", {})}
    return all(value is None or shown.get(name) == value for name, value in wanted.items())


def _in_words(delivery: Delivery) -> str:
    event = delivery.get("event", {})
    words = [delivery["state"], event.get("scope", "ping"), event.get("action", "")]
    words.append(f"after {delivery['attempts']} attempts")
    if "reason" in delivery:
        words.append(f"({delivery['reason']})")
    return " ".join(filter(None, words))
