"""Scripts as people write them, run as processes: the public library's with another import line."""

import inspect
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest
from huggingface_hub import webhook_endpoint as theirs

from patience import SOON_SECONDS
from processes import wait_until
from receiver.deliveries import JSON, a_payload, signed
from receiver.scripts import Script, running_script

SECRET = JSON | {"x-webhook-secret": "coal"}

# Of the public library's guide; only the first line is another one.
SERVER = """
from hublet.receiver import WebhookPayload, WebhooksServer

app = WebhooksServer(ui=None, webhook_secret="coal")

@app.add_webhook("/say_hello")
async def hello(payload: WebhookPayload):
    return {"message": "hello"}

@app.add_webhook
async def trigger_training(payload: WebhookPayload):
    if payload.repo.type == "model" and payload.event.action == "update":
        return {"processed": True, "head": payload.repo.head_sha}

app.launch(prevent_thread_lock=False, share=False)
print("The end.", flush=True)
"""
ENDPOINTS = """
import asyncio
import time
from hublet.receiver import WebhookPayload, webhook_endpoint

@webhook_endpoint
async def trigger_training(payload: WebhookPayload) -> None:
    if payload.repo.type == "model" and payload.event.action == "update":
        return payload.repo.name

@webhook_endpoint("/blocks")
def blocks(payload: WebhookPayload):
    time.sleep(0.01)
    return "in a thread"

@webhook_endpoint("/threads")
async def threads(payload: WebhookPayload):
    return await asyncio.to_thread(lambda: "in a thread of its own")

print("The script has ended.", flush=True)
"""


def test_a_script_of_the_public_librarys_server_runs(tmp_path: Path) -> None:
    with running_script(SERVER, tmp_path) as script:
        said = [
            script.post(f"/webhooks/{name}", SECRET).json()
            for name in ("say_hello", "trigger_training")
        ]
        stranger = script.post("/webhooks/say_hello", JSON)
        assert script.stop() == 0

    assert said == [
        {"message": "hello"},
        {"processed": True, "head": "359d420fdc59764d9148b9191bef8f025f9cecd2"},
    ]
    assert (stranger.status_code, stranger.json()) == (
        401,
        {"error": "x-webhook-secret header not set."},
    )
    assert script.said.endswith("The end.\n")


def test_a_script_of_endpoints_serves_at_its_end(tmp_path: Path) -> None:
    with running_script(ENDPOINTS, tmp_path) as script:
        said = [
            script.post(f"/webhooks/{name}", SECRET).json()
            for name in ("trigger_training", "blocks", "threads")
        ]
        refused = script.post("/webhooks/blocks", JSON | {"x-webhook-secret": "soot"})
        page = httpx2.get(script.url, trust_env=False)
        assert script.stop() == 0

    assert said == ["ada/engine", "in a thread", "in a thread of its own"]
    assert (refused.status_code, refused.json()) == (403, {"error": "Invalid webhook secret."})
    assert page.text.count("<li>") == 3
    assert script.said.startswith("The script has ended.\n")
    assert "Traceback" not in script.said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl+C", "SIGTERM"])
@pytest.mark.parametrize("text", [SERVER, ENDPOINTS], ids=["launched", "at the end"])
def test_a_signal_ends_it_well(tmp_path: Path, text: str, number: signal.Signals) -> None:
    with running_script(text, tmp_path) as script:
        assert script.url
        assert script.stop(number) == 0
        assert "Traceback" not in script.said


STUBBORN = """
import time
from hublet.receiver import WebhookPayload, WebhooksServer

app = WebhooksServer(timeout_seconds=None)

@app.add_webhook
def hear(payload: WebhookPayload):
    print("At work.", flush=True)
    time.sleep(0.5)
    print("Done.", flush=True)

app.launch()
print("The end.", flush=True)
"""


def test_what_is_in_hand_is_answered_before_the_end(tmp_path: Path) -> None:
    with running_script(STUBBORN, tmp_path) as script, ThreadPoolExecutor() as pool:
        asked = pool.submit(script.post, "/webhooks/hear", SECRET)
        script.wait_for("At work.")
        assert script.stop() == 0

        assert asked.result().status_code == 200
    assert script.said.endswith("At work.\nDone.\nThe end.\n")


def _refuses_connections(url: str) -> bool:
    try:
        httpx2.get(url, trust_env=False)
    except httpx2.ConnectError:
        return True
    return False


def test_a_second_signal_does_not_wait(tmp_path: Path) -> None:
    text = STUBBORN.replace("time.sleep(0.5)", "time.sleep(60)")
    with running_script(text, tmp_path) as script, ThreadPoolExecutor() as pool:
        asked = pool.submit(script.post, "/webhooks/hear", SECRET)
        script.wait_for("At work.")
        url = script.url
        script.popen.send_signal(signal.SIGINT)
        # The first signal was handled.
        wait_until(lambda: _refuses_connections(url), seconds=30)
        assert script.stop(signal.SIGINT) == 0

        # It is told that it failed, or nothing at all.
        assert asked.exception() or asked.result().status_code == 500


