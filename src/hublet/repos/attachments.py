"""Attachments: pictures, videos, sounds and PDFs that discussions and comments show."""

import asyncio
import string
from collections.abc import AsyncIterable

from hublet.core.clock import now
from hublet.core.database import Database, Reader
from hublet.core.ids import random_text
from hublet.repos import blobs_store
from hublet.repos.errors import AttachmentNotFound, InvalidUpload
from hublet.repos.records import Attachment
from hublet.storage.contents import put_blob, spool_upload
from hublet.storage.object_store import open_store
from hublet.storage.store import add_blobs
from hublet.storage.xorbs import Buffer
from hublet.tokens.records import Caller

# The types that the public client sends, and PDF. SVG is missing on purpose: it can carry scripts.
SUFFIXES = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "image/webp": ".webp",
    "video/mp4": ".mp4",
    "video/quicktime": ".mov",
    "video/webm": ".webm",
    "audio/mpeg": ".mp3",
    "audio/wav": ".wav",
    "application/pdf": ".pdf",
}

# The limits that the public client documents: 10 MB, and 50 MB for videos.
LARGEST = 10 << 20
LARGEST_VIDEO = 50 << 20

_NAME_LENGTH = 32


def check_media_type(content_type: str) -> str:
    """Return the media type without its parameters, or refuse one that cannot be attached."""
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type not in SUFFIXES:
        raise InvalidUpload(f"Content-Type must be one of {', '.join(SUFFIXES)}.")
    return media_type


def size_limit(media_type: str) -> int:
    return LARGEST_VIDEO if media_type.startswith("video/") else LARGEST


async def add(
    database: Database, caller: Caller, media_type: str, content: AsyncIterable[Buffer]
) -> Attachment:
    """Store a file of one of the allowed types; no transaction is open while it arrives."""
    store = open_store(database.hub.settings)
    async with spool_upload(store, content, largest=size_limit(media_type)) as spool:
        if not spool.size:
            raise InvalidUpload("The body must be the content of a file; it is empty.")
        blob = await asyncio.to_thread(put_blob, store, spool)
    attachment = Attachment(
        name=random_text(_NAME_LENGTH, string.ascii_letters + string.digits) + SUFFIXES[media_type],
        user_id=caller.user_id,
        sha256=blob.sha256,
        size=blob.size,
        media_type=media_type,
        created_at=now(),
    )
    async with database.transaction() as conn:
        await add_blobs(conn, [blob])
        await blobs_store.add_attachment(conn, attachment)
    return attachment


async def get(conn: Reader, name: str) -> Attachment:
    """Return the attachment of this name; the secret name is the only credential."""
    attachment = await blobs_store.find_attachment(conn, name)
    if attachment is None:
        raise AttachmentNotFound(name)
    return attachment
