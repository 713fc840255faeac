"""When device codes were last polled with, so that who is too fast is slowed down."""

from collections import OrderedDict

from hublet.core.clock import micros
from hublet.oauth.devices.records import Device

_MOST_CODES = 50_000
# Networks hold one request up and not the next.
_TOLERANCE_MICROS = 500_000


class Polls:
    """The last poll of each code, in the memory of this process: waiting costs no write.

    Beyond the largest number of codes the one that was idle longest is forgotten.
    """

    def __init__(self) -> None:
        self._last: OrderedDict[str, int] = OrderedDict()

    def is_too_early(self, device: Device) -> bool:
        """Note a poll, and tell whether it came before the interval was over."""
        now, last = micros(), self._last.pop(device.digest, None)
        self._last[device.digest] = now
        if len(self._last) > _MOST_CODES:
            self._last.popitem(last=False)
        # A clock that was turned back is nobody's haste.
        return (
            last is not None and 0 <= now - last < device.interval * 1_000_000 - _TOLERANCE_MICROS
        )

    def forget(self, device: Device) -> None:
        self._last.pop(device.digest, None)
