"""How a file gets into a bucket: its bytes to the disk first, then the row that makes it real."""

import asyncio
from collections.abc import AsyncIterable

from hublet.core.clock import now
from hublet.core.database import Database
from hublet.repos import service as repos
from hublet.repos.blobs import store as blobs
from hublet.repos.files import service, store
from hublet.repos.files.digests import check_digests
from hublet.repos.files.errors import ConditionFailed
from hublet.repos.files.records import File, Upload
from hublet.repos.files.uploads import spooled
from hublet.repos.records import RepoAddress, Right
from hublet.tokens.records import Caller


async def put(
    database: Database,
    caller: Caller,
    address: RepoAddress,
    upload: Upload,
    content: AsyncIterable[bytes],
) -> File:
    """Put a file in its place; no transaction is open while its bytes arrive."""
    await _check_before(database, caller, address, upload)
    limit = database.hub.settings.limits.file_bytes
    async with spooled(content, database.hub.settings.database.data_dir, largest=limit) as spool:
        check_digests(upload, sha256=spool.sha256)
        blob = await asyncio.to_thread(spool.keep)
    at = now()
    file = File(
        path=upload.path,
        sha256=blob.sha256,
        size=blob.size,
        media_type=upload.media_type,
        modified_at=upload.modified_at or at,
        uploaded_at=at,
    )
    async with database.transaction() as conn:
        repo = await repos.get(conn, caller, address, Right.write)
        await blobs.add(conn, [blob])
        await service.change(conn, caller, repo, [file], on=upload.condition)
    return file


async def _check_before(
    database: Database, caller: Caller, address: RepoAddress, upload: Upload
) -> None:
    """Refuse what would be refused in the end before anything large is sent."""
    async with database.read() as conn:
        repo = await repos.get(conn, caller, address, Right.write)
        if not upload.condition.holds(await store.find(conn, repo.id, upload.path)):
            raise ConditionFailed(upload.path)
