"""What a delivery is answered: let in, refused, failed, late."""

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from hublet.receiver import WebhookPayload, WebhooksServer
from patience import SOON_SECONDS
from receiver.asgi_exchange import Exchange
from receiver.deliveries import BODY, JSON, PAYLOAD, a_payload, get, post, signed

SECRET = "coal & steam"
WITH_SECRET = JSON | {"x-webhook-secret": SECRET}


def a_server(**options: Any) -> tuple[WebhooksServer, list[WebhookPayload]]:
    """Return a server with the hook `told`, and what its handler was told so far."""
    server = WebhooksServer(**(dict[str, Any](webhook_secret=SECRET) | options))
    told: list[WebhookPayload] = []

    @server.add_webhook("/told")
    async def hear(payload: WebhookPayload) -> dict[str, bool]:
        told.append(payload)
        return {"understood": True}

    return server, told


async def test_a_delivery_reaches_its_handler() -> None:
    server, told = a_server()

    answer = await post(server, "/webhooks/told", headers=WITH_SECRET)

    assert (answer.status_code, answer.json()) == (200, {"understood": True})
    assert answer.headers["content-type"] == "application/json"
    [payload] = told
    assert payload.model_dump(by_alias=True, exclude_unset=True) == PAYLOAD


@pytest.mark.parametrize(
    ("headers", "status", "sentence"),
    [
        pytest.param(JSON, 401, "x-webhook-secret header not set.", id="no secret"),
        pytest.param(
            JSON | {"x-webhook-secret": "soot"}, 403, "Invalid webhook secret.", id="a wrong one"
        ),
        pytest.param(
            signed("soot") | {"X-Webhook-Secret": SECRET},
            403,
            "Invalid webhook signature.",
            id="a forged signature",
        ),
    ],
)
async def test_strangers_are_refused_before_the_body_is_parsed(
    headers: dict[str, str], status: int, sentence: str
) -> None:
    server, told = a_server()

    for body in (BODY, b"no JSON at all"):
        answer = await post(server, "/webhooks/told", body=body, headers=headers)
        assert (answer.status_code, answer.json()) == (status, {"error": sentence})
    assert told == []


async def _pieces(*bodies: bytes) -> AsyncIterator[bytes]:
    for body in bodies:
        yield body


async def test_a_stranger_is_refused_before_the_body_is_read() -> None:
    server, _ = a_server()
    exchange = Exchange(server, "/webhooks/told", JSON, _pieces(BODY))

    await exchange.run()

    assert (exchange.status, exchange.read) == (401, 0)


async def test_a_body_in_pieces_is_put_together() -> None:
    server, told = a_server()
    exchange = Exchange(server, "/webhooks/told", WITH_SECRET, _pieces(BODY[:9], BODY[9:]))

    await exchange.run()

    assert (exchange.status, len(told)) == (200, 1)


async def test_a_body_without_its_length_is_cut_off_at_the_limit() -> None:
    server, told = a_server(max_body_bytes=10)
    exchange = Exchange(server, "/webhooks/told", WITH_SECRET, _pieces(*[b"1234"] * 9))

    await exchange.run()

    assert (exchange.status, exchange.read, told) == (413, 3, [])


async def test_whoever_hangs_up_gets_no_answer_and_no_handler() -> None:
    server, told = a_server()

    async def cut_off() -> AsyncIterator[bytes]:
        yield BODY[:9]
        raise ConnectionResetError

    exchange = Exchange(server, "/webhooks/told", WITH_SECRET, cut_off())
    await exchange.run()

    assert (exchange.sent, told) == ([], [])


async def test_a_body_that_does_not_come_is_not_waited_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server, told = a_server(timeout_seconds=0.01)
    exchange: Exchange

    async def late() -> AsyncIterator[bytes]:
        await exchange.answered.wait()
        yield BODY

    exchange = Exchange(server, "/webhooks/told", WITH_SECRET, late())
    await exchange.run()

    assert (exchange.status, exchange.body, told) == (
        408,
        b'{"error":"The body did not arrive within 0.01 seconds."}',
        [],
    )
    assert (len(exchange.sent), caplog.records) == (2, [])


