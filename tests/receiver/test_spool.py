"""The spool: answered first, handled afterwards, each delivery once, the oldest first."""

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import BackgroundTasks, Request
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response, StreamingResponse

from hublet.receiver import WebhookPayload, WebhooksServer, spool
from hublet.receiver.spool_store import (
    GIVEN_UP_SECONDS,
    KEPT_SECONDS,
    WAITS,
    SpoolCounts,
    SpooledDelivery,
    SpoolInUse,
    SpoolStore,
)
from patience import SOON_SECONDS
from receiver.deliveries import BODY, ID, JSON, PAYLOAD, a_payload, post, signed

SECRET = "coal"


def a_delivery(delivery_id: str = "d1", path: str = "/webhooks/hear") -> SpooledDelivery:
    return SpooledDelivery(
        path=path, delivery_id=delivery_id, query=b"a=b", headers=[("x", "y")], body=b"{}"
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "spool.db"


def test_the_oldest_that_is_due_is_taken_first(file: Path) -> None:
    store = SpoolStore(file)
    for name in ("d1", "d2", "d3"):
        assert store.add(a_delivery(name), now=100)

    first = store.claim(now=100)
    assert first == SpooledDelivery(
        path="/webhooks/hear",
        delivery_id="d1",
        query=b"a=b",
        headers=[("x", "y")],
        body=b"{}",
        number=1,
        attempts=1,
    )
    # The one that was taken waits, so that the others have their turn; then it is first again.
    second = store.claim(now=100)
    assert second is not None
    assert second.delivery_id == "d2"
    again = store.claim(now=100 + WAITS[0])
    assert again is not None
    assert (again.delivery_id, again.attempts) == ("d1", 2)
    store.close()


def test_waits_grow_until_the_last_one_stays(file: Path) -> None:
    store = SpoolStore(file)
    store.add(a_delivery(), now=0)
    now, waits = 0.0, []
    for _ in range(len(WAITS) + 1):
        assert store.claim(now=now) is not None
        due_at = store.next_due()
        assert due_at is not None
        waits.append(due_at - now)
        assert store.claim(now=due_at - 0.001) is None
        now = due_at

    assert waits == [*WAITS, WAITS[-1]]
    store.close()


def test_a_failure_waits_from_its_end_on(file: Path) -> None:
    store = SpoolStore(file)
    store.add(a_delivery(), now=0)
    taken = store.claim(now=0)
    assert taken is not None

    store.postpone(taken, now=100)

    assert store.next_due() == 100 + WAITS[0]
    store.close()


def test_what_was_done_is_known_again_and_its_content_gone(file: Path) -> None:
    store = SpoolStore(file)
    store.add(a_delivery(), now=0)
    taken = store.claim(now=0)
    assert taken is not None
    store.finish(taken.number, now=1)

    assert store.add(a_delivery(), now=2) is False
    assert (store.claim(now=10**9), store.next_due()) == (None, None)
    assert store.counts() == SpoolCounts(waiting=0, failed=0)
    store.close()
    rows = sqlite3.connect(file).execute("SELECT delivery_id, query, headers, body FROM deliveries")
    assert rows.fetchall() == [("d1", b"", "[]", b"")]


def test_ids_are_forgotten_in_the_end(file: Path) -> None:
    store = SpoolStore(file)
    for name in ("d1", "d2"):
        store.add(a_delivery(name), now=0)
    store.finish(1, now=0)
    store.finish(2, now=KEPT_SECONDS)
    assert store.add(a_delivery("d1"), now=KEPT_SECONDS) is False
    store.finish(2, now=KEPT_SECONDS + 1)

    assert store.add(a_delivery("d1"), now=KEPT_SECONDS) is True
    store.close()


def test_what_was_given_up_is_forgotten_in_the_end(file: Path) -> None:
    store = SpoolStore(file)
    for name in ("d1", "d2", "d3"):
        store.add(a_delivery(name), now=0)
    store.give_up(1, now=0)

    store.give_up(2, now=GIVEN_UP_SECONDS)
    assert store.counts() == SpoolCounts(waiting=1, failed=2)
    # Also where nothing ever goes well.
    store.give_up(2, now=GIVEN_UP_SECONDS + 1)
    assert store.counts() == SpoolCounts(waiting=1, failed=1)
    store.close()


def test_only_its_owner_may_read_the_spool(file: Path) -> None:
    before = os.umask(0o022)
    try:
        store = SpoolStore(file)
        store.add(a_delivery(), now=0)
        modes = {each.name: each.stat().st_mode & 0o777 for each in file.parent.iterdir()}
    finally:
        os.umask(before)
    store.close()

    assert modes == {"spool.db": 0o600, "spool.db-wal": 0o600}


def test_the_same_id_on_another_path_is_another_delivery(file: Path) -> None:
    store = SpoolStore(file)

    assert store.add(a_delivery(path="/webhooks/a"), now=0)
    assert store.add(a_delivery(path="/webhooks/b"), now=0)
    assert not store.add(a_delivery(path="/webhooks/a"), now=0)
    assert store.counts() == SpoolCounts(waiting=2, failed=0)
    store.close()


def test_what_was_given_up_gets_another_chance_when_it_comes_again(file: Path) -> None:
    store = SpoolStore(file)
    store.add(a_delivery(), now=0)
    store.claim(now=0)
    store.give_up(1, now=1)
    assert (store.claim(now=10**9), store.counts()) == (None, SpoolCounts(waiting=0, failed=1))

    assert store.add(a_delivery(), now=50)
    taken = store.claim(now=50)
    assert taken is not None
    assert (taken.attempts, taken.body) == (1, b"{}")
    store.close()


def test_one_process_at_a_time_works_from_a_file(file: Path) -> None:
    store = SpoolStore(file)

    with pytest.raises(SpoolInUse, match=r"Another process works from the spool .*spool\.db\."):
        SpoolStore(file)
    store.close()
    SpoolStore(file).close()


def test_a_file_that_cannot_be_written_is_not_blamed_on_another_process() -> None:
    try:
        with pytest.raises(sqlite3.OperationalError, match="disk I/O error"):
            SpoolStore(Path("/dev/full"))
    finally:
        Path("/dev/full-journal").unlink(missing_ok=True)


def test_what_was_added_is_there_after_a_restart(file: Path) -> None:
    store = SpoolStore(file)
    store.add(a_delivery(), now=0)
    store.close()

    again = SpoolStore(file)
    assert again.counts() == SpoolCounts(waiting=1, failed=0)
    assert again.add(a_delivery(), now=0) is False
    again.close()


def a_server(file: Path, handler: Callable[..., Any], **options: Any) -> WebhooksServer:
    server = WebhooksServer(webhook_secret=SECRET, spool=file, **options)
    server.add_webhook("hear")(handler)
    return server


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(SOON_SECONDS):
        while not is_so():
            await asyncio.sleep(0.005)


async def test_the_answer_comes_first(file: Path) -> None:
    gate = asyncio.Event()
    told: list[str] = []

    async def hear(payload: WebhookPayload) -> None:
        await gate.wait()
        told.append(payload.repo.name)

    server = a_server(file, hear)
    async with server.lifespan():
        answer = await post(server, "/webhooks/hear", headers=signed(SECRET))
        assert (answer.status_code, answer.json()) == (
            202,
            {"accepted": True, "id": ID, "duplicate": False},
        )
        assert told == []
        gate.set()
        await until(lambda: told == ["ada/engine"])


async def test_a_delivery_that_comes_twice_is_handled_once(file: Path) -> None:
    told: list[str] = []

    async def hear(payload: WebhookPayload) -> None:
        told.append(payload.webhook.id)

    server = a_server(file, hear)
    async with server.lifespan():
        first = await post(server, "/webhooks/hear", headers=signed(SECRET))
        again = await post(server, "/webhooks/hear", headers=signed(SECRET))
        other = await post(server, "/webhooks/hear", headers=signed(SECRET, delivery_id="x"))
        await until(lambda: len(told) == 2)

    assert [each.json()["duplicate"] for each in (first, again, other)] == [False, True, False]
    assert again.status_code == 202


async def test_without_an_id_each_is_one_of_its_own(file: Path) -> None:
    told: list[str] = []

    async def hear(payload: WebhookPayload) -> None:
        told.append(payload.webhook.id)

    server = a_server(file, hear)
    headers = JSON | {"x-webhook-secret": SECRET}
    async with server.lifespan():
        ids = {(await post(server, "/webhooks/hear", headers=headers)).json()["id"] for _ in "ab"}
        await until(lambda: len(told) == 2)

    assert len(ids) == 2


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        pytest.param(JSON, BODY, 401, id="a stranger"),
        pytest.param(JSON | {"x-webhook-secret": SECRET}, b"{}", 422, id="a bad body"),
    ],
)
async def test_what_is_refused_is_not_kept(
    file: Path, headers: dict[str, str], body: bytes, status: int
) -> None:
    async def hear(payload: WebhookPayload) -> None: ...

    server = a_server(file, hear)
    async with server.lifespan():
        answer = await post(server, "/webhooks/hear", headers=headers, body=body)

    assert answer.status_code == status
    store = SpoolStore(file)
    assert store.counts() == SpoolCounts(waiting=0, failed=0)
    store.close()


