"""Stored xorbs: the chunks as they were uploaded, and behind them a footer with their layout.

Everything here blocks; call it from a thread.
"""

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
