"""A receiver that is launched: its port, its words, its rest and its end, on real sockets."""

import asyncio
import http.client
import json
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hublet.core import lean_protocol
from hublet.receiver import WebhookPayload, WebhooksServer, responses
from hublet.receiver.spool_store import SpoolStore
from patience import SOON_SECONDS
from processes import wait_until
from receiver.deliveries import BODY, JSON

CPU_BASIC = {
    "SPACE_ID": "ada/engine",
    "ACCELERATOR": "none",
    "CPU_CORES": "2",
    "MEMORY": "16Gi",
}


@pytest.fixture
def server() -> Iterator[WebhooksServer]:
    server = a_server()
    yield server
    server.close()


def a_server(**options: Any) -> WebhooksServer:
    server = WebhooksServer(**(dict[str, Any](webhook_secret="coal") | options))

    @server.add_webhook
    def hear(payload: WebhookPayload) -> str:
        return payload.repo.name

    return server


def deliver(server: WebhooksServer) -> Any:
    request = urllib.request.Request(
        f"{server.local_url}/webhooks/hear",
        data=BODY,
        headers=JSON | {"x-webhook-secret": "coal"},
    )
    with urllib.request.urlopen(request, timeout=SOON_SECONDS) as answer:
        return json.load(answer)


def launch(server: WebhooksServer, **options: Any) -> None:
    server.launch(prevent_thread_lock=True, **options)


def test_it_serves_beside_what_follows(
    server: WebhooksServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert server.local_url is None
    launch(server, server_name="127.0.0.1", server_port=0)

    assert deliver(server) == "ada/engine"
    assert capsys.readouterr().out == (
        "\nWebhooks are correctly setup and ready to use:\n"
        f"  - POST {server.local_url}/webhooks/hear\n"
        "Create webhooks that point there: hf webhooks create --help\n"
    )


def test_a_result_is_answered_whole_and_on_a_kept_connection(server: WebhooksServer) -> None:
    launch(server, server_port=0, quiet=True)
    [host, port] = str(server.local_url).removeprefix("http://").split(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=SOON_SECONDS)
    answers = []

    for _ in range(2):
        connection.request(
            "POST", "/webhooks/hear", BODY, headers=JSON | {"x-webhook-secret": "coal"}
        )
        answer = connection.getresponse()
        names = sorted(name.lower() for name, _ in answer.getheaders())
        answers.append((answer.status, names, answer.getheader("content-type"), answer.read()))
    connection.close()

    names = ["content-length", "content-type", "date"]
    assert answers == [(200, names, "application/json", b'"ada/engine"')] * 2
    assert responses.WHOLE_RESPONSE == lean_protocol.WHOLE_RESPONSE


def test_a_webhook_can_be_added_while_it_serves(server: WebhooksServer) -> None:
    launch(server, server_port=0)

    @server.add_webhook
    async def later(payload: WebhookPayload) -> str:
        return "later"

    request = urllib.request.Request(
        f"{server.local_url}/webhooks/later",
        data=BODY,
        headers=JSON | {"x-webhook-secret": "coal"},
    )
    with urllib.request.urlopen(request, timeout=SOON_SECONDS) as answer:
        assert json.load(answer) == "later"


def test_a_closed_server_is_gone_and_can_be_launched_again(server: WebhooksServer) -> None:
    launch(server, server_port=0)
    port = int((server.local_url or "").rpartition(":")[2])
    server.close()

    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=SOON_SECONDS)
    launch(server, server_port=port)
    assert deliver(server) == "ada/engine"


def test_a_server_that_runs_is_not_launched_twice(server: WebhooksServer) -> None:
    launch(server, server_port=0)

    with pytest.raises(RuntimeError, match=f"This server runs already, at {server.local_url}"):
        server.launch()


def test_closing_what_was_never_launched_does_nothing(server: WebhooksServer) -> None:
    server.close()


