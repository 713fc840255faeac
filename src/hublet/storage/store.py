"""SQL of blobs, of xorbs, and of the segments that make up a blob."""

from collections.abc import Iterable, Sequence

import msgspec

from hublet.core.clock import micros
from hublet.core.database import Connection, Reader, Row
from hublet.storage.records import Blob, BlobSegment, Content, CutBlob, Xorb
from hublet.storage.xorbs import XorbLayout


async def add_blobs(conn: Connection, blobs: Iterable[Blob]) -> None:
    """Add blobs that the store has as whole objects.

    One that is cut already stays so, and the object goes with the next pruning.
    """
    await conn.execute_many(
        """
        INSERT INTO blobs (sha256, size, git_sha1, is_whole, created_at)
        VALUES ($1, $2, $3, TRUE, $4)
        ON CONFLICT (sha256) DO UPDATE SET git_sha1 = coalesce(excluded.git_sha1, blobs.git_sha1)
        """,
        [(blob.sha256, blob.size, blob.git_sha1, micros()) for blob in blobs],
    )


async def add_xorb(conn: Connection, xorb: Xorb) -> None:
    """Add a xorb that the store has, or mark it as just arrived."""
    await conn.execute(
        """
        INSERT INTO xorbs (hash, chunks, size, stored_size, created_at) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (hash) DO UPDATE SET created_at = excluded.created_at
        """,
        xorb.hash, xorb.chunks, xorb.size, xorb.stored_size, micros(),
    )  # fmt: skip


async def relocate_chunks(conn: Connection, xorb: Xorb, layout: XorbLayout) -> None:
    """Note where the chunks of a xorb lie that is stored in another form than before."""
    await conn.execute(
        "UPDATE xorbs SET stored_size = $2 WHERE hash = $1", xorb.hash, xorb.stored_size
    )
    rows = await conn.fetch_all(
        "SELECT DISTINCT start_chunk, end_chunk FROM blob_segments WHERE xorb = $1", xorb.hash
    )
    await conn.execute_many(
        """
        UPDATE blob_segments SET start_byte = $4, end_byte = $5
        WHERE xorb = $1 AND start_chunk = $2 AND end_chunk = $3
        """,
        [
            (xorb.hash, start, end, *layout.stored_range(start, end))
            for start, end in ((row["start_chunk"], row["end_chunk"]) for row in rows)
        ],
    )


async def find_xorbs(conn: Reader, hashes: Iterable[str]) -> dict[str, Xorb]:
    rows = await conn.fetch_all(
        "SELECT hash, chunks, size, stored_size FROM xorbs WHERE hash IN each($1)",
        _json_array(hashes),
    )
    return {row["hash"]: Xorb(**dict(row)) for row in rows}


async def add_cut_blob(
    conn: Connection, blob: Blob, xet_hash: str, segments: Sequence[BlobSegment]
) -> None:
    """Add a blob that segments of verified xorbs make up, or the segments to a blob without any."""
    await add_cut_blobs(conn, [CutBlob(blob=blob, xet_hash=xet_hash, segments=tuple(segments))])


async def add_cut_blobs(conn: Connection, cut: Sequence[CutBlob]) -> None:
    """Add blobs that segments of verified xorbs make up, or the segments to blobs without any.

    The first segments of a content stay; its further file hashes lead to them.
    """
    blobs = [each.blob for each in cut]
    await conn.execute_many(
        """
        INSERT INTO blobs (sha256, size, git_sha1, is_whole, created_at)
        VALUES ($1, $2, $3, FALSE, $4)
        -- The update keeps pruning away from the row.
        ON CONFLICT (sha256) DO UPDATE SET git_sha1 = coalesce(excluded.git_sha1, blobs.git_sha1)
        """,
        [(blob.sha256, blob.size, blob.git_sha1, micros()) for blob in blobs],
    )
    await conn.execute_many(
        "UPDATE blobs SET xet_hash = $2 WHERE sha256 = $1 AND xet_hash IS NULL",
        [(each.blob.sha256, each.xet_hash) for each in cut],
    )
    await _add_segments(conn, cut)
    await conn.execute_many(
        "INSERT INTO xet_files (hash, sha256) VALUES ($1, $2) ON CONFLICT (hash) DO NOTHING",
        [(each.xet_hash, each.blob.sha256) for each in cut],
    )


async def _add_segments(conn: Connection, cut: Sequence[CutBlob]) -> None:
    """Add the segments of blobs that have just got their file hash, and so have none yet."""
    rows = await conn.fetch_all(
        """
        SELECT b.sha256, b.xet_hash FROM blobs b
        WHERE b.sha256 IN each($1)
            AND NOT EXISTS (SELECT 1 FROM blob_segments s WHERE s.sha256 = b.sha256)
        """,
        _json_array(each.blob.sha256 for each in cut),
    )
    canonical = {(row["sha256"], row["xet_hash"]) for row in rows}
    first = {(each.blob.sha256, each.xet_hash): each for each in reversed(cut)}
    await conn.execute_many(
        """
        INSERT INTO blob_segments (
            sha256, position, xorb, start_chunk, end_chunk, start_byte, end_byte, size
        ) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        """,
        [
            (sha256, position, each.xorb, each.start_chunk, each.end_chunk, each.start_byte,
             each.end_byte, each.size)
            for (sha256, xet_hash) in canonical & first.keys()
            for position, each in enumerate(first[sha256, xet_hash].segments)
        ],
    )  # fmt: skip


async def find_contents(conn: Reader, digests: Iterable[str]) -> dict[str, Content]:
    """Return, by SHA-256, where the bytes of blobs lie."""
    wanted = _json_array(digests)
    rows = await conn.fetch_all(
        "SELECT sha256, size, xet_hash, is_whole FROM blobs WHERE sha256 IN each($1)", wanted
    )
    segments = await _segments_of(conn, wanted)
    return {
        row["sha256"]: Content(
            sha256=row["sha256"],
            size=row["size"],
            xet_hash=row["xet_hash"],
            is_whole=bool(row["is_whole"]),
            segments=tuple(segments.get(row["sha256"], ())),
        )
        for row in rows
    }


async def _segments_of(conn: Reader, wanted: str) -> dict[str, list[BlobSegment]]:
    rows = await conn.fetch_all(
        """
        SELECT sha256, xorb, start_chunk, end_chunk, start_byte, end_byte, size
        FROM blob_segments WHERE sha256 IN each($1) ORDER BY sha256, position
        """,
        wanted,
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


async def find_xet_hashes(conn: Reader, digests: Iterable[str]) -> dict[str, str]:
    """Return, by SHA-256, the file hashes of those blobs that are cut."""
    rows = await conn.fetch_all(
        "SELECT sha256, xet_hash FROM blobs WHERE sha256 IN each($1) AND xet_hash IS NOT NULL",
        _json_array(digests),
    )
    return {row["sha256"]: row["xet_hash"] for row in rows}


async def find_digest(conn: Reader, xet_hash: str) -> str | None:
    """Return the SHA-256 of the content with a file hash."""
    digest: str | None = await conn.fetch_value(
        "SELECT sha256 FROM xet_files WHERE hash = $1", xet_hash
    )
    return digest


def _json_array(texts: Iterable[str]) -> str:
    return msgspec.json.encode(list(texts)).decode()
