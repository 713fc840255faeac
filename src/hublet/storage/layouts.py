"""Cache of the layouts of stored xorbs, so that a busy xorb's footer is read once."""

from collections import OrderedDict
from threading import Lock

from hublet.storage.object_store import ObjectStore
from hublet.storage.records import Xorb
from hublet.storage.xorb_objects import read_layout
from hublet.storage.xorbs import XorbLayout, footer_size

_MOST_BYTES = 16 << 20


class LayoutCache:
    """Layouts of the latest used xorbs, up to so many bytes.

    A xorb that was removed and uploaded again may be compressed in another way, so a layout is known
    by the stored size too. It blocks; call it from a thread.
    """

    def __init__(self, *, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._layouts: OrderedDict[tuple[str, int], XorbLayout] = OrderedDict()
        self._lock = Lock()

    def get(self, store: ObjectStore, xorb: Xorb) -> XorbLayout:
        """Raise FileNotFoundError when the store has no such xorb."""
        key = (xorb.hash, xorb.stored_size)
        with self._lock:
            layout = self._layouts.get(key)
            if layout is not None:
                self._layouts.move_to_end(key)
                return layout
        layout = read_layout(store, xorb)
        with self._lock:
            if key not in self._layouts:
                self._layouts[key] = layout
                self._bytes += footer_size(len(layout))
            self._shrink()
        return layout

    def _shrink(self) -> None:
        while self._bytes > self._most_bytes and len(self._layouts) > 1:
            _, oldest = self._layouts.popitem(last=False)
            self._bytes -= footer_size(len(oldest))
