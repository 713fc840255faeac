"""SQL of the items of collections; those that a reader may not see are left out, also from counts."""

import json
from collections.abc import Collection, Iterable, Sequence

from hublet.community.collections.records import CollectionViewer, ItemRecord, ItemTarget
from hublet.community.collections.store import target_column, visible
from hublet.core.clock import from_micros, to_micros
from hublet.core.database import Connection, Reader, Row
from hublet.repos.browse.store import StatementValues, visible_condition

_COLUMNS = """
    i.id, i.collection_id, i.repo_id, i.thread_id, i.listed_id, i.position, i.note, i.gallery,
    i.added_by, i.added_at
"""


async def add(conn: Connection, item: ItemRecord) -> bool:
    """Add an item; False when the collection holds the same already."""
    return await conn.execute(
        """
        INSERT INTO collection_items
            (id, collection_id, position, repo_id, thread_id, listed_id, note, gallery,
             added_by, added_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
        ON CONFLICT DO NOTHING
        """,
        item.id, item.collection_id, item.position, item.target.repo_id, item.target.thread_id,
        item.target.listed_id, item.note, json.dumps(item.gallery), item.added_by,
        to_micros(item.added_at),
    ) == 1  # fmt: skip


async def order_of(conn: Reader, collection_id: str) -> list[tuple[str, int]]:
    """Return id and position of all items of a collection, in their order."""
    rows = await conn.fetch_all(
        """
        SELECT id, position FROM collection_items WHERE collection_id = $1 ORDER BY position, id
        """,
        collection_id,
    )
    return [(row["id"], row["position"]) for row in rows]


async def list_of(
    conn: Reader, collection_ids: Collection[str], viewer: CollectionViewer, *, most: int
) -> list[ItemRecord]:
    """Return the first items of each collection that a reader may see, in their order."""
    values = StatementValues()
    items = _visible_items(values, collection_ids, viewer)
    rows = await conn.fetch_all(
        f"""
        SELECT {_COLUMNS} FROM (
            SELECT i.*, row_number() OVER (
                PARTITION BY i.collection_id ORDER BY i.position, i.id
            ) AS place {items}
        ) AS i WHERE i.place <= {values.put(most)} ORDER BY i.collection_id, i.place
        """,
        *values.all,
    )
    return [_record(row) for row in rows]


async def count_of(
    conn: Reader, collection_ids: Collection[str], viewer: CollectionViewer
) -> dict[str, int]:
    """Count the items of each collection that a reader may see; one without any is not there."""
    values = StatementValues()
    items = _visible_items(values, collection_ids, viewer)
    rows = await conn.fetch_all(
        f"SELECT i.collection_id, count(*) AS seen {items} GROUP BY i.collection_id", *values.all
    )
    return {row["collection_id"]: row["seen"] for row in rows}


def _visible_items(
    values: StatementValues, collection_ids: Collection[str], viewer: CollectionViewer
) -> str:
    return f"""
        FROM collection_items i
        LEFT JOIN repos r ON r.id = i.repo_id LEFT JOIN collections c ON c.id = i.listed_id
        WHERE i.collection_id IN {values.put_list(collection_ids)}
          AND (i.thread_id IS NOT NULL
               OR (r.id IS NOT NULL AND {visible_condition(values, viewer.repos)})
               OR (c.id IS NOT NULL AND {visible(values, viewer.collections)}))
    """


async def holders_of(
    conn: Reader, target: ItemTarget, collection_ids: Collection[str]
) -> dict[str, str]:
    """Return those of these collections that hold something, each with the id of its item."""
    column, target_id = target_column(target)
    rows = await conn.fetch_all(
        f"""
        SELECT i.collection_id, i.id FROM collection_items i
        WHERE i.{column} = $1 AND i.collection_id IN each($2)
        """,
        target_id, json.dumps(list(collection_ids)),
    )  # fmt: skip
    return {row["collection_id"]: row["id"] for row in rows}


async def update(
    conn: Connection, item_id: str, *, note: str | None, gallery: Sequence[str] | None
) -> None:
    """Change an item; None keeps a value."""
    await conn.execute(
        """
        UPDATE collection_items SET note = coalesce($2, note), gallery = coalesce($3, gallery)
        WHERE id = $1
        """,
        item_id, note, None if gallery is None else json.dumps(gallery),
    )  # fmt: skip


async def set_positions(conn: Connection, positions: Iterable[tuple[str, int]]) -> None:
    await conn.execute_many("UPDATE collection_items SET position = $2 WHERE id = $1", positions)


async def remove(conn: Connection, item_id: str) -> None:
    await conn.execute("DELETE FROM collection_items WHERE id = $1", item_id)


def _record(row: Row) -> ItemRecord:
    return ItemRecord(
        id=row["id"],
        collection_id=row["collection_id"],
        target=ItemTarget(
            repo_id=row["repo_id"], thread_id=row["thread_id"], listed_id=row["listed_id"]
        ),
        position=row["position"],
        note=row["note"],
        gallery=tuple(json.loads(row["gallery"])),
        added_by=row["added_by"],
        added_at=from_micros(row["added_at"]),
    )
