"""Xorbs and cut blobs for tests, put into the store without the routes of Xet."""

import hashlib
from collections.abc import Sequence

from hublet.core.database import Connection, Database
from hublet.repos import blobs_store
from hublet.repos.xet.store import add_files
from hublet.storage import store
from hublet.storage.object_store import ObjectStore, open_store
from hublet.storage.records import Blob, BlobSegment, CutBlob, Xorb
from hublet.storage.xet_hashes import file_hash, to_text
from hublet.storage.xorb_objects import put_xorb
from hublet.storage.xorbs import XorbLayout, form_of, verify
from storage.xet_content import make_xorb, nodes


def object_store(database: Database) -> ObjectStore:
    return open_store(database.hub.settings)


def put_xorb_object(
    database: Database, chunks: Sequence[bytes], *, scheme: int = 0
) -> tuple[Xorb, XorbLayout]:
    """Store a xorb with these chunks; return it and its layout. It has no row yet."""
    digest, data = make_xorb(chunks, scheme)
    layout = verify(data, digest)
    objects = object_store(database)
    with objects.new_spool(hashed=False) as spool:
        spool.write(data)
        return put_xorb(objects, spool, layout, form=form_of(data)), layout


async def put_xorb_row(conn: Connection, repo_id: str | None, xorb: Xorb) -> None:
    """Add the row of a xorb, and let a repository's uploads use it."""
    await store.add_xorb(conn, xorb)
    if repo_id is not None:
        await conn.execute(
            "INSERT INTO repo_xorbs (repo_id, xorb) VALUES ($1, $2) ON CONFLICT DO NOTHING",
            repo_id, xorb.name,
        )  # fmt: skip


def cut_blob(xorb: Xorb, layout: XorbLayout, chunks: Sequence[bytes]) -> CutBlob:
    """Return a blob of all chunks of a xorb, with its only segment."""
    content = b"".join(chunks)
    start_byte, end_byte = layout.stored_range(0, len(layout))
    segment = BlobSegment(
        xorb=xorb.name,
        start_chunk=0,
        end_chunk=len(layout),
        start_byte=start_byte,
        end_byte=end_byte,
        size=len(content),
    )
    blob = Blob(sha256=hashlib.sha256(content).hexdigest(), size=len(content))
    return CutBlob(blob=blob, xet_hash=to_text(file_hash(nodes(chunks))), segments=(segment,))


async def put_cut_blob(
    database: Database,
    repo_id: str | None,
    chunks: Sequence[bytes],
    *,
    scheme: int = 0,
    is_used: bool = True,
) -> tuple[Blob, Xorb]:
    """Store a blob as one xorb with these chunks, as an upload through Xet does."""
    xorb, layout = put_xorb_object(database, chunks, scheme=scheme)
    cut = cut_blob(xorb, layout, chunks)
    async with database.transaction() as conn:
        await put_xorb_row(conn, repo_id, xorb)
        await store.add_cut_blobs(conn, [cut])
        if repo_id is not None:
            await add_files(conn, repo_id, [cut])
            await blobs_store.link(conn, repo_id, [cut.blob], is_used=is_used)
    return cut.blob, xorb
