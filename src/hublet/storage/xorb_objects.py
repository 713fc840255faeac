"""Stored xorbs: the chunks as they were uploaded, behind them a footer with their layout; and a cache of
layouts, so that a busy xorb's footer is read once.

Everything here blocks; call it from a thread.
"""

from collections import OrderedDict
from threading import Lock

from hublet.storage.object_store import ObjectStore, xorb_key
from hublet.storage.records import Xorb
from hublet.storage.spools import Spool
from hublet.storage.xet_hashes import to_text
from hublet.storage.xorbs import XorbLayout, footer_size


def put_xorb(store: ObjectStore, spool: Spool, layout: XorbLayout, *, form: str) -> Xorb:
    """Store a verified xorb, safe on the disk, with a footer in place of the uploader's.

    Its name says which bytes it has (`xorbs.form_of`). So whoever compressed the same chunks in
    another way neither changes nor sees what others stored; the same bytes lie there once.
    """
    xorb = Xorb(
        name=f"{to_text(layout.hash)}-{form}",
        chunks=len(layout),
        size=layout.size,
        stored_size=layout.stored_size,
    )
    replace_xorb(store, xorb.name, spool, layout)
    return xorb


def replace_xorb(store: ObjectStore, name: str, spool: Spool, layout: XorbLayout) -> None:
    """Store a verified xorb by a name that it has already."""
    spool.truncate(layout.stored_size)
    spool.write(layout.footer())
    store.put(xorb_key(name), spool)


def read_layout(store: ObjectStore, xorb: Xorb) -> XorbLayout:
    """Read where the chunks of a stored xorb lie; raise FileNotFoundError without the object."""
    end = xorb.stored_size + footer_size(xorb.chunks)
    footer = b"".join(store.pieces(xorb_key(xorb.name), xorb.stored_size, end))
    return XorbLayout.read_footer(footer, count=xorb.chunks)


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