def test_a_launch_that_blocks_ends_with_close(server: WebhooksServer) -> None:
    blocked = threading.Thread(target=server.launch, kwargs={"server_port": 0, "quiet": True})
    blocked.start()
    wait_until(lambda: server.local_url is not None, seconds=SOON_SECONDS)
    assert blocked.is_alive()

    server.close()
    blocked.join(SOON_SECONDS)

    assert not blocked.is_alive()


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_busy_port_that_was_asked_for_is_said(server: WebhooksServer, taken: int) -> None:
    with pytest.raises(OSError, match=rf"127\.0\.0\.1 has no free port in {taken}-{taken}: name"):
        launch(server, server_port=taken)
    assert server.local_url is None


def test_of_the_usual_ports_the_next_free_one_is_taken(
    server: WebhooksServer, taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRADIO_SERVER_PORT", str(taken))
    monkeypatch.setenv("GRADIO_SERVER_NAME", "127.0.0.1")

    launch(server)

    port = int((server.local_url or "").rpartition(":")[2])
    assert taken < port < taken + 100
    assert deliver(server) == "ada/engine"


def test_the_usual_port_is_that_of_the_public_library(monkeypatch: pytest.MonkeyPatch) -> None:
    from hublet.receiver import environment  # noqa: PLC0415 - only this test looks inside

    assert environment.server_ports() == range(7860, 7960)
    monkeypatch.setenv("GRADIO_NUM_PORTS", "1")
    assert environment.server_ports() == range(7860, 7861)
    assert environment.server_name() == "127.0.0.1"
    monkeypatch.setenv("SPACE_ID", "ada/engine")
    assert environment.server_name() == "0.0.0.0"


def test_an_address_of_every_network_is_shown_as_one_to_go_to(server: WebhooksServer) -> None:
    launch(server, server_name="0.0.0.0", server_port=0)

    assert (server.local_url or "").startswith("http://127.0.0.1:")
    assert deliver(server) == "ada/engine"


def test_on_a_space_its_own_address_is_told(
    server: WebhooksServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPACE_HOST", "ada-engine.hf.space")

    launch(server, server_port=0)

    assert "  - POST https://ada-engine.hf.space/webhooks/hear\n" in capsys.readouterr().out


def test_options_of_gradio_are_left_aside_with_one_word(
    server: WebhooksServer,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    launch(server, server_port=0, share=True, quiet=True, debug=True, auth=("a", "b"))

    assert [
        record.getMessage() for record in caplog.records if record.name == "hublet.receiver"
    ] == [
        "There is no tunnel here: `share` is left aside, the server is local.",
        "Options for gradio alone are left aside: auth, debug.",
    ]
    assert capsys.readouterr().out == ""


def test_not_sharing_needs_no_word(
    server: WebhooksServer, caplog: pytest.LogCaptureFixture
) -> None:
    launch(server, server_port=0, share=False)

    assert [record for record in caplog.records if record.name == "hublet.receiver"] == []


class MovableTime:
    """The time of the receiver, which stands still until a test moves it."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def monotonic(self) -> float:
        return self.seconds

    @staticmethod
    def time() -> float:
        return time.time()


@pytest.fixture
def movable_time(monkeypatch: pytest.MonkeyPatch) -> MovableTime:
    movable = MovableTime()
    monkeypatch.setattr("hublet.receiver.environment.time", movable)
    return movable


IDLE_SECONDS = 60.0
# Time for the server to look several times whether it is idle, and to stop if it were.
SOME_LOOKS_SECONDS = 0.8


def is_alive(server: WebhooksServer) -> bool:
    return server._launched is not None and server._launched.is_alive  # noqa: SLF001 - it has no other sign


def assert_it_stops(server: WebhooksServer) -> None:
    wait_until(lambda: not is_alive(server), seconds=SOON_SECONDS)


def test_it_stops_when_nothing_comes_for_long_enough(
    movable_time: MovableTime, caplog: pytest.LogCaptureFixture
) -> None:
    server = a_server(idle_shutdown_seconds=IDLE_SECONDS)
    launch(server, server_port=0)
    movable_time.seconds += 50
    deliver(server)
    # The delivery put it off.
    movable_time.seconds += 50
    time.sleep(SOME_LOOKS_SECONDS)
    assert is_alive(server)

    movable_time.seconds += 10
    assert_it_stops(server)

    assert "Nothing came for so long that this server stops." in caplog.text


def test_a_server_with_a_running_handler_is_not_idle(movable_time: MovableTime) -> None:
    server = WebhooksServer(webhook_secret="coal", idle_shutdown_seconds=IDLE_SECONDS)

    @server.add_webhook
    async def hear(payload: WebhookPayload) -> str:
        movable_time.seconds += 1000
        await asyncio.sleep(SOME_LOOKS_SECONDS)
        return "still here"

    launch(server, server_port=0)
    assert deliver(server) == "still here"
    server.close()


def test_the_idle_time_begins_when_work_from_the_spool_has_ended(
    tmp_path: Path, movable_time: MovableTime
) -> None:
    server = WebhooksServer(
        webhook_secret="coal", spool=tmp_path / "spool.db", idle_shutdown_seconds=IDLE_SECONDS
    )
    ended = threading.Event()

    @server.add_webhook
    def hear(payload: WebhookPayload) -> None:
        movable_time.seconds += 1000
        time.sleep(SOME_LOOKS_SECONDS)
        ended.set()

    launch(server, server_port=0)
    deliver(server)
    assert ended.wait(SOON_SECONDS)
    wait_until(lambda: not server._application.is_busy, seconds=SOON_SECONDS)  # noqa: SLF001 - as above
    movable_time.seconds += 50
    time.sleep(SOME_LOOKS_SECONDS)
    assert is_alive(server)

    movable_time.seconds += 10
    assert_it_stops(server)


def test_a_server_whose_spool_has_a_delivery_to_retry_is_not_idle(
    tmp_path: Path, movable_time: MovableTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hublet.receiver.spool_store.WAITS", (1.5,))
    server = WebhooksServer(
        webhook_secret="coal", spool=tmp_path / "spool.db", idle_shutdown_seconds=IDLE_SECONDS
    )
    attempts: list[int] = []

    @server.add_webhook
    def hear(payload: WebhookPayload) -> None:
        attempts.append(1)
        movable_time.seconds += 1000
        if len(attempts) == 1:
            raise RuntimeError("The boiler burst.")

    launch(server, server_port=0)
    deliver(server)
    wait_until(lambda: len(attempts) == 2, seconds=SOON_SECONDS)
    wait_until(lambda: not server._application.is_busy, seconds=SOON_SECONDS)  # noqa: SLF001 - as above
    movable_time.seconds += IDLE_SECONDS
    assert_it_stops(server)


@pytest.mark.parametrize(
    ("variables", "seconds"),
    [
        pytest.param(CPU_BASIC, 48 * 3600, id="a cpu-basic space"),
        pytest.param(CPU_BASIC | {"CPU_CORES": "8"}, None, id="a larger one"),
        pytest.param(CPU_BASIC | {"ACCELERATOR": "t4"}, None, id="one with an accelerator"),
        pytest.param(CPU_BASIC | {"SPACE_ID": ""}, None, id="no space"),
        pytest.param({}, None, id="a machine of one's own"),
    ],
)
def test_only_a_free_space_rests_by_itself(
    variables: dict[str, str], seconds: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    assert a_server()._idle_seconds == seconds  # noqa: SLF001 - 48 hours cannot be waited for
    assert a_server(idle_shutdown_seconds=None)._idle_seconds is None  # noqa: SLF001
    assert a_server(idle_shutdown_seconds=5)._idle_seconds == 5  # noqa: SLF001


def test_a_server_that_cannot_start_says_so(tmp_path: Path) -> None:
    store = SpoolStore(tmp_path / "spool.db")
    server = a_server(spool=tmp_path / "spool.db")

    with pytest.raises(RuntimeError, match="The server could not start; the reason stands in the"):
        launch(server, server_port=0)
    store.close()


@pytest.mark.parametrize("root", ["/proxied", "https://hooks.example.com/proxied/"])
def test_behind_a_proxy_the_page_tells_the_address_there(server: WebhooksServer, root: str) -> None:
    launch(server, server_port=0, root_path=root)

    assert deliver(server) == "ada/engine"
    with urllib.request.urlopen(f"{server.local_url}/", timeout=SOON_SECONDS) as page:
        assert f"POST {server.local_url}/proxied/webhooks/hear<" in page.read().decode()
