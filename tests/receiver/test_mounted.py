"""The receiver inside another application: under a prefix, with its lifespan or without."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount

from hublet.receiver import WebhookPayload, WebhooksServer
from patience import SOON_SECONDS
from receiver.deliveries import JSON, PAYLOAD, get, post, signed

SECRET = JSON | {"x-webhook-secret": "coal"}


def a_server(**options: Any) -> tuple[WebhooksServer, list[str]]:
    server = WebhooksServer(**(dict[str, Any](webhook_secret="coal") | options))
    told: list[str] = []

    @server.add_webhook
    async def hear(payload: WebhookPayload) -> str:
        told.append(payload.repo.name)
        return payload.repo.name

    return server, told


def in_fastapi(server: WebhooksServer, prefix: str) -> Any:
    app = FastAPI()

    @app.get("/own")
    async def own() -> str:
        return "theirs"

    app.mount(prefix, server)
    return app


def in_starlette(server: WebhooksServer, prefix: str) -> Any:
    return Starlette(routes=[Mount(prefix or "/", server)])


@pytest.mark.parametrize("mounted", [in_fastapi, in_starlette])
@pytest.mark.parametrize("prefix", ["/hooks", "/deep/down", ""])
async def test_a_mounted_receiver_works_like_one_of_its_own(mounted: Any, prefix: str) -> None:
    server, told = a_server()
    app = mounted(server, prefix)

    assert (await post(app, f"{prefix}/webhooks/hear", headers=SECRET)).json() == "ada/engine"
    assert (await post(app, f"{prefix}/webhooks/hear")).status_code == 401
    slash = await post(app, f"{prefix}/webhooks/hear/", headers=SECRET)
    assert slash.headers["location"] == f"{prefix}/webhooks/hear"
    page = await get(app, f"{prefix}/")
    address = f"http://receiver.test{prefix}/webhooks/hear"
    assert re.findall(r"<code>(POST .*?)</code>", page.text) == [f"POST {address}"]
    assert told == [PAYLOAD["repo"]["name"]]


async def test_the_other_application_keeps_its_own() -> None:
    server, _ = a_server()
    app = in_fastapi(server, "/hooks")

    assert (await get(app, "/own")).json() == "theirs"
    assert (await get(app, "/webhooks/hear")).status_code == 404


async def test_a_path_that_only_begins_like_the_prefix_is_another() -> None:
    server, _ = a_server()
    scope_of = {"root_path": "/hook"}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await server(scope | scope_of, receive, send)

    # A server behind a proxy that takes the prefix away itself.
    assert (await post(app, "/webhooks/hear", headers=SECRET)).status_code == 200
    assert (await post(app, "/hook/webhooks/hear", headers=SECRET)).status_code == 200
    assert (await post(app, "/hooks/webhooks/hear", headers=SECRET)).status_code == 404


async def test_a_mounted_receiver_works_from_its_spool_without_a_lifespan(tmp_path: Path) -> None:
    server, told = a_server(spool=tmp_path / "spool.db")
    app = in_fastapi(server, "/hooks")

    answer = await post(app, "/hooks/webhooks/hear", headers=signed("coal"))

    assert answer.status_code == 202
    async with asyncio.timeout(SOON_SECONDS):
        while not told:
            await asyncio.sleep(0.01)
    async with server.lifespan():
        pass


async def test_with_its_lifespan_it_goes_on_with_what_was_left(tmp_path: Path) -> None:
    first, _ = a_server(spool=tmp_path / "spool.db")
    async with first.lifespan():
        spool = first._application.spool  # noqa: SLF001 - to leave something behind
        assert spool is not None
        spool._stopping = True  # noqa: SLF001
        answer = await post(first, "/webhooks/hear", headers=signed("coal"))
        assert answer.status_code == 202
    second, told = a_server(spool=tmp_path / "spool.db")
    app = FastAPI(lifespan=second.lifespan)

    async with app.router.lifespan_context(app), asyncio.timeout(SOON_SECONDS):
        while not told:
            await asyncio.sleep(0.01)

    assert told == ["ada/engine"]


async def lifespan_messages(server: WebhooksServer) -> list[dict[str, Any]]:
    """Start and stop a server as ASGI says, and return what it answered."""
    messages = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return next(messages)

    async def send(message: Any) -> None:
        sent.append(message)

    await server({"type": "lifespan"}, receive, send)
    return sent


async def test_the_lifespan_is_told_on_to_a_page_of_ones_own() -> None:
    lived: list[str] = []

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        lived.append("up")
        yield
        lived.append("down")

    server, _ = a_server(ui=FastAPI(lifespan=lifespan))

    assert await lifespan_messages(server) == [
        {"type": "lifespan.startup.complete"},
        {"type": "lifespan.shutdown.complete"},
    ]
    assert lived == ["up", "down"]


async def test_a_page_that_knows_no_lifespan_is_left_alone() -> None:
    async def page(scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] == "http"

    server, _ = a_server(ui=page)

    assert [each["type"] for each in await lifespan_messages(server)] == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
    ]


async def test_a_page_that_cannot_start_stops_the_server() -> None:
    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        raise RuntimeError("No coal.")
        yield

    server, _ = a_server(ui=FastAPI(lifespan=lifespan))

    with pytest.raises(RuntimeError, match=r"No coal\."):
        await lifespan_messages(server)


async def test_a_web_socket_is_for_a_page_of_ones_own() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    async def page(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "websocket.accept"})

    await a_server()[0]({"type": "websocket", "path": "/"}, receive, send)
    await a_server(ui=page)[0]({"type": "websocket", "path": "/"}, receive, send)

    assert sent == [{"type": "websocket.close", "code": 1000}, {"type": "websocket.accept"}]