async def test_a_large_body_is_refused_and_the_limit_named() -> None:
    server, told = a_server(max_body_bytes=len(BODY))

    fits = await post(server, "/webhooks/told", headers=WITH_SECRET)
    large = await post(server, "/webhooks/told", body=BODY + b" ", headers=WITH_SECRET)
    stranger = await post(server, "/webhooks/told", body=BODY + b" ")

    assert fits.status_code == 200
    assert (large.status_code, large.json()) == (
        413,
        {"error": f"The body is larger than {len(BODY)} bytes."},
    )
    # The size comes before the secret: it is cheaper to look at.
    assert stranger.status_code == 413
    assert len(told) == 1


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        pytest.param(b"", [("missing", ["body"], "Field required")], id="no body"),
        pytest.param(
            b"{}",
            [
                ("missing", ["body", part], "Field required")
                for part in ("event", "repo", "webhook")
            ],
            id="nothing in it",
        ),
        pytest.param(
            a_payload(event={"action": 3, "scope": "repo"}),
            [("string_type", ["body", "event", "action"], "Input should be a valid string")],
            id="a number for an action",
        ),
    ],
)
async def test_a_bad_body_is_told_what_is_wrong_with_it(
    body: bytes, detail: list[tuple[str, list[str], str]]
) -> None:
    server, told = a_server()

    answer = await post(server, "/webhooks/told", body=body, headers=WITH_SECRET)

    assert answer.status_code == 422
    assert answer.json() == {
        "detail": [{"type": kind, "loc": loc, "msg": msg} for kind, loc, msg in detail]
    }
    assert told == []


async def test_a_body_that_is_no_json_is_refused() -> None:
    server, _ = a_server()

    answer = await post(server, "/webhooks/told", body=b'{"event":', headers=WITH_SECRET)

    [wrong] = answer.json()["detail"]
    assert (answer.status_code, wrong["type"], wrong["loc"]) == (422, "json_invalid", ["body"])


@pytest.mark.parametrize(
    ("media_type", "status"),
    [
        pytest.param("application/json", 200, id="JSON"),
        pytest.param("Application/JSON; charset=utf-8", 200, id="with its charset"),
        pytest.param("application/vnd.hub+json", 200, id="a kind of JSON"),
        pytest.param("text/plain", 422, id="text"),
        pytest.param("text/json", 422, id="nearly JSON"),
        pytest.param(None, 422, id="nothing"),
    ],
)
async def test_the_body_must_say_that_it_is_json(media_type: str | None, status: int) -> None:
    server, _ = a_server()
    said = {} if media_type is None else {"content-type": media_type}

    answer = await post(server, "/webhooks/told", headers=said | {"x-webhook-secret": SECRET})

    assert answer.status_code == status
    if status == 422:
        wrong = {
            "type": "content_type",
            "loc": ["header", "content-type"],
            "msg": "The body must be application/json.",
        }
        assert answer.json() == {"detail": [wrong]}


async def test_an_unknown_path_is_not_found() -> None:
    server, _ = a_server()

    for path in ("/webhooks/other", "/webhooks", "/told", "/webhooks/told/deep"):
        answer = await post(server, path, headers=WITH_SECRET)
        assert (answer.status_code, answer.json()) == (404, {"detail": "Not Found"})


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS"])
async def test_a_hook_takes_only_post(method: str) -> None:
    server, told = a_server()

    answer = await post(server, "/webhooks/told", headers=WITH_SECRET, method=method)

    assert (answer.status_code, answer.json()) == (405, {"detail": "Method Not Allowed"})
    assert answer.headers["allow"] == "POST"
    assert told == []


async def test_a_slash_too_many_leads_to_the_hook() -> None:
    server, told = a_server()

    answer = await post(server, "/webhooks/told/?a=b", headers=WITH_SECRET)

    assert (answer.status_code, answer.headers["location"]) == (307, "/webhooks/told?a=b")
    assert (answer.content, told) == (b"", [])


