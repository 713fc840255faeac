"""A small, steady load of everything that a hub is used for, and how long each thing took."""

import asyncio
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from benchmarks.content import NDJSON, commit_body
from benchmarks.hubs import ServedHub
from benchmarks.latencies import STEP_MICROS
from benchmarks.processes import clean_environment

_REPOS = 5
_STREAMS = 5
# A stream is opened anew after so long.
_STREAM_SECONDS = 60.0
_PATIENCE_SECONDS = 60.0
_GIT = ("git", "-c", "user.name=ada", "-c", "user.email=ada@hub.test")

# How often each thing is done, in seconds from one to the next: some ten requests a second in all.
PACES: Mapping[str, float] = {
    "commit": 1.0,
    "push": 15.0,
    "comment": 0.5,
    "list": 0.25,
    "job": 5.0,
    "stream": _STREAM_SECONDS / _STREAMS,
}


@dataclass(slots=True)
class SoakTally:
    """Latencies by operation and by part of the run, as `benchmarks.latencies` counts them."""

    parts: int
    seconds: float
    began: float = field(default_factory=time.monotonic)
    latencies: dict[str, list[Counter[int]]] = field(default_factory=dict)
    failures: Counter[str] = field(default_factory=Counter)

    def note(self, operation: str, seconds: float) -> None:
        part = min(int((time.monotonic() - self.began) / self.seconds * self.parts), self.parts - 1)
        parts = self.latencies.setdefault(operation, [Counter() for _ in range(self.parts)])
        parts[part][int(seconds * 1e6) // STEP_MICROS] += 1

    def count(self, operation: str) -> int:
        return sum(sum(part.values()) for part in self.latencies.get(operation, ()))


class SoakLoad:
    """The clients of one hub; each thing has its own pace, whatever the others do."""

    def __init__(self, hub: ServedHub, token: str, folder: Path) -> None:
        self._port, self._token, self._folder = hub.port, token, folder
        self._tally = SoakTally(parts=1, seconds=0.0)
        self._client = httpx2.AsyncClient(
            base_url=f"http://127.0.0.1:{hub.port}",
            headers={"authorization": f"Bearer {token}"},
            timeout=_PATIENCE_SECONDS,
            trust_env=False,
        )
        self._numbers: Counter[str] = Counter()
        self._running = set[asyncio.Task[None]]()
        # Of two pushes at once, one is refused.
        self._pushing = asyncio.Lock()

    async def prepare(self, receivers: Sequence[str]) -> None:
        """Make the repositories, a discussion in each, and webhooks at all receivers."""
        for number in range(_REPOS):
            name = f"engine-{number}"
            await self._ask("POST", "/api/repos/create", json={"name": name})
            opened = {"title": "Does it run?", "description": "Please."}
            await self._ask("POST", f"/api/models/ada/{name}/discussions", json=opened)
        watched = [{"type": "user", "name": "ada"}]
        for url in receivers:
            body = {"url": url, "watched": watched, "domains": ["repo", "discussion"]}
            await self._ask("POST", "/api/settings/webhooks", json=body)
        await self._git("init", "-q", str(self._folder))
        await self._git("-C", str(self._folder), "commit", "-q", "--allow-empty", "-m", "First")

    async def run(self, tally: SoakTally, *, faster: float = 1.0) -> None:
        """Do everything at its pace for as long as the tally lasts."""
        self._tally, tally.began = tally, time.monotonic()
        operations: dict[str, Callable[[], Awaitable[None]]] = {
            "commit": self._commit,
            "push": self._push,
            "comment": self._comment,
            "list": self._list,
            "job": self._job,
            "stream": self._stream,
        }
        async with asyncio.TaskGroup() as group:
            for name, operation in operations.items():
                group.create_task(
                    self._repeat(name, operation, tally.seconds, PACES[name] / faster)
                )
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def close(self) -> None:
        await self._client.aclose()

    async def _repeat(
        self, name: str, operation: Callable[[], Awaitable[None]], seconds: float, pace: float
    ) -> None:
        start = time.monotonic()
        for number in range(int(seconds / pace)):
            await asyncio.sleep(max(0.0, start + number * pace - time.monotonic()))
            task = asyncio.create_task(self._do(name, operation))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _do(self, name: str, operation: Callable[[], Awaitable[None]]) -> None:
        begun = time.perf_counter()
        try:
            await operation()
        except (httpx2.HTTPError, RuntimeError) as error:
            self._tally.failures[f"{name}: {type(error).__name__}: {error}"[:200]] += 1
        else:
            if name != "stream":
                self._tally.note(name, time.perf_counter() - begun)

    def _next(self, name: str) -> int:
        self._numbers[name] += 1
        return self._numbers[name]

    async def _ask(self, method: str, path: str, **given: Any) -> httpx2.Response:
        response = await self._client.request(method, path, **given)
        response.raise_for_status()
        return response

    async def _commit(self) -> None:
        number = self._next("commit")
        await self._ask(
            "POST",
            f"/api/models/ada/engine-{number % _REPOS}/commit/main",
            content=commit_body({f"counters/{number % 50}.txt": b"%08d\n" % number}),
            headers={"content-type": NDJSON},
        )

    async def _push(self) -> None:
        async with self._pushing:
            await self._push_next()

    async def _push_next(self) -> None:
        folder, number = str(self._folder), self._next("push")
        await self._git("-C", folder, "commit", "-q", "--allow-empty", "-m", f"Number {number}")
        url = f"http://ada:{self._token}@127.0.0.1:{self._port}/ada/engine-0"
        await self._git("-C", folder, "push", "-q", url, "HEAD:refs/heads/soak")

    async def _git(self, *arguments: str) -> None:
        process = await asyncio.create_subprocess_exec(
            *_GIT,
            *arguments,
            env=clean_environment({"GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_GLOBAL": os.devnull}),
            stderr=asyncio.subprocess.PIPE,
        )
        _, told = await process.communicate()
        if process.returncode:
            raise RuntimeError(told.decode(errors="replace").replace(self._token, "…")[-200:])

    async def _comment(self) -> None:
        number = self._next("comment")
        path = f"/api/models/ada/engine-{number % _REPOS}/discussions/1/comment"
        await self._ask("POST", path, json={"comment": f"It runs for the {number}th time."})

    async def _list(self) -> None:
        paths = (
            "/api/models?limit=20",
            "/api/models/ada/engine-1/discussions",
            "/api/notifications",
            "/api/jobs/ada?limit=20",
            "/api/models/ada/engine-2/tree/main",
            "/api/whoami-v2",
        )
        await self._ask("GET", paths[self._next("list") % len(paths)])

    async def _job(self) -> None:
        body = {"dockerImage": "any", "flavor": "cpu-basic", "command": ["echo", "hello"]}
        job_id = (await self._ask("POST", "/api/jobs/ada", json=body)).json()["id"]
        while True:
            status = (await self._ask("GET", f"/api/jobs/ada/{job_id}")).json()["status"]
            if status["stage"] == "COMPLETED":
                return
            if status["stage"] not in {"SCHEDULING", "RUNNING"}:
                raise RuntimeError(f"A job ended as {status['stage']}: {status['message']}")
            await asyncio.sleep(0.1)

    async def _stream(self) -> None:
        """Follow the inbox for a minute; what counts is the time to the first event."""
        begun = time.perf_counter()
        async with self._client.stream("GET", "/api/notifications/stream") as response:
            response.raise_for_status()
            await anext(response.aiter_bytes())
            self._tally.note("stream", time.perf_counter() - begun)
            await asyncio.sleep(_STREAM_SECONDS)
