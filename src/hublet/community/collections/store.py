"""SQL of collections and votes for them.

What a reader may not see is left out by the statements themselves, also from counts and filters. Public
collections have an index for each order; of private ones only those of a reader's own owners are read.
"""

import json
from collections.abc import Iterable

from hublet.accounts.names import name_key
from hublet.accounts.records import Owner, OwnerType
from hublet.community.collections.records import (
    CollectionQuery,
    CollectionRecord,
    CollectionSort,
    CollectionViewer,
    ItemTarget,
    Theme,
)
from hublet.core.clock import from_micros, micros, to_micros
from hublet.core.database import Connection, Reader, Row, like_pattern
from hublet.repos.browse.store import StatementValues
from hublet.repos.records import Reach

_COLUMNS = """
    c.id, c.owner_id, coalesce(owning_user.name, owning_org.name) AS owner_name,
    CASE WHEN owning_user.id IS NULL THEN 'org' ELSE 'user' END AS owner_type, c.creator_id,
    c.title, c.slug, c.description, c.theme, c.is_private, c.resource_group_id, c.position,
    c.upvotes, c.trending, c.created_at, c.updated_at
"""
_OWNER = """
    LEFT JOIN users owning_user ON owning_user.id = c.owner_id
    LEFT JOIN organizations owning_org ON owning_org.id = c.owner_id
"""
_FROM = f"FROM collections c {_OWNER}"
_SORT_COLUMNS = {
    CollectionSort.update: "c.updated_at",
    CollectionSort.trending: "c.trending",
    CollectionSort.upvotes: "c.upvotes",
}
# Each doubling of the upvotes makes a collection so much younger.
_MICROS_OF_DOUBLING = 7 * 24 * 3600 * 1_000_000


async def add(conn: Connection, collection: CollectionRecord) -> None:
    """Add a collection behind all others of its owner."""
    await conn.execute(
        """
        INSERT INTO collections
            (id, owner_id, creator_id, title, slug, description, words, theme, is_private,
             resource_group_id, position, trending, created_at, updated_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10,
                (SELECT coalesce(max(position) + 1, 0) FROM collections WHERE owner_id = $2),
                $11, $11, $11)
        """,
        collection.id, collection.owner_id, collection.creator_id, collection.title,
        collection.slug, collection.description, _words(collection), collection.theme,
        collection.is_private, collection.resource_group_id, to_micros(collection.created_at),
    )  # fmt: skip


def _words(collection: CollectionRecord) -> str:
    return f"{collection.title}\n{collection.description}".casefold()


async def find(conn: Reader, collection_id: str) -> CollectionRecord | None:
    row = await conn.fetch_one(f"SELECT {_COLUMNS} {_FROM} WHERE c.id = $1", collection_id)
    return _record(row) if row else None


async def find_by_slug(
    conn: Reader, viewer: CollectionViewer, *, owner: str, slug: str
) -> CollectionRecord | None:
    """Return the oldest collection of an owner with this slug that the reader may see."""
    values = StatementValues()
    row = await conn.fetch_one(
        f"""
        SELECT {_COLUMNS} {_FROM}
        WHERE c.owner_id = (SELECT account_id FROM names WHERE key = {values.put(name_key(owner))})
          AND c.slug = {values.put(slug)} AND {visible(values, viewer.collections)}
        ORDER BY c.id LIMIT 1
        """,
        *values.all,
    )
    return _record(row) if row else None


async def list_ids(conn: Reader, *, after: str, limit: int) -> list[str]:
    """Return the ids of all collections, the smallest first."""
    rows = await conn.fetch_all(
        "SELECT id FROM collections WHERE id > $1 ORDER BY id LIMIT $2", after, limit
    )
    return [row["id"] for row in rows]


async def list_by_ids(conn: Reader, ids: Iterable[str]) -> list[CollectionRecord]:
    rows = await conn.fetch_all(
        f"SELECT {_COLUMNS} {_FROM} WHERE c.id IN each($1)", json.dumps(list(ids))
    )
    return [_record(row) for row in rows]


