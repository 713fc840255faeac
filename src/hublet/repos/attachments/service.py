"""Rules of attachments: what may be uploaded, and who sees it."""

import asyncio
import string
from collections.abc import AsyncIterable

from hublet.core.clock import now
from hublet.core.database import Database, Reader
from hublet.core.ids import random_text
from hublet.repos.attachments import store
from hublet.repos.attachments.errors import AttachmentNotFound, EmptyAttachment
from hublet.repos.attachments.media import ENDINGS, largest_of
from hublet.repos.attachments.records import Attachment
from hublet.repos.blobs import store as blobs
from hublet.repos.files.uploads import spooled
from hublet.tokens.records import Caller

_NAME_LENGTH = 32


async def add(
    database: Database, caller: Caller, media_type: str, content: AsyncIterable[bytes]
) -> Attachment:
    """Keep a file of one of the allowed types; no transaction is open while it arrives."""
    data_dir = database.hub.settings.database.data_dir
    async with spooled(content, data_dir, largest=largest_of(media_type)) as spool:
        if not spool.size:
            raise EmptyAttachment
        blob = await asyncio.to_thread(spool.keep)
    attachment = Attachment(
        name=random_text(_NAME_LENGTH, string.ascii_letters + string.digits) + ENDINGS[media_type],
        user_id=caller.user_id,
        sha256=blob.sha256,
        size=blob.size,
        media_type=media_type,
        created_at=now(),
    )
    async with database.transaction() as conn:
        await blobs.add(conn, [blob])
        await store.add(conn, attachment)
    return attachment


async def get(conn: Reader, name: str) -> Attachment:
    """Return the attachment to whoever has its address: a text may be read without a token."""
    attachment = await store.find(conn, name)
    if attachment is None:
        raise AttachmentNotFound(name)
    return attachment