async def test_deliveries_are_handled_in_the_order_in_which_they_came(file: Path) -> None:
    told: list[str] = []

    def hear(payload: WebhookPayload) -> None:
        told.append(payload.webhook.id)

    server = a_server(file, hear)
    async with server.lifespan():
        for number in range(10):
            body = a_payload(webhook={"id": str(number), "version": 3})
            headers = signed(SECRET, body=body, delivery_id=f"d{number}")
            await post(server, "/webhooks/hear", body=body, headers=headers)
        await until(lambda: len(told) == 10)

    assert told == [str(number) for number in range(10)]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failures are tried again at once, three times in all."""
    waits = (0.01, 0.01)
    monkeypatch.setattr("hublet.receiver.spool_store.WAITS", waits)
    monkeypatch.setattr(spool, "WAITS", waits)


@pytest.mark.usefixtures("quick")
async def test_a_failure_is_tried_again_until_it_works(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tries: list[str] = []

    async def hear(payload: WebhookPayload) -> None:
        tries.append(payload.repo.name)
        if len(tries) < 3:
            raise RuntimeError("The boiler burst.")

    server = a_server(file, hear)
    async with server.lifespan():
        await post(server, "/webhooks/hear", headers=signed(SECRET))
        await until(lambda: len(tries) == 3)

    assert caplog.text.count("The handler of /webhooks/hear failed.") == 2
    store = SpoolStore(file)
    assert (store.counts(), len(tries)) == (SpoolCounts(waiting=0, failed=0), 3)
    store.close()


def _raises(payload: WebhookPayload) -> None:
    raise RuntimeError("The boiler burst.")


def _refuses(payload: WebhookPayload) -> None:
    raise HTTPException(503)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("handler", [_raises, _refuses])
async def test_what_never_works_is_given_up_and_said(
    file: Path, handler: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    server = a_server(file, handler)
    async with server.lifespan():
        await post(server, "/webhooks/hear", headers=signed(SECRET))
        await until(lambda: "is given up" in caplog.text)

    assert (
        f"The delivery {ID} to /webhooks/hear failed 3 times and is given up; the hub can replay it."
        in caplog.text
    )
    store = SpoolStore(file)
    assert store.counts() == SpoolCounts(waiting=0, failed=1)
    store.close()


@pytest.mark.usefixtures("quick")
async def test_a_failure_does_not_hold_up_the_next(file: Path) -> None:
    told: list[str] = []

    async def hear(payload: WebhookPayload) -> None:
        if payload.repo.name == "ada/engine":
            raise RuntimeError("The boiler burst.")
        told.append(payload.repo.name)

    server = a_server(file, hear)
    body = a_payload(repo=PAYLOAD["repo"] | {"name": "ada/loom"})
    async with server.lifespan():
        await post(server, "/webhooks/hear", headers=signed(SECRET))
        headers = signed(SECRET, body=body, delivery_id="d2")
        await post(server, "/webhooks/hear", body=body, headers=headers)
        await until(lambda: told == ["ada/loom"])


async def test_a_handler_that_is_gone_leaves_its_deliveries_waiting(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = SpoolStore(file)
    store.add(a_delivery(path="/webhooks/gone"), now=0)
    store.close()

    async with WebhooksServer(webhook_secret=SECRET, spool=file).lifespan():
        await until(lambda: "There is no handler for /webhooks/gone any more." in caplog.text)

    store = SpoolStore(file)
    assert store.counts() == SpoolCounts(waiting=1, failed=0)
    store.close()


async def test_the_request_is_there_later_too_without_its_secrets(file: Path) -> None:
    seen: list[Any] = []

    async def hear(request: Request) -> None:
        seen.append(
            {
                "headers": sorted(request.headers.keys()),
                "query": dict(request.query_params),
                "body": await request.json() == PAYLOAD,
            }
        )

    server = a_server(file, hear)
    async with server.lifespan():
        headers = signed(SECRET) | {"authorization": "Bearer t", "cookie": "c=1"}
        await post(server, "/webhooks/hear?a=b", headers=headers)
        await until(lambda: bool(seen))

    [request] = seen
    assert {"webhook-id", "webhook-timestamp", "content-type"} <= set(request["headers"])
    gone = {"x-webhook-secret", "webhook-signature", "authorization", "cookie"}
    assert gone & set(request["headers"]) == set()
    assert (request["query"], request["body"]) == ({"a": "b"}, True)


async def test_background_tasks_are_part_of_the_work(file: Path) -> None:
    done: list[str] = []

    async def hear(payload: WebhookPayload, later: BackgroundTasks) -> None:
        later.add_task(done.append, payload.repo.name)

    server = a_server(file, hear)
    async with server.lifespan():
        await post(server, "/webhooks/hear", headers=signed(SECRET))
        await until(lambda: done == ["ada/engine"])
        await asyncio.sleep(0.05)

    assert done == ["ada/engine"]


@pytest.mark.usefixtures("quick")
async def test_background_tasks_that_fail_are_tried_again_with_the_rest(file: Path) -> None:
    tries: list[str] = []

    def work(name: str) -> None:
        tries.append(name)
        if len(tries) == 1:
            raise RuntimeError("The boiler burst.")

    async def hear(payload: WebhookPayload, later: BackgroundTasks) -> None:
        later.add_task(work, payload.repo.name)

    server = a_server(file, hear)
    async with server.lifespan():
        await post(server, "/webhooks/hear", headers=signed(SECRET))
        await until(lambda: len(tries) == 2)

    store = SpoolStore(file)
    assert store.counts() == SpoolCounts(waiting=0, failed=0)
    store.close()


def _in_the_background(work: Callable[[], None]) -> Response:
    return JSONResponse({}, background=BackgroundTask(work))


def _in_a_stream(work: Callable[[], None]) -> Response:
    def pieces() -> Iterator[str]:
        yield "begun"
        work()

    return StreamingResponse(pieces())


def _in_a_generator(work: Callable[[], None]) -> Iterator[None]:
    yield work()


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("left_in", [_in_the_background, _in_a_stream, _in_a_generator])
async def test_what_hangs_on_the_answer_is_part_of_the_work(
    file: Path, left_in: Callable[[Callable[[], None]], Any]
) -> None:
    tries: list[int] = []

    def work() -> None:
        tries.append(1)
        if len(tries) == 1:
            raise RuntimeError("The boiler burst.")

    def hear(payload: WebhookPayload) -> Any:
        return left_in(work)

    server = a_server(file, hear)
    async with server.lifespan():
        await post(server, "/webhooks/hear", headers=signed(SECRET))
        await until(lambda: len(tries) == 2)

    store = SpoolStore(file)
    assert (store.counts(), len(tries)) == (SpoolCounts(waiting=0, failed=0), 2)
    store.close()


@pytest.mark.usefixtures("quick")
async def test_what_hangs_on_a_bad_answer_is_left_alone(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    done: list[int] = []

    def hear(payload: WebhookPayload) -> Response:
        return JSONResponse({}, status_code=503, background=BackgroundTask(done.append, 1))

    server = a_server(file, hear)
    async with server.lifespan():
        await post(server, "/webhooks/hear", headers=signed(SECRET))
        await until(lambda: "is given up" in caplog.text)

    assert done == []


@pytest.mark.usefixtures("quick")
async def test_work_is_not_repeated_for_what_it_returns(file: Path) -> None:
    tries: list[int] = []

    def hear(payload: WebhookPayload) -> object:
        tries.append(1)
        return object()

    server = a_server(file, hear)
    async with server.lifespan():
        await post(server, "/webhooks/hear", headers=signed(SECRET))
        await until(lambda: bool(tries))
        await asyncio.sleep(0.1)

    store = SpoolStore(file)
    assert (store.counts(), tries) == (SpoolCounts(waiting=0, failed=0), [1])
    store.close()


@pytest.mark.usefixtures("quick")
async def test_a_coroutine_that_nobody_ran_is_no_work_done(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def hear(payload: WebhookPayload) -> _Later:
        return _Later()

    server = a_server(file, hear)
    async with server.lifespan():
        await post(server, "/webhooks/hear", headers=signed(SECRET))
        await until(lambda: "is given up" in caplog.text)

    assert "It returned a _Later, which nobody runs" in caplog.text


class _Later:
    def __await__(self) -> Iterator[None]:
        yield


async def test_a_failure_that_took_long_is_not_tried_again_at_once(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hublet.receiver.spool_store.WAITS", (0.3,))
    monkeypatch.setattr(spool, "WAITS", (0.3,))
    times: list[float] = []

    async def hear(payload: WebhookPayload) -> None:
        begun = time.monotonic()
        await asyncio.sleep(0.4 if not times else 0)
        times.extend([begun, time.monotonic()])
        raise RuntimeError("The boiler burst.")

    server = a_server(file, hear)
    async with server.lifespan():
        await post(server, "/webhooks/hear", headers=signed(SECRET))
        await until(lambda: len(times) == 4)

    assert times[2] - times[1] >= 0.25


async def test_stopping_lets_the_delivery_in_hand_end(file: Path) -> None:
    begun, ended = asyncio.Event(), []

    async def hear(payload: WebhookPayload) -> None:
        begun.set()
        await asyncio.sleep(0.1)
        ended.append(payload.repo.name)

    server = a_server(file, hear)
    async with server.lifespan():
        await post(server, "/webhooks/hear", headers=signed(SECRET))
        await begun.wait()

    assert ended == ["ada/engine"]
    store = SpoolStore(file)
    assert store.counts() == SpoolCounts(waiting=0, failed=0)
    store.close()


async def test_a_delivery_that_cannot_be_kept_is_not_acknowledged(
    file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: Any, **__: Any) -> bool:
        raise sqlite3.OperationalError("database or disk is full")

    async def hear(payload: WebhookPayload) -> None: ...

    server = a_server(file, hear)
    async with server.lifespan():
        monkeypatch.setattr(SpoolStore, "add", full)
        answer = await post(server, "/webhooks/hear", headers=signed(SECRET))

    assert (answer.status_code, answer.text) == (500, "Internal Server Error")
    assert "A delivery to /webhooks/hear could not be kept." in caplog.text