async def test_a_secret_can_be_changed_without_losing_a_delivery() -> None:
    server, told = a_server(webhook_secret="new", secrets=["old"])

    for secret in ("new", "old"):
        answer = await post(server, "/webhooks/told", headers=JSON | {"x-webhook-secret": secret})
        assert answer.status_code == 200
    # The hub changed first: it sends the new secret, and signs with both.
    late, _ = a_server(webhook_secret="old")
    assert (await post(late, "/webhooks/told", headers=signed("new", "old"))).status_code == 200
    assert len(told) == 2


async def test_a_secret_that_is_set_later_counts_as_well() -> None:
    server, told = a_server(webhook_secret=None)
    server.webhook_secret = "coal"

    stranger = await post(server, "/webhooks/told")
    known = await post(server, "/webhooks/told", headers=signed("coal"))

    assert server.webhook_secret == "coal"
    assert [stranger.status_code, known.status_code, len(told)] == [401, 200, 1]


def test_a_secret_that_signatures_need_is_not_taken_away() -> None:
    server, _told = a_server(require_signature=True)

    with pytest.raises(ValueError, match="require_signature needs a secret"):
        server.webhook_secret = None
    assert server.webhook_secret == SECRET


async def test_of_two_secrets_in_one_request_the_first_counts() -> None:
    server, told = a_server()
    twice = [("x-webhook-secret", "soot"), ("x-webhook-secret", SECRET), *JSON.items()]
    transport = httpx2.ASGITransport(app=server)

    async with httpx2.AsyncClient(transport=transport, base_url="http://receiver.test") as client:
        answer = await client.post("/webhooks/told", content=BODY, headers=twice)

    assert (answer.status_code, told) == (403, [])


async def test_a_required_signature_is_missed() -> None:
    server, told = a_server(require_signature=True)

    unsigned = await post(server, "/webhooks/told", headers=WITH_SECRET)
    old = await post(server, "/webhooks/told", headers=signed(SECRET, seconds_ago=400))
    good = await post(server, "/webhooks/told", headers=signed(SECRET, seconds_ago=200))

    assert (unsigned.status_code, unsigned.json()) == (
        401,
        {"error": "webhook-signature header not set."},
    )
    assert (old.status_code, old.json()) == (
        403,
        {"error": "The webhook-timestamp is too far from the time here."},
    )
    assert (good.status_code, len(told)) == (200, 1)


async def test_the_window_of_signatures_can_be_opened() -> None:
    server, _ = a_server(tolerance_seconds=None)

    answer = await post(server, "/webhooks/told", headers=signed(SECRET, seconds_ago=10**6))

    assert answer.status_code == 200


async def test_the_reason_of_a_failure_is_in_the_log_and_not_in_the_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server, _ = a_server()

    @server.add_webhook
    def fails(payload: WebhookPayload) -> None:
        raise RuntimeError("The boiler burst.")

    answer = await post(server, "/webhooks/fails", headers=WITH_SECRET)

    assert (answer.status_code, answer.text) == (500, "Internal Server Error")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert "The handler of /webhooks/fails failed." in caplog.text
    assert "The boiler burst." in caplog.text


