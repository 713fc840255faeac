"""What a visitor sees: the landing page, or a page of one's own in its place."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

import hublet
from hublet.receiver import WebhookPayload, WebhooksServer
from receiver.deliveries import JSON, get, post


def a_server(ui: Any = None, **options: Any) -> WebhooksServer:
    server = WebhooksServer(ui, **(dict[str, Any](webhook_secret="coal") | options))

    @server.add_webhook
    async def told(payload: WebhookPayload) -> None: ...

    @server.add_webhook("/<b>odd</b>&co")
    async def odd(payload: WebhookPayload) -> None: ...

    return server


async def test_it_lists_the_endpoints_under_their_whole_address() -> None:
    page = await get(a_server(), "/")

    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "<h1>This server receives webhooks</h1>" in page.text
    assert (
        "<code>hf webhooks create --watch model:NAME --url URL --secret SECRET</code>" in page.text
    )
    assert re.findall(r"<code>(POST .*?)</code>.*?handled by <code>(.*?)</code>", page.text) == [
        ("POST http://receiver.test/webhooks/told", "told"),
        ("POST http://receiver.test/webhooks/&lt;b&gt;odd&lt;/b&gt;&amp;co", "odd"),
    ]
    assert "None since this server started." in page.text


async def test_a_strange_host_does_no_harm() -> None:
    page = await get(a_server(), "/", {"host": "<script>x</script>"})

    assert "<script" not in page.text


async def test_behind_a_proxy_with_tls_the_address_is_safe() -> None:
    page = await get(a_server(), "/", {"x-forwarded-proto": "https"})

    assert "<code>POST https://receiver.test/webhooks/told</code>" in page.text


async def test_on_a_space_the_address_is_the_spaces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPACE_HOST", "ada-engine.hf.space")

    page = await get(a_server(), "/")

    assert "<code>POST https://ada-engine.hf.space/webhooks/told</code>" in page.text


async def test_nothing_is_fetched_and_nothing_runs() -> None:
    page = await get(a_server(), "/")

    policy = page.headers["content-security-policy"]
    assert re.fullmatch(
        r"default-src 'none'; style-src 'sha256-[\w+/=]+'; base-uri 'none'; form-action 'none'",
        policy,
    )
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["cache-control"] == "no-store"
    assert re.findall(r"<script|<link|<img|src=|url\(", page.text) == []


async def test_it_shows_the_last_deliveries_without_what_was_in_them() -> None:
    server = a_server()
    good = JSON | {"x-webhook-secret": "coal"}
    await post(server, "/webhooks/told", headers=good)
    await post(server, "/webhooks/told", headers=JSON | {"x-webhook-secret": "soot"})
    await post(server, "/webhooks/told", headers=good, body=b"{}")
    await get(server, "/webhooks/told")
    await post(server, "/webhooks/unknown", headers=good)

    page = (await get(server, "/")).text

    rows = [re.findall(r"<td>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", page)[1:]]
    # Newest first; what was no delivery to a hook is none.
    assert [row[1:5] for row in rows] == [
        ["<code>/webhooks/told</code>", "<code>told</code>", proof, badge]
        for proof, badge in (
            ("sent along", '<span class="badge bad">422</span>'),
            ("refused", '<span class="badge bad">403</span>'),
            ("sent along", '<span class="badge ok">200</span>'),
        )
    ]
    for moment, *_, milliseconds in rows:
        assert re.fullmatch(r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\d", moment)
        assert float(milliseconds) >= 0
    assert "soot" not in page
    assert "ada/engine" not in page


def shown_secret(secret: str) -> dict[str, str]:
    return {"authorization": f"Basic {base64.b64encode(f'me:{secret}'.encode()).decode()}"}


async def test_payloads_and_answers_are_for_who_knows_a_secret() -> None:
    server = a_server(secrets=["older"])
    await post(server, "/webhooks/told", headers=JSON | {"x-webhook-secret": "coal"})
    await post(server, "/webhooks/told", headers=JSON, body=b'{"repo": "of a stranger"}')

    anybody = await get(server, "/?payloads")
    wrong = [
        await get(server, "/?payloads", headers)
        for headers in (shown_secret("soot"), {"authorization": "Basic ="}, shown_secret(""))
    ]
    known = [await get(server, "/?payloads", shown_secret(each)) for each in ("coal", "older")]

    assert {each.status_code for each in (anybody, *wrong)} == {401}
    assert anybody.headers["www-authenticate"].startswith("Basic ")
    assert all("ada/engine" not in each.text for each in (anybody, *wrong))
    for page in known:
        assert page.status_code == 200
        assert "&quot;name&quot;: &quot;ada/engine&quot;" in page.text
        assert "of a stranger" not in page.text
        assert "coal" not in page.text.partition("</style>")[2]


async def test_a_server_that_is_open_shows_no_payloads() -> None:
    server = a_server(webhook_secret=None)
    await post(server, "/webhooks/told", headers=JSON)

    page = await get(server, "/?payloads")

    assert page.status_code == 200
    assert "ada/engine" not in page.text
    assert "Payloads are shown here once a secret is set." in page.text


async def test_a_large_payload_is_cut() -> None:
    server = a_server()
    body = json.dumps({"text": "x" * 70_000}).encode()
    await post(server, "/webhooks/told", headers=JSON | {"x-webhook-secret": "coal"}, body=body)

    page = (await get(server, "/?payloads", shown_secret("coal"))).text

    assert "only the first 65536 bytes are kept here" in page
    assert len(page.partition("</style>")[2]) < 70_000


async def test_it_looks_like_the_hub() -> None:
    style = (Path(hublet.__file__).parent / "core/static/hublet.css").read_text()

    assert f"<style>{style}</style>" in (await get(a_server(), "/")).text


async def test_only_the_last_twenty_are_kept() -> None:
    server = a_server()
    for _ in range(25):
        await post(server, "/webhooks/told")

    assert (await get(server, "/")).text.count(">401</span>") == 20


async def test_a_server_without_a_secret_says_so() -> None:
    warning = "<strong>No secret is set: these endpoints are open to everyone.</strong>"

    assert warning in (await get(a_server(webhook_secret=None), "/")).text
    assert warning not in (await get(a_server(), "/")).text


async def test_a_server_without_endpoints_says_so() -> None:
    assert "There is no endpoint yet." in (await get(WebhooksServer(), "/")).text


async def test_the_page_can_be_asked_for_without_its_body() -> None:
    answer = await post(a_server(), "/", body=b"", headers={}, method="HEAD")

    assert (answer.status_code, answer.content) == (200, b"")
    assert int(answer.headers["content-length"]) > 1000


@pytest.mark.parametrize("ui", [None, "<p>Mine</p>"], ids=["landing page", "own page"])
async def test_a_page_can_only_be_read(ui: str | None) -> None:
    answer = await post(a_server(ui), "/")

    assert (answer.status_code, answer.json()) == (405, {"detail": "Method Not Allowed"})
    assert answer.headers["allow"] == "GET"


def _function() -> str:
    return "<p>Mine</p>"


async def _asynchronous(request: Request) -> Response:
    return HTMLResponse(f"<p>Mine</p>{request.query_params.get('a', '')}")


def _with_request(request: Request) -> str:
    return f"<p>Mine</p>{request.method}"


@pytest.mark.parametrize(
    ("ui", "shown"),
    [
        pytest.param("<p>Mine</p>", "<p>Mine</p>", id="HTML"),
        pytest.param(HTMLResponse("<p>Mine</p>"), "<p>Mine</p>", id="a response"),
        pytest.param(_function, "<p>Mine</p>", id="a function"),
        pytest.param(_with_request, "<p>Mine</p>GET", id="a function of the request"),
        pytest.param(_asynchronous, "<p>Mine</p>b", id="one that is asynchronous"),
    ],
)
async def test_a_page_of_ones_own_replaces_it(ui: Any, shown: str) -> None:
    server = a_server(ui)

    page = await get(server, "/?a=b")

    assert (page.status_code, page.text) == (200, shown)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert (await get(server, "/other")).status_code == 404
    headers = JSON | {"x-webhook-secret": "coal"}
    assert (await post(server, "/webhooks/told", headers=headers)).status_code == 200


async def test_an_application_of_ones_own_gets_all_that_is_no_hook() -> None:
    page = FastAPI()

    @page.get("/deep/inside")
    async def inside() -> str:
        return "found"

    server = a_server(page)

    assert (await get(server, "/deep/inside")).json() == "found"
    assert (await get(server, "/webhooks/told")).status_code == 405
    assert (await get(server, "/")).status_code == 404


def test_what_cannot_be_shown_is_refused() -> None:
    with pytest.raises(TypeError, match="ui is int, and must be HTML, a response, a function"):
        WebhooksServer(3)


async def test_a_page_that_fails_is_the_servers_business() -> None:
    def fails() -> str:
        raise RuntimeError("No page.")

    transport = httpx2.ASGITransport(app=a_server(fails), raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://receiver.test") as client:
        assert (await client.get("/")).status_code == 500
