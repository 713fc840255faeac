"""Usage of the storage by owners and repositories, its limit, and its metrics.

Raw bytes are those of every different content that a repository holds outside git, and of every file
of a bucket; uploads that nothing took yet count, too. Bytes at rest are stored when one repository of
the owner needs them, and shared when several do; a xorb counts with all of its chunks, once. That
others have the same bytes is not told: it would let everybody ask who has a file.
"""

import json
from enum import StrEnum
from typing import Any

from prometheus_client import CollectorRegistry, Gauge

from hublet.core import metadata
from hublet.core.clock import from_micros, micros
from hublet.core.database import Connection, Database, Reader
from hublet.repos import scrub_store, usage_store
from hublet.storage.errors import StorageFull

_TOTALS = "storage.totals"
_MOST_OWNERS = 200


class Upkeep(StrEnum):
    """What looks after the storage, and leaves word of it in the metadata."""

    measuring = "storage.measured"
    pruning = "storage.pruned"
    scrubbing = "storage.scrubbed"


async def remember(conn: Connection, upkeep: Upkeep, **found: object) -> None:
    """Remember that this was done now, and what came of it."""
    await metadata.set_value(conn, upkeep, json.dumps({"at": micros(), **found}))


async def find_last(conn: Reader, upkeep: Upkeep) -> dict[str, Any] | None:
    """Return what came of it the last time, with the time `at`; None before the first."""
    known = await metadata.find(conn, upkeep)
    if known is None:
        return None
    last: dict[str, Any] = json.loads(known)
    return last | {"at": from_micros(last["at"])}


async def check_quota(
    conn: Reader,
    owner_id: str,
    more: int,
    *,
    what: str = "this upload",
    before_upload: bool = False,
) -> None:
    """Raise StorageFull when an owner's repositories would hold more than the limit.

    Before an upload that may have been tried already, what nothing took yet does not count: it may
    be the same bytes.
    """
    limit = conn.hub.settings.limits.owner_bytes
    if limit is None:
        return
    if isinstance(conn, Connection):
        # Of two uploads at once, the second must see the first.
        await conn.lock(f"storage of {owner_id}")
    used = await usage_store.raw_of_owner(conn, owner_id, with_uploads=not before_upload)
    if used + more > limit:
        name = await usage_store.owner_name(conn, owner_id)
        raise StorageFull(name or owner_id, used=used, more=more, limit=limit, what=what)


async def measure(database: Database) -> None:
    """Remember the totals of the hub and its largest owners, for metrics and administrators."""
    async with database.transaction() as conn:
        with conn.in_bulk():
            totals = await usage_store.totals(conn)
            owners = await usage_store.list_largest_owners(conn, limit=_MOST_OWNERS)
        await metadata.set_value(conn, _TOTALS, json.dumps(totals))
        await remember(conn, Upkeep.measuring, owners=owners)


async def known_totals(conn: Reader) -> dict[str, int]:
    """Return the totals of the hub as of the last pruning; nothing was there before the first."""
    known: dict[str, int] = json.loads(await metadata.find(conn, _TOTALS) or "{}")
    return {"raw": 0, "blobs": 0, "xorbs": 0} | known


class StorageGauges:
    """Prometheus gauges of the storage: its bytes as of the last pruning, and damaged objects."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._bytes = Gauge(
            "hublet_storage_bytes",
            "Bytes that repositories hold (raw), and at rest whole (blobs) and cut (xorbs).",
            ["kind"],
            registry=registry,
        )
        self._damaged = Gauge(
            "hublet_storage_damaged_objects",
            "Objects whose bytes are wrong or missing.",
            registry=registry,
        )
        self._uncut = Gauge(
            "hublet_contents_uncut",
            "Contents of repositories that are not cut into chunks yet.",
            registry=registry,
        )

    async def count(self, conn: Reader) -> None:
        for kind, size in (await known_totals(conn)).items():
            self._bytes.labels(kind).set(size)
        self._damaged.set(await scrub_store.count_damaged(conn))
        self._uncut.set(await usage_store.count_uncut(conn))