def test_the_public_librarys_own_example_serves_with_another_import(tmp_path: Path) -> None:
    documentation = inspect.getdoc(theirs) or ""
    example = documentation.split("```python\n")[1].split("```")[0]
    text = inspect.cleandoc(example).replace("from huggingface_hub", "from hublet.receiver")

    with running_script(text, tmp_path) as script:
        answer = script.post("/webhooks/trigger_training", SECRET)
        assert script.stop() == 0

    assert (answer.status_code, answer.json()) == (200, None)


def test_an_endpoint_can_be_launched_by_hand(tmp_path: Path) -> None:
    text = ENDPOINTS + "\nblocks.launch()\nprint('The end.', flush=True)\n"
    with running_script(text, tmp_path) as script:
        assert script.post("/webhooks/trigger_training", SECRET).json() == "ada/engine"
        assert script.stop() == 0

    # It served once, and not again at the end.
    assert script.said.endswith("The end.\n")
    assert script.said.count("ready to use") == 1


def test_the_same_path_twice_fails_and_nothing_serves(tmp_path: Path) -> None:
    text = ENDPOINTS + "\nwebhook_endpoint('/blocks')(blocks)\n"
    with running_script(text, tmp_path) as script:
        assert script.popen.wait(SOON_SECONDS) == 1

    assert "ValueError: Webhook /webhooks/blocks already exists." in script.said
    assert "ready to use" not in script.said


def test_a_script_that_leaves_by_itself_serves(tmp_path: Path) -> None:
    # Python tells nobody with which word it was left.
    with running_script(f"{ENDPOINTS}\nimport sys\nsys.exit('Enough.')\n", tmp_path) as script:
        assert script.post("/webhooks/blocks", SECRET).json() == "in a thread"
        assert script.stop() == 1


POOLED = """
from concurrent.futures import ThreadPoolExecutor
from hublet.receiver import WebhookPayload, webhook_endpoint

pool = ThreadPoolExecutor()

@webhook_endpoint
def pooled(payload: WebhookPayload):
    return pool.submit(lambda: "in a pool").result()
"""


def test_a_pool_of_threads_needs_a_launch_by_hand(tmp_path: Path) -> None:
    with running_script(POOLED, tmp_path) as script:
        assert script.post("/webhooks/pooled", SECRET).status_code == 500
        script.wait_for("RuntimeError: cannot schedule new futures after")
    with running_script(f"{POOLED}\npooled.launch()\n", tmp_path) as script:
        assert script.post("/webhooks/pooled", SECRET).json() == "in a pool"


def test_a_signal_before_the_end_means_what_it_always_means(tmp_path: Path) -> None:
    text = ENDPOINTS + "\nprint('Busy.', flush=True)\ntime.sleep(60)\n"
    with running_script(text, tmp_path) as script:
        script.wait_for("Busy.")
        assert script.stop(signal.SIGTERM) == -signal.SIGTERM
    with running_script(text, tmp_path) as script:
        script.wait_for("Busy.")
        assert script.stop(signal.SIGINT) == -signal.SIGINT
        assert "KeyboardInterrupt" in script.said


SPOOLED = """
import os, time
from hublet.receiver import WebhookPayload, WebhooksServer

app = WebhooksServer(spool="spool.db")

@app.add_webhook
def hear(payload: WebhookPayload):
    with open("begun.txt", "a") as file:
        file.write(payload.webhook.id + "\\n")
    while os.path.exists("closed"):
        time.sleep(0.01)
    with open("done.txt", "a") as file:
        file.write(payload.webhook.id + "\\n")

app.launch()
"""


def _deliver(script: Script, number: int) -> int:
    body = a_payload(webhook={"id": str(number), "version": 3})
    headers = signed("coal", body=body, delivery_id=f"d{number}")
    return int(script.post("/webhooks/hear", headers, body).status_code)


def test_a_killed_receiver_loses_nothing_and_handles_again_only_what_it_had_in_hand(
    tmp_path: Path,
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    (place / "closed").touch()
    with running_script(SPOOLED, place) as script:
        assert [_deliver(script, number) for number in range(20)] == [202] * 20
        script.kill()
    assert (place / "begun.txt").read_text() == "0\n"
    (place / "closed").unlink()

    with running_script(SPOOLED, place) as script:
        # The hub heard no answer to some of them, as far as it knows, and sends them again.
        assert [_deliver(script, number) for number in range(15, 25)] == [202] * 10
        deadline = time.monotonic() + 30
        while len(_lines(place / "done.txt")) < 25 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert script.stop() == 0

    done = _lines(place / "done.txt")
    assert sorted(map(int, done)) == list(range(25))
    # The one in hand when it died waits for its next try; the others keep their order.
    assert [each for each in done if each != "0"] == [str(number) for number in range(1, 25)]
    assert sorted(map(int, _lines(place / "begun.txt"))) == [0, *range(25)]


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