async def list_visible(
    conn: Reader, ids: Iterable[str], reach: Reach | None
) -> list[CollectionRecord]:
    """Return those of these collections that are public or within reach."""
    values = StatementValues()
    rows = await conn.fetch_all(
        f"""
        SELECT {_COLUMNS} {_FROM}
        WHERE c.id IN {values.put_list(ids)} AND {visible(values, reach)}
        """,
        *values.all,
    )
    return [_record(row) for row in rows]


async def list_of_owner(conn: Reader, owner_id: str, reach: Reach | None) -> list[CollectionRecord]:
    """Return the collections of an owner that a reader may see, in their order."""
    values = StatementValues()
    rows = await conn.fetch_all(
        f"""
        SELECT {_COLUMNS} {_FROM} WHERE c.owner_id = {values.put(owner_id)}
          AND {visible(values, reach)} ORDER BY c.position, c.id
        """,
        *values.all,
    )
    return [_record(row) for row in rows]


async def order_of_owner(conn: Reader, owner_id: str) -> list[tuple[str, int]]:
    """Return id and position of all collections of an owner, in their order."""
    rows = await conn.fetch_all(
        "SELECT id, position FROM collections WHERE owner_id = $1 ORDER BY position, id", owner_id
    )
    return [(row["id"], row["position"]) for row in rows]


async def list_found(
    conn: Reader, viewer: CollectionViewer, query: CollectionQuery
) -> list[CollectionRecord]:
    """Return public collections, and private ones within reach, that a query asks for."""
    values = StatementValues()
    key = _SORT_COLUMNS[query.sort]
    conditions = _conditions(values, query)
    if query.after is not None:
        position = f"({values.put(query.after[0])}, {values.put(query.after[1])})"
        conditions.append(f"({key}, c.id) < {position}")
    most = values.put(query.limit)
    parts = ["NOT c.is_private"]
    if viewer.collections is not None:
        parts.append(f"c.is_private AND {_within(values, viewer.collections)}")
    # Each part has its own limit, so that neither is read to its end.
    union = " UNION ALL ".join(
        f"""
        SELECT * FROM (
            SELECT c.* FROM collections c WHERE {" AND ".join([part, *conditions])}
            ORDER BY {key} DESC, c.id DESC LIMIT {most}
        ) AS part
        """
        for part in parts
    )
    rows = await conn.fetch_all(
        f"SELECT {_COLUMNS} FROM ({union}) AS c {_OWNER} ORDER BY {key} DESC, c.id DESC LIMIT {most}",
        *values.all,
    )
    return [_record(row) for row in rows]


def _conditions(values: StatementValues, query: CollectionQuery) -> list[str]:
    conditions = []
    if query.owners:
        names = values.put_list(name_key(owner) for owner in query.owners)
        conditions.append(f"c.owner_id IN (SELECT account_id FROM names WHERE key IN {names})")
    if query.text:
        pattern = values.put(like_pattern(query.text.casefold()))
        conditions.append(f"c.words LIKE {pattern} ESCAPE '~'")
    if query.items is not None:
        targets = [_holds(values, target) for target in query.items]
        conditions.append(f"({' OR '.join(['FALSE', *targets])})")
    return conditions


def _holds(values: StatementValues, target: ItemTarget) -> str:
    column, target_id = target_column(target)
    return f"""
        c.id IN (SELECT i.collection_id FROM collection_items i
                 WHERE i.{column} = {values.put(target_id)})
    """


def target_column(target: ItemTarget) -> tuple[str, str]:
    """Return the column of items that names a target, and its value there."""
    if target.repo_id is not None:
        return "repo_id", target.repo_id
    if target.thread_id is not None:
        return "thread_id", target.thread_id
    return "listed_id", target.listed_id or ""


