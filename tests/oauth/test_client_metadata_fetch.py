"""Client ID metadata documents over the network: fetched, kept, fetched again."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import httpx2
import pytest
from structlog.testing import capture_logs

from hublet.core import clock
from hublet.core.config import Settings
from hublet.core.database import Database, open_database
from hublet.core.hub import Hub
from hublet.core.sealing import KeyRing
from hublet.oauth.access import service as access
from hublet.oauth.access.records import Origin
from hublet.oauth.apps.service import find_app
from hublet.oauth.client_metadata import fetcher
from hublet.oauth.client_metadata import service as documents
from hublet.oauth.client_metadata.fetcher import (
    FETCHES_OF_ALL_DOCUMENTS,
    FETCHES_OF_ONE_DOCUMENT,
    MAX_CONCURRENT_FETCHES,
    MAX_DOCUMENT_BYTES,
)
from hublet.oauth.clients import resolve_app
from hublet.oauth.errors import UnknownApp
from hublet.oauth.records import AppKind, OAuthApp, Permission, Via
from hublet.tokens.records import ALL_SCOPES
from oauth.app_requests import PNG
from outgoing_servers import Stranger, Talk, answering, certificate, dripping, hanging, serving
from patience import SOON_SECONDS
from people import a_user


@pytest.fixture
async def hub(settings: Settings) -> AsyncIterator[Database]:
    """A hub on loopback, which may call loopback; its limits are those of a real one."""
    settings = replace(
        settings,
        server=replace(settings.server, base_url="http://localhost:8000"),
        outgoing=replace(settings.outgoing, allow=(ip_network("127.0.0.0/8"),)),
    )
    async with open_database(Hub(settings=settings, keys=KeyRing.new())) as database:
        yield database


class Site:
    """A site that serves a document, and counts who asks."""

    def __init__(self) -> None:
        self.stated: dict[str, Any] = {}
        self.headers = "Content-Type: application/json\r\nCache-Control: max-age=600\r\n"
        self.status = "200 OK"
        self.logo: tuple[bytes, bytes] = (b"image/png", PNG)
        self.asked: list[str] = []
        self.gate: asyncio.Event | None = None
        self.address = ""

    def state(self, **more: Any) -> None:
        self.stated |= more

    async def behave(self, talk: Talk) -> None:
        while True:
            request = await talk.listen()
            self.asked.append(request.line)
            if self.gate is not None:
                await self.gate.wait()
            await talk.say(self._logo() if "/logo" in request.line else self._document())

    def _document(self) -> bytes:
        body = json.dumps(self.stated).encode()
        head = f"HTTP/1.1 {self.status}\r\n{self.headers}Content-Length: {len(body)}\r\n\r\n"
        return head.encode() + body

    def _logo(self) -> bytes:
        media_type, body = self.logo
        return b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s" % (
            media_type, len(body), body,
        )  # fmt: skip


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    site = Site()
    async with serving(site.behave) as stranger:
        site.address = _address(stranger)
        site.stated = _stated(site.address)
        yield site


def _address(stranger: Stranger, *, scheme: str = "http") -> str:
    return f"{scheme}://127.0.0.1:{stranger.port}/.well-known/oauth-cimd"


def _stated(address: str) -> dict[str, Any]:
    return {
        "client_id": address,
        "client_name": "Engine",
        "redirect_uris": ["http://localhost/cb"],
        "token_endpoint_auth_method": "none",
    }


async def refusal(database: Database, client_id: str, *, may_be_stale: bool = False) -> str:
    with pytest.raises(UnknownApp) as refused:
        await resolve_app(database, client_id, may_be_stale=may_be_stale)
    # What the network did is not for everybody.
    assert refused.value.message == "No app has this client id."
    return refused.value.reason


async def test_an_app_is_known_by_its_document(hub: Database, site: Site) -> None:
    site.state(client_uri=site.address.replace("/.well-known/oauth-cimd", "/about"))

    app = await resolve_app(hub, site.address)

    assert app == OAuthApp(
        id=app.id,
        client_id=site.address,
        kind=AppKind.document,
        name="Engine",
        client_uri=site.stated["client_uri"],
        redirect_uris=("http://localhost/cb",),
        scopes=ALL_SCOPES,
        token_seconds=28800,
        created_at=app.created_at,
        updated_at=app.updated_at,
    )
    async with hub.read() as conn:
        assert await find_app(conn, site.address) == app


async def test_the_hub_asks_as_nobody(hub: Database) -> None:
    async with serving(answering()) as stranger:
        await refusal(hub, _address(stranger))

    [request] = stranger.requests
    assert request.line == "GET /.well-known/oauth-cimd HTTP/1.1"
    assert request.headers["accept"] == "application/json"
    assert request.headers["accept-encoding"] == "identity"
    assert request.headers["user-agent"].startswith("Hublet/")
    assert request.body == b""
    assert {"cookie", "authorization", "referer"} & set(request.headers) == set()


async def test_a_document_comes_over_https(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trusted, tls = certificate(tmp_path)
    site = Site()
    allowed = replace(settings.outgoing, allow=(ip_network("127.0.0.0/8"),))
    public = replace(settings, outgoing=allowed)
    async with (
        open_database(Hub(settings=public, keys=KeyRing.new())) as database,
        serving(site.behave, tls=tls) as stranger,
    ):
        site.address = _address(stranger, scheme="https")
        site.stated = _stated(site.address)
        untrusted = await refusal(database, site.address)
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        app = await resolve_app(database, site.address)

    assert untrusted.startswith("The certificate of 127.0.0.1 is not trusted")
    assert app.name == "Engine"


async def test_a_hub_that_is_not_on_loopback_takes_https_only(
    database: Database, site: Site
) -> None:
    assert await refusal(database, site.address) == "An address begins with https://."
    assert site.asked == []


async def test_a_private_address_is_not_asked(database: Database) -> None:
    async with serving(answering()) as stranger:
        reason = await refusal(database, _address(stranger, scheme="https"))

    assert "loopback" in reason
    assert stranger.connections == 0


_BEGIN = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        pytest.param(
            "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/x\r\nContent-Length: 0\r\n\r\n",
            "The document must be answered with 200, not 302.",
            id="a redirect",
        ),
        pytest.param(
            "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
            "The document must be answered with 200, not 404.",
            id="not found",
        ),
        pytest.param(
            "HTTP/1.1 203 Other\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
            "The document must be answered with 200, not 203.",
            id="another success",
        ),
        pytest.param(
            f"{_BEGIN}Content-Length: {MAX_DOCUMENT_BYTES + 1}\r\n\r\n"
            + " " * (MAX_DOCUMENT_BYTES + 1),
            "The document must have at most 65536 bytes.",
            id="too large",
        ),
        pytest.param(
            f"{_BEGIN}Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\nxx",
            "The document must not be compressed.",
            id="compressed",
        ),
        pytest.param(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\n{}",
            "The document must come as application/json.",
            id="another type",
        ),
        pytest.param(
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
            "The document must come as application/json.",
            id="no type",
        ),
        pytest.param(
            f"{_BEGIN}Content-Length: 2\r\n\r\n{{}}",
            "client_id must be the address of the document itself.",
            id="another document",
        ),
    ],
)
async def test_whatever_is_no_plain_answer_is_refused(
    hub: Database, words: str, reason: str
) -> None:
    async with serving(answering(words.encode())) as stranger:
        assert await refusal(hub, _address(stranger)) == reason
        async with hub.read() as conn:
            assert await find_app(conn, _address(stranger)) is None


@pytest.mark.parametrize("content_type", ["application/json; charset=utf-8", "application/a+json"])
async def test_other_names_of_json_are_taken(hub: Database, site: Site, content_type: str) -> None:
    site.headers = f"Content-Type: {content_type}\r\n"

    assert (await resolve_app(hub, site.address)).name == "Engine"


async def test_a_document_of_64_kib_is_taken(hub: Database, site: Site) -> None:
    room = MAX_DOCUMENT_BYTES - len(json.dumps(site.stated | {"padding": ""}))
    site.state(padding="x" * room)

    assert (await resolve_app(hub, site.address)).name == "Engine"


@pytest.mark.parametrize(
    "behaviour",
    [
        pytest.param(hanging, id="a site that says nothing"),
        pytest.param(
            dripping(f"{_BEGIN}Content-Length: 60000\r\n\r\n".encode(), b" "),
            id="a site that speaks slowly",
        ),
    ],
)
async def test_a_slow_site_is_not_waited_for(
    hub: Database, behaviour: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fetcher.DEADLINE_SECONDS == 5
    monkeypatch.setattr(fetcher, "DEADLINE_SECONDS", 0.2)
    async with serving(behaviour) as stranger:
        async with asyncio.timeout(SOON_SECONDS):
            reason = await refusal(hub, _address(stranger))

    assert reason.endswith("within 0.2 seconds.")


async def test_a_document_is_asked_for_once_in_its_time(hub: Database, site: Site) -> None:
    first = await resolve_app(hub, site.address)
    clock.move(timedelta(seconds=590))
    site.state(client_name="Another")
    kept = await resolve_app(hub, site.address)
    clock.move(timedelta(seconds=20))
    again = await resolve_app(hub, site.address)

    assert kept == first
    assert (again.id, again.name, len(site.asked)) == (first.id, "Another", 2)


async def test_those_who_ask_together_share_one_fetch(hub: Database, site: Site) -> None:
    site.gate = asyncio.Event()
    asking = [asyncio.create_task(resolve_app(hub, site.address)) for _ in range(20)]
    while not site.asked:
        await asyncio.sleep(0.01)
    # One of them gives up; the others still get it.
    asking[0].cancel()
    await asyncio.sleep(0.01)
    site.gate.set()
    found = await asyncio.gather(*asking, return_exceptions=True)

    assert isinstance(found[0], asyncio.CancelledError)
    assert found[1:] == [await resolve_app(hub, site.address)] * 19
    assert len(site.asked) == 1


async def test_those_who_ask_together_share_one_refusal(hub: Database, site: Site) -> None:
    site.status = "404 Not Found"
    site.gate = asyncio.Event()
    asking = [asyncio.create_task(refusal(hub, site.address)) for _ in range(3)]
    while not site.asked:
        await asyncio.sleep(0.01)
    site.gate.set()

    assert set(await asyncio.gather(*asking)) == {
        "The document must be answered with 200, not 404."
    }
    assert len(site.asked) == 1


async def test_few_documents_are_fetched_at_a_time(hub: Database, site: Site) -> None:
    site.gate = asyncio.Event()
    addresses = [f"{site.address}/{number}" for number in range(MAX_CONCURRENT_FETCHES + 3)]
    asking = [asyncio.create_task(refusal(hub, address)) for address in addresses]
    while len(site.asked) < MAX_CONCURRENT_FETCHES:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.2)
    at_a_time = len(site.asked)
    site.gate.set()
    await asyncio.gather(*asking)

    assert (at_a_time, len(site.asked)) == (MAX_CONCURRENT_FETCHES, MAX_CONCURRENT_FETCHES + 3)


async def test_a_broken_document_is_not_asked_for_again_and_again(
    hub: Database, site: Site
) -> None:
    site.status = "404 Not Found"
    reasons = [await refusal(hub, site.address) for _ in range(FETCHES_OF_ONE_DOCUMENT.quota + 1)]

    assert reasons[-1] == "Documents were asked for too often; try again in a minute."
    assert len(site.asked) == FETCHES_OF_ONE_DOCUMENT.quota
    assert FETCHES_OF_ALL_DOCUMENTS.quota > FETCHES_OF_ONE_DOCUMENT.quota


async def test_an_error_is_not_kept(hub: Database, site: Site) -> None:
    site.status = "503 Busy"
    await refusal(hub, site.address)
    site.status = "200 OK"

    assert (await resolve_app(hub, site.address)).name == "Engine"


async def test_a_copy_serves_token_requests_while_the_site_is_down(
    hub: Database, site: Site
) -> None:
    app = await resolve_app(hub, site.address)
    site.status = "503 Busy"
    clock.move(timedelta(hours=24))

    assert await resolve_app(hub, site.address, may_be_stale=True) == app
    reason = await refusal(hub, site.address)
    assert reason == "The document must be answered with 200, not 503."
    clock.move(timedelta(minutes=11))
    assert await refusal(hub, site.address, may_be_stale=True) == reason
    async with hub.read() as conn:
        assert await find_app(conn, site.address) == app


@pytest.mark.parametrize(
    ("change", "revision"),
    [
        pytest.param({"client_name": "Another"}, 2, id="another name"),
        pytest.param({"redirect_uris": ["http://127.0.0.1/cb"]}, 2, id="another host"),
        pytest.param({"redirect_uris": ["http://localhost/b"]}, 1, id="another path"),
        pytest.param({"logo_uri": "http://127.0.0.1:1024/logo"}, 2, id="a logo"),
        pytest.param({"scope": "openid"}, 1, id="other scopes"),
        pytest.param({}, 1, id="no change"),
    ],
)
async def test_people_are_asked_again_when_they_would_see_another_app(
    hub: Database, site: Site, change: dict[str, Any], revision: int
) -> None:
    await resolve_app(hub, site.address)
    site.state(**change)
    clock.move(timedelta(seconds=601))

    assert (await resolve_app(hub, site.address)).revision == revision


async def test_documents_that_nobody_uses_do_not_fill_the_database(
    hub: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert documents.MAX_UNUSED == 10_000
    monkeypatch.setattr(documents, "MAX_UNUSED", 2)
    sites = [Site() for _ in range(4)]
    found: list[OAuthApp] = []
    async with AsyncExitStack() as stack:
        for site in sites:
            site.address = _address(await stack.enter_async_context(serving(site.behave)))
            site.stated = _stated(site.address)
            found.append(await resolve_app(hub, site.address))
            if len(found) == 1:
                user = await a_user(hub, "bob")
                async with hub.transaction() as conn:
                    allowed = Permission(user_id=user.id, app_id=found[0].id, scopes=frozenset())
                    await access.begin(conn, allowed, Via.code, origin=Origin())

    async with hub.read() as conn:
        kept = [await find_app(conn, site.address) is not None for site in sites]
    # The first one is in use.
    assert kept == [True, False, True, True]


async def _logo(database: Database, app: OAuthApp) -> tuple[str, bytes] | None:
    async with database.read() as conn:
        row = await conn.fetch_one("SELECT * FROM oauth_logos WHERE app_id = $1", app.id)
    return None if row is None else (row["media_type"], row["content"])


async def test_the_hub_serves_the_logo_itself(hub: Database, site: Site) -> None:
    site.state(logo_uri=f"{site.address}/logo.png")

    app = await resolve_app(hub, site.address)

    assert app.logo_uri == f"http://localhost:8000/oauth/logos/{app.id}"
    assert await _logo(hub, app) == ("image/png", PNG)
    clock.move(timedelta(seconds=601))
    await resolve_app(hub, site.address)
    assert len([line for line in site.asked if "/logo" in line]) == 1

    del site.stated["logo_uri"]
    clock.move(timedelta(seconds=601))
    app = await resolve_app(hub, site.address)
    assert (app.logo_uri, app.revision, await _logo(hub, app)) == (None, 2, None)


@pytest.mark.parametrize(
    ("media_type", "content"),
    [
        pytest.param(b"image/svg+xml", b"<svg/>", id="a drawing that may hold scripts"),
        pytest.param(b"image/gif", b"GIF89a" + bytes(20), id="an animation"),
        pytest.param(b"image/png", PNG + bytes(262_144), id="a large one"),
    ],
)
async def test_an_app_is_shown_without_a_logo_that_is_none(
    hub: Database, site: Site, media_type: bytes, content: bytes
) -> None:
    site.state(logo_uri=f"{site.address}/logo")
    site.logo = (media_type, content)

    app = await resolve_app(hub, site.address)

    assert (app.name, app.logo_uri, await _logo(hub, app)) == ("Engine", None, None)


async def test_the_log_tells_why_and_the_caller_does_not_hear_it(hub: Database, site: Site) -> None:
    site.status = "500 Broken"
    with capture_logs() as lines:
        await refusal(hub, site.address)

    assert lines == [
        {
            "event": "client document refused",
            "client_id": site.address,
            "reason": "The document must be answered with 200, not 500.",
            "log_level": "info",
        }
    ]


async def test_nobody_manages_the_app_of_a_document(
    client: httpx2.AsyncClient, ada: dict[str, str], hub: Database, site: Site
) -> None:
    await resolve_app(hub, site.address)

    assert (await client.get("/api/settings/oauth-apps", headers=ada)).json() == []
