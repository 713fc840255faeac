"""SQL of blobs, of xorbs, and of the layouts of blobs: lists of segments that make them up."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

import msgspec

from hublet.core.clock import micros
from hublet.core.database import Connection, Reader, Row
from hublet.storage.contents import is_kept_whole
from hublet.storage.errors import ObjectLeaving
from hublet.storage.object_store import ObjectKey, blob_key, open_store, xorb_key
from hublet.storage.records import Blob, BlobSegment, Content, CutBlob, Xorb, hash_of
from hublet.storage.xorbs import XorbLayout

# A removal takes seconds. One that has not ended after this time died, with all that it asked for.
_LONGEST_REMOVAL = timedelta(hours=1)
# Nobody puts an object and adds its row only after this time.
_LONGEST_UPLOAD = timedelta(days=2)
_MICROSECOND = timedelta(microseconds=1)


async def add_blobs(
    conn: Connection, blobs: Sequence[Blob], *, may_stay_whole: bool = False
) -> None:
    """Add blobs that were just put into the store as whole objects.

    One that is cut already stays so, and the object goes with the next pruning; unless it may stay
    whole, and downloads of its size are redirected to the object.
    """
    settings = conn.hub.settings
    await conn.execute_many(
        """
        INSERT INTO blobs (sha256, size, is_whole, created_at) VALUES ($1, $2, TRUE, $3)
        -- The update keeps pruning away from the row.
        ON CONFLICT (sha256) DO UPDATE SET size = excluded.size
        """,
        [(blob.sha256, blob.size, micros()) for blob in blobs],
    )
    whole = [blob.sha256 for blob in blobs if may_stay_whole and is_kept_whole(settings, blob.size)]
    if whole:
        await conn.execute(
            "UPDATE blobs SET is_whole = TRUE WHERE sha256 IN each($1)", _json_array(whole)
        )
    await check_present(conn, [blob_key(blob.sha256) for blob in blobs])


async def add_xorb(conn: Connection, xorb: Xorb) -> None:
    """Add a xorb that the store has, or mark it as just arrived."""
    await conn.execute(
        """
        INSERT INTO xorbs (name, hash, chunks, size, stored_size, created_at)
        VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (name) DO UPDATE SET created_at = excluded.created_at
        """,
        xorb.name, xorb.hash, xorb.chunks, xorb.size, xorb.stored_size, micros(),
    )  # fmt: skip
    await check_present(conn, [xorb_key(xorb.name)])


async def check_present(conn: Connection, keys: Sequence[ObjectKey]) -> None:
    """Refuse to add rows for objects that a removal takes, or took, away (`storage.removals`)."""
    objects = open_store(conn.hub.settings)
    if objects.can_put_aside or not keys:
        return
    rows = await conn.fetch_all(
        """
        SELECT kind, name, began_at, ended_at FROM object_removals
        WHERE kind = $1 AND name IN each($2)
        """,
        keys[0].kind, _json_array(key.name for key in keys),
    )  # fmt: skip
    began = micros() - _LONGEST_REMOVAL // _MICROSECOND
    if any(row["ended_at"] is None and row["began_at"] > began for row in rows):
        raise ObjectLeaving
    for row in rows:
        # Rare, and quick: it may be done within a transaction.
        found = await asyncio.to_thread(objects.stat, ObjectKey(row["kind"], row["name"]))
        if found is None:
            raise ObjectLeaving


async def add_removal(conn: Connection, removal: str, keys: Iterable[ObjectKey]) -> None:
    """Note that objects are about to be removed; forget removals that no upload can meet."""
    await conn.execute(
        "DELETE FROM object_removals WHERE began_at < $1",
        micros() - _LONGEST_UPLOAD // _MICROSECOND,
    )
    await conn.execute_many(
        "INSERT INTO object_removals (id, kind, name, began_at) VALUES ($1, $2, $3, $4)",
        [(removal, key.kind, key.name, micros()) for key in keys],
    )


async def end_removal(conn: Connection, removal: str) -> None:
    await conn.execute("UPDATE object_removals SET ended_at = $2 WHERE id = $1", removal, micros())


async def find_xorbs(conn: Reader, names: Iterable[str]) -> dict[str, Xorb]:
    rows = await conn.fetch_all(
        "SELECT name, chunks, size, stored_size FROM xorbs WHERE name IN each($1)",
        _json_array(names),
    )
    return {row["name"]: Xorb(**dict(row)) for row in rows}


async def find_other_forms(conn: Reader, name: str) -> list[Xorb]:
    """Return the stored xorbs that have the same chunks as another one."""
    rows = await conn.fetch_all(
        """
        SELECT name, chunks, size, stored_size FROM xorbs
        WHERE hash = $1 AND name <> $2 ORDER BY name
        """,
        hash_of(name), name,
    )  # fmt: skip
    return [Xorb(**dict(row)) for row in rows]


async def move_segments(conn: Connection, name: str, form: Xorb, layout: XorbLayout) -> None:
    """Let all segments of a stored xorb be read from another form of the same chunks."""
    rows = await conn.fetch_all(
        "SELECT DISTINCT start_chunk, end_chunk FROM layout_segments WHERE xorb = $1", name
    )
    await conn.execute_many(
        """
        UPDATE layout_segments SET xorb = $4, start_byte = $5, end_byte = $6
        WHERE xorb = $1 AND start_chunk = $2 AND end_chunk = $3
        """,
        [
            (name, start, end, form.name, *layout.stored_range(start, end))
            for start, end in ((row["start_chunk"], row["end_chunk"]) for row in rows)
        ],
    )


async def add_cut_blobs(conn: Connection, cut: Sequence[CutBlob]) -> None:
    """Add blobs that segments of verified xorbs make up, or further layouts to blobs."""
    await conn.execute_many(
        """
        INSERT INTO blobs (sha256, size, is_whole, created_at) VALUES ($1, $2, FALSE, $3)
        -- The update keeps pruning away from the row.
        ON CONFLICT (sha256) DO UPDATE SET size = excluded.size
        """,
        [(each.blob.sha256, each.blob.size, micros()) for each in cut],
    )
    layouts = {each.layout: each for each in sorted(cut, key=lambda each: each.layout)}
    await conn.execute_many(
        """
        INSERT INTO layouts (id, sha256) VALUES ($1, $2)
        ON CONFLICT (id) DO UPDATE SET sha256 = excluded.sha256
        """,
        [(layout, each.blob.sha256) for layout, each in layouts.items()],
    )
    await _add_segments(conn, layouts)


async def _add_segments(conn: Connection, layouts: Mapping[str, CutBlob]) -> None:
    """Add the segments of those layouts that are new, and so have none yet."""
    rows = await conn.fetch_all(
        """
        SELECT l.id FROM layouts l
        WHERE l.id IN each($1)
            AND NOT EXISTS (SELECT 1 FROM layout_segments s WHERE s.layout = l.id)
        """,
        _json_array(layouts),
    )
    await conn.execute_many(
        """
        INSERT INTO layout_segments (
            layout, position, xorb, start_chunk, end_chunk, start_byte, end_byte, size
        ) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        """,
        [
            (row["id"], position, each.xorb, each.start_chunk, each.end_chunk, each.start_byte,
             each.end_byte, each.size)
            for row in rows
            for position, each in enumerate(layouts[row["id"]].segments)
        ],
    )  # fmt: skip


async def find_contents(
    conn: Reader, digests: Iterable[str], *, layouts: Mapping[str, str] | None = None
) -> dict[str, Content]:
    """Return, by SHA-256, where the bytes of blobs lie: in these layouts, by SHA-256, or in any."""
    chosen = layouts or {}
    rows = await conn.fetch_all(
        "SELECT sha256, size, is_whole FROM blobs WHERE sha256 IN each($1)", _json_array(digests)
    )
    segments = await _segments_of(conn, "each($1)", chosen.values())
    others = [row["sha256"] for row in rows if row["sha256"] not in chosen]
    segments |= await _segments_of(conn, _ANY_LAYOUT, others)
    return {
        row["sha256"]: Content(
            sha256=row["sha256"],
            size=row["size"],
            is_whole=bool(row["is_whole"]),
            segments=tuple(segments.get(row["sha256"], ())),
        )
        for row in rows
    }


async def list_layouts(conn: Reader, sha256: str) -> list[str]:
    """Return all layouts of a blob."""
    rows = await conn.fetch_all("SELECT id FROM layouts WHERE sha256 = $1 ORDER BY id", sha256)
    return [row["id"] for row in rows]


# One of each content.
_ANY_LAYOUT = "(SELECT min(id) FROM layouts WHERE sha256 IN each($1) GROUP BY sha256)"


async def _segments_of(
    conn: Reader, layouts: str, wanted: Iterable[str]
) -> dict[str, list[BlobSegment]]:
    rows = await conn.fetch_all(
        f"""
        SELECT l.sha256, s.xorb, s.start_chunk, s.end_chunk, s.start_byte, s.end_byte, s.size
        FROM layouts l JOIN layout_segments s ON s.layout = l.id
        WHERE l.id IN {layouts} ORDER BY s.layout, s.position
        """,
        _json_array(wanted),
    )
    segments: dict[str, list[BlobSegment]] = {}
    for row in rows:
        segments.setdefault(row["sha256"], []).append(_segment(row))
    return segments


def _segment(row: Row) -> BlobSegment:
    return BlobSegment(
        xorb=row["xorb"],
        start_chunk=row["start_chunk"],
        end_chunk=row["end_chunk"],
        start_byte=row["start_byte"],
        end_byte=row["end_byte"],
        size=row["size"],
    )


def _json_array(texts: Iterable[str]) -> str:
    return msgspec.json.encode(list(texts)).decode()
