"""Which kinds of files can be attached, and how large they may be."""

from hublet.repos.attachments.errors import NotAnAttachment

# What the public client sends, by its own list, and documents. SVG is missing on purpose: it can
# carry scripts.
ENDINGS = {
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

# The limits that the public client tells of: 10 MB, and 50 MB for videos.
LARGEST = 10 << 20
LARGEST_VIDEO = 50 << 20


def attached_type(content_type: str) -> str:
    """Return the media type without its parameters, or refuse one that cannot be attached."""
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type not in ENDINGS:
        raise NotAnAttachment(ENDINGS)
    return media_type


def largest_of(media_type: str) -> int:
    return LARGEST_VIDEO if media_type.startswith("video/") else LARGEST
