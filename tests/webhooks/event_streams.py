"""Client of the event streams of the real application, without a socket in between."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI
from starlette.types import Message

from hublet.app import with_edge
from patience import SOON_SECONDS
from people import Headers


@dataclass(slots=True)
class StreamClient:
    """Client of an event stream: reads what was received, event by event."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    _messages: asyncio.Queue[Message] = field(default_factory=asyncio.Queue)
    _left: asyncio.Event = field(default_factory=asyncio.Event)
    _text: str = ""
    _ended: bool = False

    async def receive(self) -> Message:
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def begin(self) -> None:
        start = await asyncio.wait_for(self._messages.get(), SOON_SECONDS)
        assert start["type"] == "http.response.start", start
        self.status = start["status"]
        self.headers = {name.decode(): value.decode() for name, value in start["headers"]}

    async def read_piece(self, *, within: float = SOON_SECONDS) -> None:
        """Wait for more of the body, and keep it for `block`."""
        message = await asyncio.wait_for(self._messages.get(), within)
        self._text += message["body"].decode()
        self._ended = not message.get("more_body", False)

    async def block(self, *, within: float = SOON_SECONDS) -> dict[str, str] | None:
        """Return the fields of the next block, a comment under an empty name; None at the end."""
        while "\n\n" not in self._text and not self._ended:
            await self.read_piece(within=within)
        if "\n\n" not in self._text:
            return None
        block, _, self._text = self._text.partition("\n\n")
        return {name: value.strip() for name, _, value in map(_split, block.split("\n"))}

    async def delivery(self, *, within: float = SOON_SECONDS) -> dict[str, Any]:
        """Return the delivery of the next event."""
        # All in all: comments that keep the stream alive must not prolong it.
        async with asyncio.timeout(within):
            while True:
                block = await self.block()
                assert block is not None, "The stream has ended."
                if "data" in block:
                    assert block["event"] == "delivery"
                    delivery: dict[str, Any] = json.loads(block["data"])
                    return delivery

    async def ends(self) -> bool:
        """Tell whether the stream ends soon; what it says before that does not matter."""
        try:
            async with asyncio.timeout(SOON_SECONDS):
                while await self.block() is not None:
                    pass
        except TimeoutError:
            return False
        return True

    async def receives_nothing(self) -> bool:
        try:
            await self.delivery(within=0.6)
        except TimeoutError:
            return True
        return False

    def leave(self) -> None:
        self._left.set()


def _split(line: str) -> tuple[str, str, str]:
    return line.partition(":")


@asynccontextmanager
async def open_stream(
    app: FastAPI, path: str, headers: Headers, *, method: str = "GET", since: str | None = None
) -> AsyncIterator[StreamClient]:
    """Open a stream; leave it at the end and see that the application notices."""
    given = headers if since is None else headers | {"Last-Event-ID": since}
    listener = StreamClient()
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in given.items()],
        "client": ("127.0.0.1", 9),
        "server": ("hub.test", 80),
    }
    put = listener._messages.put  # noqa: SLF001 - its own
    answering = asyncio.ensure_future(with_edge(app)(scope, listener.receive, put))
    try:
        await listener.begin()
        if path.endswith("/stream") and listener.status == 200:
            # Its first words say that whatever is committed from now on is told.
            await listener.read_piece()
        yield listener
    finally:
        listener.leave()
        await asyncio.wait_for(answering, SOON_SECONDS)
