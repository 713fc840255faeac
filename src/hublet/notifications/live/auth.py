"""Where a stream goes on, and whether who listens still may."""

from typing import Annotated

from fastapi import Header, Request

from hublet.core.http.exchange import exchange_of
from hublet.tokens.auth import caller_of

LastEventId = Annotated[
    str | None,
    Header(
        alias="Last-Event-ID",
        pattern="^[0-9]{1,16}$",
        description="The `id` of the last event that was heard.",
    ),
]


async def check_again(request: Request) -> None:
    """Refuse a token that was revoked since the request began."""
    exchange_of(request).known_caller = None
    await caller_of(request)
