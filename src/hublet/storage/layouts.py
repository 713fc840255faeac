"""Cache of the layouts of stored xorbs, so that a busy xorb's footer is read once."""

from collections import OrderedDict
from threading import Lock

from hublet.storage.object_store import ObjectStore
from hublet.storage.records import Xorb
from hublet.storage.xorb_objects import read_layout
from hublet.storage.xorbs import XorbLayout, footer_size

_MOST_BYTES = 16 << 20


class LayoutCache:
    """Layouts of the latest used xorbs, up to so many bytes. It blocks; call it from a thread."""

    def __init__(self, *, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._layouts: OrderedDict[str, XorbLayout] = OrderedDict()
        self._lock = Lock()

    def get(self, store: ObjectStore, xorb: Xorb) -> XorbLayout:
        """Raise FileNotFoundError when the store has no such xorb."""
        with self._lock:
            layout = self._layouts.get(xorb.name)
            if layout is not None:
                self._layouts.move_to_end(xorb.name)
                return layout
        layout = read_layout(store, xorb)
        with self._lock:
            if xorb.name not in self._layouts:
                self._layouts[xorb.name] = layout
                self._bytes += footer_size(len(layout))
            self._shrink()
        return layout

    def _shrink(self) -> None:
        while self._bytes > self._most_bytes and len(self._layouts) > 1:
            _, oldest = self._layouts.popitem(last=False)
            self._bytes -= footer_size(len(oldest))
