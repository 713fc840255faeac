"""Epochs: with each, all that clients know of what is stored here becomes void.

The epoch is part of every address of the CAS, and clients keep what they know by that address.
"""

from hublet.core import metadata
from hublet.core.clock import micros
from hublet.core.database import Connection, Reader

_EPOCH = "storage.epoch"
_BEGAN = "storage.epoch_began"


async def get_epoch(conn: Reader) -> int:
    return int(await metadata.find(conn, _EPOCH) or 0)


async def get_epoch_start(conn: Reader) -> int:
    """Return when the epoch began, in microseconds; 0 for the first."""
    return int(await metadata.find(conn, _BEGAN) or 0)


async def begin_epoch(conn: Connection) -> int:
    """Begin a new epoch and return it: from now on no client knows of any xorb."""
    await conn.lock("epoch of the storage")
    epoch = await get_epoch(conn) + 1
    await metadata.set_value(conn, _EPOCH, str(epoch))
    await metadata.set_value(conn, _BEGAN, str(micros()))
    return epoch
