"""Stored xorbs: the chunks as they were uploaded, and behind them a footer with their layout.

Everything here blocks; call it from a thread.
"""

from hublet.storage.object_store import ObjectStore, xorb_key
from hublet.storage.records import Xorb
from hublet.storage.spools import Spool
from hublet.storage.xet_hashes import to_text
from hublet.storage.xorbs import XorbLayout, footer_size


def put_xorb(
    store: ObjectStore, spool: Spool, layout: XorbLayout, *, replace: bool = False
) -> Xorb:
    """Store a verified xorb, safe on the disk, with a footer in place of the uploader's.

    Return the xorb as it is stored: if somebody stored the same chunks before, perhaps compressed in
    another way, that one stays, for segments count its bytes. Replace only what has the same form.
    """
    spool.truncate(layout.stored_size)
    spool.write(layout.footer())
    key = xorb_key(to_text(layout.hash))
    store.put(key, spool, replace=replace)
    stored = store.stat(key)
    if stored is None:
        raise FileNotFoundError(key.digest)
    return Xorb(
        hash=key.digest,
        chunks=len(layout),
        size=layout.size,
        stored_size=stored.size - footer_size(len(layout)),
    )


def read_layout(store: ObjectStore, xorb: Xorb) -> XorbLayout:
    """Read where the chunks of a stored xorb lie; raise FileNotFoundError without the object."""
    end = xorb.stored_size + footer_size(xorb.chunks)
    footer = b"".join(store.pieces(xorb_key(xorb.hash), xorb.stored_size, end))
    return XorbLayout.read_footer(footer, count=xorb.chunks)
