"""As much of a Docker engine as somebody needs who is let in: its containers are this machine."""

import asyncio
import json
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_UPGRADED = b"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"


@dataclass(slots=True)
class Engine:
    """The requests for an exec, by number, and how each ended."""

    requests: list[dict[str, Any]] = field(default_factory=list)
    codes: dict[str, int | None] = field(default_factory=dict)
    resized: list[str] = field(default_factory=list)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            method, path, _ = head.decode().split(" ", 2)
            fields = dict(line.lower().split(": ", 1) for line in head.decode().split("\r\n")[1:-2])
            body = await reader.readexactly(int(fields.get("content-length", 0)))
            name = path.split("/")[-2] if "/exec/" in path else ""
            if path.endswith("/start") and not json.loads(body)["Detach"]:
                writer.write(_UPGRADED)
                await self._run(self.requests[int(name)], name, reader, writer)
                writer.close()
                return
            answer = json.dumps(await self._answer(method, path, name, body)).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
            writer.write(b"Content-Length: %d\r\n\r\n" % len(answer) + answer)

    async def _answer(self, method: str, path: str, name: str, body: bytes) -> Any:
        if path.endswith("/version"):
            return {"ApiVersion": "1.41", "Version": "0"}
        if method == "POST" and path.endswith("/exec"):
            self.requests.append(json.loads(body))
            return {"Id": str(len(self.requests) - 1)}
        if path.endswith("/start"):
            request = self.requests[int(name)]
            process = await asyncio.create_subprocess_exec(*request["Cmd"])
            await process.wait()
        if "/resize?" in path:
            self.resized.append(path.partition("?")[2])
        return {"ExitCode": self.codes.get(name), "ProcessConfig": {"tty": False}}

    async def _run(
        self,
        request: dict[str, Any],
        name: str,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        process = await asyncio.create_subprocess_exec(
            *request["Cmd"],
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={"PATH": "/usr/bin:/bin"} | dict(pair.split("=", 1) for pair in request["Env"]),
        )
        assert process.stdin is not None
        feeding = asyncio.create_task(_feed(reader, process.stdin))
        await asyncio.gather(
            _send_json(process.stdout, writer, 1),
            _send_json(process.stderr, writer, 2),
            process.wait(),
        )
        feeding.cancel()
        self.codes[name] = process.returncode


async def _feed(reader: asyncio.StreamReader, to: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        to.write(data)
        await to.drain()
    to.close()


async def _send_json(
    source: asyncio.StreamReader | None, writer: asyncio.StreamWriter, kind: int
) -> None:
    assert source is not None
    while data := await source.read(65536):
        writer.write(struct.pack(">BxxxL", kind, len(data)) + data)
        await writer.drain()


@asynccontextmanager
async def an_engine(path: Path) -> AsyncIterator[Engine]:
    """Listen at a path until the end."""
    engine = Engine()
    tasks: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(_served(engine, reader, writer))
        tasks.add(task)

    server = await asyncio.start_unix_server(connected, path)
    try:
        yield engine
    finally:
        server.close()
        if tasks:
            await asyncio.wait(tasks, timeout=5)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _served(
    engine: Engine, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    try:
        await engine.answer(reader, writer)
    except asyncio.IncompleteReadError:
        return
    finally:
        writer.close()
