"""The order of a start: the worker and the health of a process come before its application is loaded."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx2
import pytest

import hublet
from hublet import serving
from hublet.core.config import load
from hublet.core.startup import open_hub
from hublet.first_start import provide_administrator
from hublet.serving import listen, port_of
from hublet.worker import Worker
from patience import SOON_SECONDS

# What the application alone needs, and takes long to import.
LATER = {"fastapi", "hublet.app", "hublet.web", "jinja2", "scim2_models", "email_validator"}

_SCRIPT = """
import json, sys
import hublet.cli.serving, hublet.serving
from hublet.core import outbox, queue
def registered():
    return [sorted(queue.handlers), sorted(map(str, outbox._in_transaction.items()))]
modules, before = sorted(sys.modules), registered()
import hublet.app
print(json.dumps({"modules": modules, "complete": before == registered()}))
"""


class Start:
    """A hub that starts in this process; its application is loaded when the test says so."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self.client = client
        self.may_load = asyncio.Event()
        self.error: Exception | None = None
        self.is_ready = False
        self.has_worker = asyncio.Event()
        self.has_signal = asyncio.Event()
        self.task: asyncio.Task[None] | None = None

    async def load(self) -> None:
        await self.may_load.wait()
        if self.error is not None:
            raise self.error

    def be_ready(self, _first: object) -> None:
        self.is_ready = True

    async def answers(self, path: str, **options: object) -> httpx2.Response:
        return await self.client.get(path, **options)  # type: ignore[arg-type]


def note(monkeypatch: pytest.MonkeyPatch, kind: type, name: str, event: asyncio.Event) -> None:
    """Set an event when a method was called."""
    method: Callable[..., None] = getattr(kind, name)

    def noted(*arguments: object) -> None:
        method(*arguments)
        event.set()

    monkeypatch.setattr(kind, name, noted)


@pytest.fixture
async def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Start]:
    settings = load({"database.data_dir": tmp_path, "server.port": 0}, environ={})
    listeners = listen("127.0.0.1", 0)
    async with httpx2.AsyncClient(
        base_url=f"http://127.0.0.1:{port_of(listeners)}", trust_env=False
    ) as client:
        start = Start(client)
        note(monkeypatch, Worker, "start", start.has_worker)
        note(monkeypatch, serving.Server, "handle_exit", start.has_signal)
        monkeypatch.setattr(serving, "load_application", start.load)
        monkeypatch.setattr(serving, "spare_collections", lambda: None)
        start.task = asyncio.create_task(
            serving.serve(settings, listeners, when_ready=start.be_ready)
        )
        try:
            yield start
        finally:
            start.may_load.set()
            if not start.task.done():
                signal.raise_signal(signal.SIGTERM)
            with suppress(ImportError):
                await start.task


@asynccontextmanager
async def asking(start: Start, path: str) -> AsyncIterator[asyncio.Task[httpx2.Response]]:
    """Send a request that waits, and yield it once the hub has it."""
    request = asyncio.create_task(start.answers(path))
    await start.answers("/healthz")
    yield request


def test_what_comes_first_is_whole_and_loads_no_application() -> None:
    done = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, check=True)
    found = json.loads(done.stdout)

    assert LATER & set(found["modules"]) == set()
    # The worker knows every task, and every reaction that belongs to a transaction.
    assert found["complete"]


_IMPORT_ALL = """
import importlib, sys
for name in sys.stdin.read().split():
    importlib.import_module(name)
"""


def test_every_module_can_be_imported() -> None:
    # What is imported when it is first needed must not fail there.
    root = Path(hublet.__file__).parent
    names = [
        ".".join(("hublet", *path.relative_to(root).with_suffix("").parts))
        for path in sorted(root.rglob("*.py"))
        # Programs of their own begin to run.
        if not path.name.endswith(("__main__.py", "program.py"))
        and not {"shim", "attach"} & set(path.parts)
    ]
    done = subprocess.run(
        [sys.executable, "-c", _IMPORT_ALL],
        input=" ".join(names),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")


async def test_a_process_that_loads_is_alive_and_not_ready(start: Start) -> None:
    alive, ready = await start.answers("/healthz"), await start.answers("/readyz")
    head = await start.client.head("/healthz", headers={"X-Request-Id": "mine"})

    assert (alive.status_code, alive.json()) == (200, {"status": "ok"})
    assert (ready.status_code, head.status_code, head.content) == (503, 200, b"")
    assert ready.json() == {
        "error": "This process is starting: send requests to another one, or wait a moment."
    }
    assert ready.headers["retry-after"] == "1"
    assert head.headers["x-request-id"] == "mine"
    assert not start.is_ready


async def test_health_looks_the_same_before_and_after(start: Start) -> None:
    before = await start.answers("/healthz")
    start.may_load.set()
    await start.answers("/api/whoami-v2")
    after = await start.answers("/healthz")

    def said(response: httpx2.Response) -> dict[str, str]:
        return {k: v for k, v in response.headers.items() if k not in {"x-request-id", "date"}}

    assert said(before) == said(after)
    assert before.content == after.content


async def test_the_worker_works_before_the_application_is_loaded(start: Start) -> None:
    assert (await start.answers("/healthz")).status_code == 200

    assert start.has_worker.is_set()
    assert not start.is_ready


async def test_a_request_waits_for_the_application(start: Start) -> None:
    async with asking(start, "/api/whoami-v2") as request:
        assert not request.done()
        start.may_load.set()
        response = await request

    # The hub itself has answered: nobody is signed in.
    assert response.status_code == 401
    assert start.is_ready
    assert (await start.answers("/readyz")).status_code == 200


async def test_a_job_is_never_answered_for(start: Start) -> None:
    host = f"{'0' * 24}--8000.jobs.localhost"
    request = asyncio.create_task(start.answers("/healthz", headers={"Host": host}))
    await start.answers("/healthz")
    assert not request.done()
    start.may_load.set()

    assert (await request).status_code != 200


async def test_an_application_that_cannot_be_loaded_ends_the_process(start: Start) -> None:
    start.error = ImportError("No module named 'hublet.nothing'")
    async with asking(start, "/api/models") as request:
        start.may_load.set()
        response = await request

    assert response.status_code == 503
    assert response.json() == {"error": "This process stopped while it started."}
    assert start.task is not None
    with pytest.raises(ImportError, match=r"hublet\.nothing"):
        await start.task


async def test_a_start_that_fails_leaves_the_first_administrator_to_the_next_one(
    start: Start, tmp_path: Path
) -> None:
    start.error = ImportError("No module named 'hublet.nothing'")
    start.may_load.set()
    assert start.task is not None
    with pytest.raises(ImportError):
        await start.task

    settings = load({"database.data_dir": tmp_path}, environ={})
    async with open_hub(settings) as database:
        assert await provide_administrator(database) is not None


async def test_a_signal_during_the_start_ends_the_process(start: Start) -> None:
    async with asking(start, "/api/models") as request:
        signal.raise_signal(signal.SIGTERM)
        await asyncio.wait_for(start.has_signal.wait(), SOON_SECONDS)
        start.may_load.set()
        response = await request

    assert response.status_code == 503
    assert start.task is not None
    await start.task
    assert not start.is_ready


async def test_the_application_is_loaded_beside_the_loop() -> None:
    before = sys.getswitchinterval()

    await serving.load_application()

    assert sys.getswitchinterval() == before
