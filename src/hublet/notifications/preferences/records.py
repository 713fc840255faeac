"""What a user chose to hear of."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime

from hublet.core.light_dataclasses import dataclass
from hublet.notifications.preferences.keys import SWITCHES, Key


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What was ever chosen; a key that is absent has its default."""

    switches: Mapping[Key, bool] = field(default_factory=dict)
    product_updates_after: datetime | None = None
    # What launch_prepaid_credits goes with; kept only while that is on.
    prepaid_amount: str | None = None

    def wants(self, key: Key) -> bool:
        return self.switches.get(key, SWITCHES[key].default)


NOTHING_CHOSEN = Choices()
