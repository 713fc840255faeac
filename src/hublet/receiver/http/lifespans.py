"""The lifespan of ASGI, from both sides: told to us, and told on to a page of one's own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from starlette.types import ASGIApp, Message, Receive, Send


async def follow(lifespan: AbstractAsyncContextManager[None], receive: Receive, send: Send) -> None:
    """Hold a lifespan open for as long as the server says."""
    await receive()
    try:
        async with lifespan:
            await send({"type": "lifespan.startup.complete"})
            await receive()
    except Exception as error:
        await send({"type": "lifespan.startup.failed", "message": str(error)})
        raise
    await send({"type": "lifespan.shutdown.complete"})


@asynccontextmanager
async def lifespan_of(application: ASGIApp) -> AsyncIterator[None]:
    """Start an application and stop it at the end; one that knows no lifespan is left alone."""
    told: asyncio.Queue[Message] = asyncio.Queue()
    heard: asyncio.Queue[Message | None] = asyncio.Queue()

    async def live() -> None:
        scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}
        try:
            await application(scope, told.get, heard.put)
        finally:
            await heard.put(None)

    task = asyncio.create_task(live())
    await told.put({"type": "lifespan.startup"})
    started = await heard.get()
    if started is not None and started["type"] == "lifespan.startup.failed":
        await task
        raise RuntimeError(f"The page could not be started: {started.get('message', '')}")
    yield
    await told.put({"type": "lifespan.shutdown"})
    # Whoever does not know it has raised long ago.
    await asyncio.wait({task})
    if started is not None:
        task.result()
    else:
        task.exception()
