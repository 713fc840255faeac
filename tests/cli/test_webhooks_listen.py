"""Deliveries forwarded to this machine: the real command, a real hub, a real receiver."""

import re
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from benchmarks.processes import free_port

from cli.hublet_command import Hublet
from cli.listeners import Listener, listening, wait_for_count
from hublet.cli.webhooks.listen import SeenDeliveries, forward_delivery
from hublet.client.webhooks import Delivery
from hublet.receiver.signatures import verify
from hublet.testing import receiving
from patience import SOON_SECONDS
from processes import Place, Server, serving, wait_until


def a_model(server: Server, name: str) -> str:
    with server.client(server.token) as client:
        made = client.post("/api/repos/create", json={"name": name, "type": "model"})
    assert made.status_code == 200, made.text
    return f"{server.user}/{name}"


def discuss(server: Server, repo: str, title: str = "It does not turn") -> None:
    """Let something happen to a model that webhooks are told of."""
    with server.client(server.token) as client:
        made = client.post(f"/api/models/{repo}/discussions", json={"title": title})
    assert made.status_code == 200, made.text


def webhooks_of(server: Server) -> list[str]:
    with server.client(server.token) as client:
        return [each["id"] for each in client.get("/api/settings/webhooks").json()]


def titles(listener: Listener) -> list[str]:
    return [each["payload"]["discussion"]["title"] for each in listener.heard]


def test_what_happens_is_posted_to_this_machine_as_the_hub_would(
    server: Server, tmp_path: Path
) -> None:
    repo = a_model(server, "forwarded")
    with receiving() as receiver:
        receiver.answer_with(202)
        options = ("--watch", f"model:{repo}", "--forward", receiver.url, "--secret", "s3cret")
        with listening(server, tmp_path, *options, "--json") as listener:
            discuss(server, repo, "Größe \N{SNOWMAN}")
            wait_for_count(listener, 1)
            [told] = listener.heard
            assert listener.end() == 130

    [request] = receiver.deliveries
    assert request.json == told["payload"]
    assert "Größe \N{SNOWMAN}".encode() in request.body
    assert request.headers["webhook-id"] == told["id"]
    assert request.headers["content-type"] == "application/json"
    assert request.headers["x-webhook-attempt"] == "1"
    assert request.headers["x-webhook-secret"] == "s3cret"
    assert verify(request.headers, request.body, secrets=["s3cret"], require_signature=True) is None
    assert told["event"]["repo"] == {"type": "model", "name": repo}
    assert told["forwarded"] == {
        "status": 202, "reason": None, "milliseconds": told["forwarded"]["milliseconds"],
    }  # fmt: skip
    assert listener.words == "Listening; Ctrl-C ends it.\n"


def test_each_delivery_is_a_line_with_the_local_answer(server: Server, tmp_path: Path) -> None:
    repo = a_model(server, "lines")
    with receiving() as receiver:
        receiver.answer_with(500)
        options = ("--watch", f"model:{repo}", "--forward", receiver.url)
        with listening(server, tmp_path, *options) as listener:
            discuss(server, repo)
            wait_for_count(listener, 1)

    [line] = listener.lines
    moment = r"20\d\d-\d\d-\d\d \d\d:\d\d"
    assert re.fullmatch(rf"{moment}  discussion create  model:{repo}  500  \d+ ms", line)
    [request] = receiver.deliveries
    assert "webhook-signature" not in request.headers
    assert "x-webhook-secret" not in request.headers


def test_a_port_where_nobody_listens_is_told(server: Server, tmp_path: Path) -> None:
    repo = a_model(server, "nobody")
    options = ("--watch", f"model:{repo}", "--forward", f"http://127.0.0.1:{free_port()}/")
    with listening(server, tmp_path, *options) as listener:
        discuss(server, repo)
        wait_for_count(listener, 1)

    assert "  no answer (connection refused)  " in listener.lines[0]


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_webhook_of_the_command_goes_with_it(
    server: Server, tmp_path: Path, by: signal.Signals
) -> None:
    repo = a_model(server, f"temporary-{by.value}")
    before = webhooks_of(server)

    with listening(server, tmp_path, "--watch", f"model:{repo}") as listener:
        during = webhooks_of(server)
        code = listener.end(by)

    assert code == 128 + by
    assert len(during) == len(before) + 1
    assert webhooks_of(server) == before


def test_a_webhook_that_exists_goes_on_as_it_was(
    server: Server, ask: Hublet, tmp_path: Path
) -> None:
    repo = a_model(server, "existing")
    with receiving() as real, receiving() as local:
        made = ask("webhooks", "create", "--watch", f"model:{repo}", "--url", real.url, "-q")
        webhook_id = made.out.strip()
        discuss(server, repo, "before anybody listened")
        wait_until(lambda: len(real.deliveries) == 1, seconds=SOON_SECONDS)
        options = (webhook_id, "--forward", local.url, "--json")
        with listening(server, tmp_path, *options) as listener:
            discuss(server, repo, "while somebody does")
            wait_until(lambda: len(real.deliveries) == 2, seconds=SOON_SECONDS)
            wait_for_count(listener, 1)
            pinged = ask("webhooks", "ping", webhook_id)
            wait_for_count(listener, 2)
            replayed = ask("webhooks", "replay", webhook_id, listener.heard[0]["id"])
            wait_for_count(listener, 3)
            listener.end()

    assert (pinged.code, replayed.code) == (0, 0)
    assert [each.body for each in local.deliveries] == [each.body for each in real.deliveries[1:]]
    assert [each["event"]["scope"] for each in listener.heard] == [
        "discussion", "ping", "discussion",
    ]  # fmt: skip
    assert webhook_id in webhooks_of(server)