def visible(values: StatementValues, reach: Reach | None) -> str:
    """Return the condition for collections `c` that are public or within reach."""
    if reach is None:
        return "NOT c.is_private"
    return f"(NOT c.is_private OR ({_within(values, reach)}))"


def _within(values: StatementValues, reach: Reach) -> str:
    return f"""
        c.owner_id IN {values.put_list(reach.readable)}
        AND (c.resource_group_id IS NULL OR c.owner_id IN {values.put_list(reach.administered)}
             OR c.resource_group_id IN (
                SELECT m.resource_group_id FROM resource_group_members m
                WHERE m.user_id = {values.put(reach.user_id)}))
    """


async def update(conn: Connection, collection: CollectionRecord) -> None:
    """Write what can be changed of a collection, but for its position, and the time of the change."""
    await conn.execute(
        """
        UPDATE collections SET title = $2, slug = $3, description = $4, words = $5, theme = $6,
            is_private = $7, resource_group_id = $8, updated_at = $9
        WHERE id = $1
        """,
        collection.id, collection.title, collection.slug, collection.description,
        _words(collection), collection.theme, collection.is_private,
        collection.resource_group_id, micros(),
    )  # fmt: skip


async def touch(conn: Connection, collection_id: str) -> None:
    await conn.execute(
        "UPDATE collections SET updated_at = $2 WHERE id = $1", collection_id, micros()
    )


async def set_positions(conn: Connection, positions: Iterable[tuple[str, int]]) -> None:
    await conn.execute_many("UPDATE collections SET position = $2 WHERE id = $1", positions)


async def remove(conn: Connection, collection_id: str) -> None:
    """Remove a collection with its items and votes, and from those that hold it."""
    await conn.execute("DELETE FROM collections WHERE id = $1", collection_id)


def _record(row: Row) -> CollectionRecord:
    return CollectionRecord(
        id=row["id"],
        owner=Owner(id=row["owner_id"], name=row["owner_name"], type=OwnerType(row["owner_type"])),
        creator_id=row["creator_id"],
        title=row["title"],
        slug=row["slug"],
        description=row["description"],
        theme=Theme(row["theme"]),
        is_private=bool(row["is_private"]),
        resource_group_id=row["resource_group_id"],
        position=row["position"],
        upvotes=row["upvotes"],
        trending=row["trending"],
        created_at=from_micros(row["created_at"]),
        updated_at=from_micros(row["updated_at"]),
    )


async def set_vote(conn: Connection, collection_id: str, *, user_id: str, voted: bool) -> bool:
    """Add or remove the vote of a user, and count the votes; False when nothing changes."""
    if voted:
        changed = await conn.execute(
            """
            INSERT INTO collection_votes (collection_id, user_id, voted_at) VALUES ($1, $2, $3)
            ON CONFLICT DO NOTHING
            """,
            collection_id, user_id, micros(),
        )  # fmt: skip
    else:
        changed = await conn.execute(
            "DELETE FROM collection_votes WHERE collection_id = $1 AND user_id = $2",
            collection_id, user_id,
        )  # fmt: skip
    if changed:
        await _count_votes(conn, collection_id)
    return bool(changed)


async def _count_votes(conn: Connection, collection_id: str) -> None:
    votes: int = await conn.fetch_value(
        "SELECT count(*) FROM collection_votes WHERE collection_id = $1", collection_id
    )
    await conn.execute(
        "UPDATE collections SET upvotes = $2, trending = created_at + $3 WHERE id = $1",
        collection_id, votes, votes.bit_length() * _MICROS_OF_DOUBLING,
    )  # fmt: skip


async def voted_by(conn: Reader, user_id: str, collection_ids: Iterable[str]) -> set[str]:
    """Return those of these collections that a user voted for, by id."""
    rows = await conn.fetch_all(
        """
        SELECT collection_id FROM collection_votes WHERE user_id = $1 AND collection_id IN each($2)
        """,
        user_id, json.dumps(list(collection_ids)),
    )  # fmt: skip
    return {row["collection_id"] for row in rows}
