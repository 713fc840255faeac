"""Main loop of the child process: serves the hub, and runs control commands from a pipe."""

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

import hublet.app  # noqa: F401 - before the settings are known there is time for it
from hublet.cli.local_hub import run_loop
from hublet.core.config import ConfigurationError, ServerSettings, Settings, load
from hublet.core.ids import random_bytes
from hublet.core.logs import configure
from hublet.core.startup import CannotStart
from hublet.serving import Server, spare_collections
from hublet.testing.child import store
from hublet.testing.child.control import Control
from hublet.testing.child.hubs import HubFactory
from hublet.testing.child.serving import HubSwitch

_TEST_DEFAULTS: dict[str, object] = {
    # A reset does not wait for the requests of the test before.
    "server.stop_grace_seconds": 0,
    # Mails are sent at once, however fast this machine is.
    "mail.delay_seconds": 0,
}


def run(options: dict[str, Any], *, listener: int, replies: int) -> None:
    """Serve until the tests end; `replies` is the descriptor from which they read."""
    folder = Path(options["folder"])
    output = os.fdopen(replies, "w", encoding="utf-8", buffering=1)
    try:
        run_loop(_run(options, folder, socket.socket(fileno=listener), output.write))
    except (ConfigurationError, CannotStart, OSError) as error:
        output.write(json.dumps({"error": str(error)}) + "\n")
    finally:
        # Tests that were killed could not remove it.
        shutil.rmtree(folder, ignore_errors=True)


async def _run(
    options: dict[str, Any],
    folder: Path,
    listener: socket.socket,
    reply: Callable[[str], object],
) -> None:
    async with _database(options["database_url"]) as database_url:
        port = listener.getsockname()[1]
        settings = _settings(options["settings"], database_url=database_url, port=port)
        configure(settings.logs, prefix=settings.tokens.prefix)
        switch = HubSwitch()
        hubs = HubFactory(settings, folder, token=options["token"])
        control = Control(hubs, switch)
        try:
            first = await control.reset()
            listener.listen(2048)
            await _serve(switch, listener, first, control, reply)
        finally:
            await control.end()


def _settings(given: dict[str, Any], *, database_url: str | None, port: int) -> Settings:
    ring = "tests:" + urlsafe_b64encode(random_bytes(32)).decode()
    ours = {
        "server.test_mode": True,
        "server.host": "127.0.0.1",
        "server.port": port,
        "keys.ring": ring,
        "database.url": database_url,
    }
    # The tests reserved the port on this address alone.
    local = {"server.base_url": f"http://127.0.0.1:{port}"}
    return load({**_TEST_DEFAULTS, **local, **given, **ours}, environ={})


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
    switch: HubSwitch,
    listener: socket.socket,
    first: dict[str, Any],
    control: Control,
    reply: Callable[[str], object],
) -> None:
    """Serve and run control commands until the tests close the pipe, or a signal comes."""

    def when_listening() -> None:
        spare_collections()
        reply(json.dumps(first) + "\n")

    settings = ServerSettings(test_mode=True, stop_grace_seconds=0)
    server = Server(switch, settings, when_listening=when_listening)
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    running = asyncio.create_task(_serve_control(control.run, reply))
    await asyncio.wait([serving, running], return_when=asyncio.FIRST_COMPLETED)
    server.should_exit = True
    await control.end()
    await serving
    running.cancel()


async def _serve_control(
    run: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]], reply: Callable[[str], object]
) -> None:
    reader = asyncio.StreamReader(limit=2**24)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        reply(json.dumps(await run(json.loads(line))) + "\n")
