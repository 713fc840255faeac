"""Getting documents and logos from strangers, through the guarded client."""

import re
from collections.abc import Mapping

from hublet.core.clock import now
from hublet.core.config import Settings
from hublet.core.errors import HubError
from hublet.core.outgoing import Answer, Outgoing, OutgoingClient
from hublet.oauth.apps.logos.pictures import MAX_LOGO_BYTES, checked_logo
from hublet.oauth.apps.logos.records import Logo
from hublet.oauth.documents.errors import DocumentRefused
from hublet.oauth.documents.freshness import freshness
from hublet.oauth.documents.records import Fetched

MAX_DOCUMENT_BYTES = 65_536
DEADLINE_SECONDS = 5.0
_OK = 200
_JSON = re.compile(r"application/(?:[a-z0-9.!#$&^_-]+\+)?json", re.IGNORECASE)
_LOGO_TYPES = {"image/png", "image/jpeg", "image/webp"}


async def fetch_document(settings: Settings, client_id: str) -> Fetched:
    """Get a document; whatever is not a plain answer of 200 is refused with the reason."""
    answer = await _get(settings, client_id, accept="application/json", most=MAX_DOCUMENT_BYTES)
    _check(answer, most=MAX_DOCUMENT_BYTES)
    if not _JSON.fullmatch(_media_type(answer.headers)):
        raise DocumentRefused("The document must come as application/json.")
    at = now()
    return Fetched(
        body=answer.body, fetched_at=at, fresh_until=at + freshness(answer.headers, now=at)
    )


async def fetch_logo(settings: Settings, logo_uri: str) -> Logo | None:
    """Get the picture that a document names; an app is shown without one that does not come."""
    answer = await _get(settings, logo_uri, accept="image/*", most=MAX_LOGO_BYTES)
    try:
        _check(answer, most=MAX_LOGO_BYTES)
        logo = checked_logo(answer.body)
    except (DocumentRefused, HubError):
        return None
    return logo if logo.media_type in _LOGO_TYPES else None


async def _get(settings: Settings, url: str, *, accept: str, most: int) -> Answer:
    request = Outgoing(
        method="GET",
        url=url,
        headers={"Accept": accept},
        deadline_seconds=DEADLINE_SECONDS,
        # One byte more tells that there is more.
        keep_bytes=most + 1,
        read_bytes=most + 1,
    )
    # Documents are kept for a while, so that a client of its own for each is cheap enough.
    async with OutgoingClient(settings) as client:
        return await client.send(request)


def _check(answer: Answer, *, most: int) -> None:
    if answer.reason is not None:
        raise DocumentRefused(answer.detail)
    if answer.status != _OK:
        # Redirects too: the address itself is the client id.
        raise DocumentRefused(f"The document must be answered with 200, not {answer.status}.")
    if answer.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise DocumentRefused("The document must not be compressed.")
    if len(answer.body) > most:
        raise DocumentRefused(f"The document must have at most {most} bytes.")


def _media_type(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip()
