"""One exchange of ASGI, message by message, as a server has it."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

from hublet.receiver import WebhooksServer


class Exchange:
    """A POST whose body comes piece by piece, only as it is asked for."""

    def __init__(
        self,
        app: WebhooksServer,
        path: str,
        headers: Mapping[str, str],
        pieces: AsyncIterator[bytes],
    ) -> None:
        self._app = app
        self._pieces = pieces
        self._scope = {
            "type": "http",
            "method": "POST",
            "path": path,
            "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }
        # Pieces that were asked for so far.
        self.read = 0
        self.sent: list[Any] = []
        self.answered = asyncio.Event()

    async def run(self) -> None:
        await self._app(self._scope, self._receive, self._send)

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent)

    async def _receive(self) -> dict[str, Any]:
        try:
            piece = await anext(self._pieces)
        except StopAsyncIteration:
            return {"type": "http.request", "body": b"", "more_body": False}
        except ConnectionResetError:
            return {"type": "http.disconnect"}
        self.read += 1
        return {"type": "http.request", "body": piece, "more_body": True}

    async def _send(self, message: Any) -> None:
        self.sent.append(message)
        if message["type"] == "http.response.body":
            self.answered.set()