def test_a_hub_that_is_started_again_loses_and_doubles_nothing(
    place: Place, tmp_path: Path
) -> None:
    with receiving() as receiver, ExitStack() as ends:
        with serving(place, "--test-mode") as first:
            repo = a_model(first, "engine")
            options = ("--watch", f"model:{repo}", "--forward", receiver.url, "--json")
            listener = ends.enter_context(listening(first, tmp_path, *options))
            discuss(first, repo, "one")
            wait_for_count(listener, 1)
        listener.process.wait_for("The connection is lost")
        port = first.address.rpartition(":")[2]
        with serving(place, "--test-mode", "--port", port) as second:
            again = replace(second, token=first.token, user=first.user)
            discuss(again, repo, "two")
            listener.process.wait_for("Listening again.")
            discuss(again, repo, "three")
            wait_for_count(listener, 3)
            listener.end()
            left = webhooks_of(again)

    assert titles(listener) == ["one", "two", "three"]
    assert [each.json["discussion"]["title"] for each in receiver.deliveries] == titles(listener)
    assert left == []


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        pytest.param([], "Give the ID of a webhook, or --watch TYPE:NAME.", id="nothing"),
        pytest.param(
            ["0" * 24, "--watch", "model:a/b"], "Give the ID of a webhook, or --watch", id="both"
        ),
        pytest.param(
            ["--watch", "model:a/b", "--forward", "localhost:8080"],
            "localhost:8080 is not an address such as http://localhost:8080/hook.",
            id="an address without a scheme",
        ),
    ],
)
def test_wrong_usage_is_told(run: Hublet, arguments: list[str], complaint: str) -> None:
    refused = run("webhooks", "listen", *arguments, "--endpoint", "http://127.0.0.1:1")

    assert refused.code == 2
    assert complaint in " ".join(refused.err.split())


def test_an_unknown_webhook_is_told(ask: Hublet) -> None:
    refused = ask("webhooks", "listen", "0" * 24)

    assert (refused.code, refused.err) == (1, f"hublet: There is no webhook {'0' * 24}.\n")


DELIVERY: Delivery = {
    "id": "a" * 24,
    "state": "pending",
    "attempts": 0,
    "createdAt": "2026-11-15T01:44:56.000Z",
}


@pytest.fixture
def breaking_off() -> Iterator[str]:
    """A program that dies in the middle of its response."""

    def respond() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65_536)
            head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            connection.sendall(head + b"5\r\nhel")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=respond)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/hook"
        thread.join()


def test_a_response_that_is_cut_off_is_none(breaking_off: str) -> None:
    sent = forward_delivery(breaking_off, DELIVERY, {"event": {}}, secret=None)

    assert (sent.status, sent.reason, sent.is_success) == (None, "the connection broke", False)


def a_delivery(state: str, attempts: int, *, delivery_id: str = "1") -> Any:
    return {"id": delivery_id, "state": state, "attempts": attempts}


@pytest.mark.parametrize(
    ("states", "are_new"),
    [
        pytest.param([("pending", 0), ("delivered", 1)], [True, False], id="it arrives"),
        pytest.param([("delivered", 1), ("delivered", 1)], [True, False], id="sent twice"),
        pytest.param(
            [("pending", 0), ("pending", 1), ("pending", 2), ("failed", 3)],
            [True, False, False, False],
            id="the hub tries again",
        ),
        pytest.param(
            [("delivered", 1), ("pending", 1), ("delivered", 2)], [True, True, False], id="a replay"
        ),
        pytest.param([("failed", 1), ("delivered", 2)], [True, True], id="a replay that was quick"),
        pytest.param([("unsent", 0), ("pending", 0)], [True, True], id="a recovery"),
    ],
)
def test_a_delivery_is_new_at_first_and_after_a_replay(
    states: list[tuple[str, int]], are_new: list[bool]
) -> None:
    seen = SeenDeliveries()

    assert [seen.add(a_delivery(*each)) for each in states] == are_new


def test_deliveries_of_long_ago_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hublet.cli.webhooks.listen._MAX_SEEN", 2)
    seen = SeenDeliveries()
    for each in ("1", "2", "1", "3"):
        seen.add(a_delivery("delivered", 1, delivery_id=each))

    assert [seen.add(a_delivery("delivered", 1, delivery_id=each)) for each in "132"] == [
        False, False, True,
    ]  # fmt: skip
