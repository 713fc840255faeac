"""Removal of objects, safe beside uploads of the same content, from any store.

An upload puts its object first and adds the row after. A folder puts an object aside, looks whether it
became new in the meantime, and removes it or brings it back. A bucket has no such step: an upload
that puts the object again between the look and the removal would lose it. So there a removal is
noted in the database before it looks:

- Who adds a row before the note is there has put the object before the look: it is new, and stays.
- Who adds a row while the removal runs is refused, and sends the content again in a moment.
- Who adds a row after its end looks whether the object is there, and is refused if it is not.
"""

import asyncio
from collections.abc import Iterable
from datetime import datetime

from hublet.core.database import Database
from hublet.core.ids import new_object_id
from hublet.storage import store
from hublet.storage.object_store import ObjectKey, ObjectStore

# So many take a moment: uploads of the same content are refused that long.
_BATCH = 100


async def remove_objects(
    database: Database, objects: ObjectStore, keys: Iterable[ObjectKey], *, before: datetime
) -> None:
    """Remove objects that have no row, except those that were put since then.

    No transaction may be open. After a failure the note stays, and counts for an hour.
    """
    wanted = list(keys)
    if objects.can_put_aside:
        await asyncio.to_thread(objects.delete, wanted, before=before)
        return
    for start in range(0, len(wanted), _BATCH):
        batch = wanted[start : start + _BATCH]
        removal = new_object_id()
        async with database.transaction() as conn:
            await store.add_removal(conn, removal, batch)
        await asyncio.to_thread(objects.delete, batch, before=before)
        async with database.transaction() as conn:
            await store.end_removal(conn, removal)