@pytest.mark.parametrize("name", ["asynchronous", "in_a_thread"])
async def test_a_slow_handler_is_answered_for_and_goes_on(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    server, _ = a_server(timeout_seconds=0.05)
    ended: list[str] = []
    gate = threading.Event()

    @server.add_webhook
    async def asynchronous(payload: WebhookPayload) -> None:
        await asyncio.to_thread(gate.wait, SOON_SECONDS)
        ended.append("asynchronous")

    @server.add_webhook
    def in_a_thread(payload: WebhookPayload) -> None:
        gate.wait(SOON_SECONDS)
        ended.append("in_a_thread")

    exchange = Exchange(server, f"/webhooks/{name}", WITH_SECRET, _pieces(BODY))
    running = asyncio.create_task(exchange.run())
    await exchange.answered.wait()

    assert (exchange.status, exchange.body, ended) == (
        504,
        b'{"error":"The handler did not end within 0.05 seconds."}',
        [],
    )
    assert f"The handler of /webhooks/{name} takes longer than 0.05 seconds" in caplog.text
    gate.set()
    await running
    # It came to its end, and nothing more was sent.
    assert (ended, len(exchange.sent)) == ([name], 2)
    assert ">504</span>" in (await get(server, "/")).text


async def test_without_a_limit_a_handler_takes_its_time() -> None:
    server, _ = a_server(timeout_seconds=None)

    @server.add_webhook
    async def slow(payload: WebhookPayload) -> None:
        await asyncio.sleep(0.05)

    answer = await post(server, "/webhooks/slow", headers=WITH_SECRET)

    assert (answer.status_code, answer.json()) == (200, None)


async def test_deliveries_are_handled_beside_each_other() -> None:
    server, _ = a_server()
    meeting = asyncio.Barrier(2)

    @server.add_webhook
    async def meet(payload: WebhookPayload) -> None:
        await meeting.wait()

    answers = await asyncio.gather(
        *(post(server, "/webhooks/meet", headers=WITH_SECRET) for _ in range(2))
    )

    assert [answer.status_code for answer in answers] == [200, 200]


async def test_without_a_secret_everybody_is_let_in_and_that_is_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server, told = a_server(webhook_secret=None)

    answer = await post(server, "/webhooks/told")

    assert (answer.status_code, len(told)) == (200, 1)
    [warning] = caplog.records
    assert warning.levelno == logging.WARNING
    assert warning.getMessage() == (
        "No webhook secret is set: the endpoints are open to everyone. Set the variable "
        "WEBHOOK_SECRET, or pass it: WebhooksServer(webhook_secret=…)."
    )


async def test_the_secret_may_come_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("WEBHOOK_SECRET", "from outside")
    server, _ = a_server(webhook_secret=None)
    given, _ = a_server(webhook_secret="given")
    rotated, _ = a_server(webhook_secret=None, secrets=["given"])

    headers = JSON | {"x-webhook-secret": "from outside"}
    assert (server.webhook_secret, given.webhook_secret) == ("from outside", "given")
    assert (await post(server, "/webhooks/told", headers=headers)).status_code == 200
    assert (await post(given, "/webhooks/told", headers=headers)).status_code == 403
    assert (await post(rotated, "/webhooks/told", headers=headers)).status_code == 403
    assert caplog.records == []


async def test_an_empty_secret_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEBHOOK_SECRET", "")
    server, _ = a_server(webhook_secret="")

    assert server.webhook_secret is None
    assert (await post(server, "/webhooks/told")).status_code == 200


@pytest.mark.parametrize(
    ("options", "error", "sentence"),
    [
        pytest.param({"secrets": ["a", ""]}, ValueError, "must not be empty", id="an empty one"),
        pytest.param({"secrets": "coal"}, TypeError, "a list of secrets", id="a text for a list"),
        pytest.param({"require_signature": True}, ValueError, "needs a secret", id="no secret"),
        pytest.param({"max_body_bytes": 0}, ValueError, "at least 1", id="no body"),
        pytest.param({"timeout_seconds": 0}, ValueError, "timeout_seconds must be", id="no time"),
        pytest.param(
            {"tolerance_seconds": -1}, ValueError, "tolerance_seconds must be", id="no window"
        ),
    ],
)
def test_options_that_mean_nothing_are_refused(
    options: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        WebhooksServer(**options)


async def test_a_health_probe_sees_the_landing_page() -> None:
    server, _ = a_server()

    assert (await get(server, "/")).status_code == 200


async def test_no_answer_tells_a_secret(caplog: pytest.LogCaptureFixture) -> None:
    server, _ = a_server()
    answers: list[httpx2.Response] = [
        await post(server, "/webhooks/told", body=body, headers=headers)
        for body in (BODY, b"[]")
        for headers in (JSON, WITH_SECRET, JSON | {"x-webhook-secret": "soot"}, signed(SECRET))
    ]
    answers.append(await get(server, "/"))

    assert [SECRET in answer.text for answer in answers] == [False] * 9
    assert SECRET not in caplog.text
