"""The outermost door: hosts of jobs to one side, the hub to the other, and never across."""

from collections.abc import Awaitable, Callable
from typing import Any

from hublet.jobs.reaching.exchanges import Receive, Send
from hublet.jobs.reaching.proxy import Ports

Application = Callable[[Any, Receive, Send], Awaitable[None]]


class Entrance:
    def __init__(self, hub: Application, ports: Ports) -> None:
        self._hub = hub
        self._ports = ports

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            for name, value in scope["headers"]:
                if name == b"host" and self._ports.hosts.are_under(value):
                    await self._ports(scope, receive, send)
                    return
        await self._hub(scope, receive, send)
