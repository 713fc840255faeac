"""Main loop of the child process: serves the hub and answers control commands through two pipes."""

import asyncio
import json
import os
import shutil
import socket
import sys
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hublet.core.config import ConfigurationError, Settings, load
from hublet.core.ids import random_bytes
from hublet.core.logs import configure
from hublet.core.startup import CannotStart
from hublet.serving import Server
from hublet.testing.child import store
from hublet.testing.child.control import Control
from hublet.testing.child.hubs import HubFactory
from hublet.testing.child.serving import HubSwitch

_TEST_DEFAULTS: dict[str, object] = {
    # Nothing of a test is worth waiting for when the next one begins.
    "server.stop_grace_seconds": 0,
    # The order of events does not hang on how fast this machine is just now.
    "mail.delay_seconds": 0,
}


def run(asked: dict[str, Any], *, listener: int, told: int) -> None:
    """Serve until the tests end; `told` is where they read."""
    folder = Path(asked["folder"])
    answers = os.fdopen(told, "w", encoding="utf-8", buffering=1)
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_run(asked, folder, socket.socket(fileno=listener), answers.write))
    except (ConfigurationError, CannotStart, OSError) as error:
        answers.write(json.dumps({"error": str(error)}) + "\n")
    finally:
        # Tests that were killed could not do it.
        shutil.rmtree(folder, ignore_errors=True)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        from uvloop import new_event_loop  # noqa: PLC0415 - not everywhere
    except ImportError:
        return None
    return new_event_loop


async def _run(
    asked: dict[str, Any],
    folder: Path,
    listener: socket.socket,
    answer: Callable[[str], object],
) -> None:
    async with _database(asked["database_url"]) as database_url:
        port = listener.getsockname()[1]
        settings = _settings(asked["settings"], database_url=database_url, port=port)
        configure(settings.logs, prefix=settings.tokens.prefix)
        stage = HubSwitch()
        hubs = HubFactory(settings, folder, token=asked["token"])
        errands = Control(hubs, stage)
        try:
            told = await errands.reset()
            listener.listen(2048)
            await _serve(stage, listener, told, errands, answer)
        finally:
            await errands.end()


def _settings(given: dict[str, Any], *, database_url: str | None, port: int) -> Settings:
    ring = "tests:" + urlsafe_b64encode(random_bytes(32)).decode()
    ours = {
        "server.test_mode": True,
        "server.host": "127.0.0.1",
        "server.port": port,
        "keys.ring": ring,
        "database.url": database_url,
    }
    return load({**_TEST_DEFAULTS, **given, **ours}, environ={})


@asynccontextmanager
async def _database(server: str | None) -> AsyncIterator[str | None]:
    if server is None:
        yield None
        return
    url = await store.create_database(server)
    try:
        yield url
    finally:
        await store.drop_database(server, url)


async def _serve(
    stage: HubSwitch,
    listener: socket.socket,
    first: dict[str, Any],
    errands: Control,
    answer: Callable[[str], object],
) -> None:
    """Tell when it serves; then run errands until the tests say no more, or a signal comes."""

    def when_ready() -> None:
        answer(json.dumps(first) + "\n")

    server = Server(stage, grace_seconds=0, when_ready=when_ready)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    running = asyncio.create_task(_serve_control(errands.run, answer))
    await asyncio.wait([serving, running], return_when=asyncio.FIRST_COMPLETED)
    server.should_exit = True
    await errands.end()
    await serving
    running.cancel()


async def _serve_control(
    run: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]], answer: Callable[[str], object]
) -> None:
    reader = asyncio.StreamReader(limit=2**24)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        answer(json.dumps(await run(json.loads(line))) + "\n")
