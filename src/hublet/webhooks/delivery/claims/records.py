"""What was taken for delivery."""

from dataclasses import dataclass, field

from hublet.webhooks.delivery.records import Delivery
from hublet.webhooks.delivery.targets.records import Lane


@dataclass(slots=True)
class Taken:
    """Deliveries that are held once this is committed, and the lanes as they were then."""

    deliveries: list[Delivery] = field(default_factory=list)
    lanes: dict[str, Lane] = field(default_factory=dict)
    # Whether anything was done at all.
    worked: bool = False
