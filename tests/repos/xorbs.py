"""Xorbs and cut blobs for tests, put into the store without the routes of Xet."""

import hashlib
from collections.abc import Sequence

from hublet.core.database import Connection, Database
from hublet.repos import blobs_store
from hublet.storage import store
from hublet.storage.object_store import ObjectStore, open_store
from hublet.storage.records import Blob, BlobSegment, Xorb
from hublet.storage.xet_hashes import file_hash, to_text
from hublet.storage.xorb_objects import put_xorb
from hublet.storage.xorbs import XorbLayout, verify
from storage.xet_content import make_xorb, nodes


def object_store(database: Database) -> ObjectStore:
    return open_store(database.hub.settings)


def put_xorb_object(database: Database, chunks: Sequence[bytes]) -> tuple[Xorb, XorbLayout]:
    """Store a xorb with these chunks; return it and its layout. It has no row yet."""
    digest, data = make_xorb(chunks)
    layout = verify(data, digest)
    objects = object_store(database)
    with objects.new_spool(hashed=False) as spool:
        spool.write(data)
        return put_xorb(objects, spool, layout), layout


async def put_xorb_row(conn: Connection, repo_id: str | None, xorb: Xorb) -> None:
    """Add the row of a xorb, and let a repository's uploads use it."""
    await store.add_xorb(conn, xorb)
    if repo_id is not None:
        await conn.execute(
            "INSERT INTO repo_xorbs (repo_id, xorb) VALUES ($1, $2) ON CONFLICT DO NOTHING",
            repo_id, xorb.hash,
        )  # fmt: skip


def cut_blob(
    xorb: Xorb, layout: XorbLayout, chunks: Sequence[bytes]
) -> tuple[Blob, str, list[BlobSegment]]:
    """Return a blob of all chunks of a xorb, its file hash, and its only segment."""
    content = b"".join(chunks)
    start_byte, end_byte = layout.stored_range(0, len(layout))
    segment = BlobSegment(
        xorb=xorb.hash,
        start_chunk=0,
        end_chunk=len(layout),
        start_byte=start_byte,
        end_byte=end_byte,
        size=len(content),
    )
    blob = Blob(sha256=hashlib.sha256(content).hexdigest(), size=len(content))
    return blob, to_text(file_hash(nodes(chunks))), [segment]


async def put_cut_blob(
    database: Database, repo_id: str | None, chunks: Sequence[bytes], *, is_used: bool = True
) -> tuple[Blob, Xorb]:
    """Store a blob as one xorb with these chunks, as an upload through Xet does."""
    xorb, layout = put_xorb_object(database, chunks)
    blob, xet_hash, segments = cut_blob(xorb, layout, chunks)
    async with database.transaction() as conn:
        await put_xorb_row(conn, repo_id, xorb)
        await store.add_cut_blob(conn, blob, xet_hash, segments)
        if repo_id is not None:
            await blobs_store.link(conn, repo_id, [blob.sha256], is_used=is_used)
    return blob, xorb
