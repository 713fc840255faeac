"""A hub that runs delivers to a receiver that runs, both as processes; and gradio shows its page."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from patience import SOON_SECONDS
from processes import Place, serving, wait_until
from receiver.scripts import Script, running_script

SECRET = "whsec_c3RlYW0gYW5kIGNvYWwsIGNvYWwgYW5kIHN0ZWFt"
ROOT = Path(__file__).parents[2]
# `make` installs the public library there, with gradio.
WITH_GRADIO = ROOT / ".venv" / "clients" / "receiver" / "bin" / "python"

RECEIVER = """
from hublet.receiver import WebhookPayload, WebhooksServer

app = WebhooksServer(require_signature=True, {options})

@app.add_webhook
def hear(payload: WebhookPayload):
    with open("heard.jsonl", "a") as file:
        file.write(payload.model_dump_json(by_alias=True, exclude_unset=True) + "\\n")
    return {{"understood": payload.repo.head_sha}}

app.launch()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "receiver"
    folder.mkdir()
    return folder


@contextmanager
def a_hub(place: Place) -> Iterator[httpx2.Client]:
    with serving(place, "--test-mode") as hub, hub.client(hub.token) as client:
        _ok(client.post("/api/repos/create", json={"name": "engine"}))
        yield client


def watch(client: httpx2.Client, script: Script, secret: str) -> str:
    body = {
        "url": f"{script.url}/webhooks/hear",
        "watched": [{"type": "user", "name": "admin"}],
        "domains": ["repo", "discussion"],
        "secret": secret,
    }
    webhook_id: str = _ok(client.post("/api/settings/webhooks", json=body))["webhook"]["id"]
    return webhook_id


def tried(client: httpx2.Client, webhook_id: str, *, count: int) -> list[dict[str, Any]]:
    """Wait for so many deliveries with an answer, and return them, oldest first."""
    path = f"/api/settings/webhooks/{webhook_id}/deliveries"

    def found() -> list[dict[str, Any]]:
        return [each for each in _ok(client.get(path)) if "status" in each]

    wait_until(lambda: len(found()) >= count, seconds=SOON_SECONDS)
    return [_ok(client.get(f"{path}/{each['id']}")) for each in reversed(found())]


def heard(folder: Path) -> list[dict[str, Any]]:
    file = folder / "heard.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def open_discussion(client: httpx2.Client) -> None:
    path = "/api/models/admin/engine/discussions"
    _ok(client.post(path, json={"title": "It does not turn", "description": "Help!"}))


def test_a_hub_delivers_with_a_secret_and_a_signature(place: Place, folder: Path) -> None:
    script = running_script(RECEIVER.format(options=""), folder, {"WEBHOOK_SECRET": SECRET})
    with a_hub(place) as client, script as receiver:
        webhook_id = watch(client, receiver, SECRET)
        open_discussion(client)
        _ok(client.post("/api/repos/create", json={"name": "store", "type": "bucket"}))

        deliveries = tried(client, webhook_id, count=2)
        assert receiver.stop() == 0

    assert [(each["status"], each["attempts"]) for each in deliveries] == [(200, 1), (200, 1)]
    # Deliveries of two repositories are sent side by side.
    received = sorted(heard(folder), key=lambda each: each["repo"]["id"])
    assert [each["payload"] for each in deliveries] == received
    assert [each["repo"]["type"] for each in received] == ["model", "bucket"]


def test_a_secret_that_differs_is_refused_and_the_hub_says_why(place: Place, folder: Path) -> None:
    script = running_script(RECEIVER.format(options=""), folder, {"WEBHOOK_SECRET": SECRET})
    with a_hub(place) as client, script as receiver:
        webhook_id = watch(client, receiver, "soot")
        open_discussion(client)
        [delivery] = tried(client, webhook_id, count=1)

    assert (delivery["status"], heard(folder)) == (403, [])
    [attempt] = delivery["attemptLog"]
    assert attempt["response"] == '{"error":"Invalid webhook secret."}'


def test_what_was_answered_first_is_handled_once_also_when_it_is_replayed(
    place: Place, folder: Path
) -> None:
    text = RECEIVER.format(options='spool="spool.db"')
    with (
        a_hub(place) as client,
        running_script(text, folder, {"WEBHOOK_SECRET": SECRET}) as receiver,
    ):
        webhook_id = watch(client, receiver, SECRET)
        open_discussion(client)
        [delivery] = tried(client, webhook_id, count=1)
        replayed = client.post(f"/api/settings/webhooks/{webhook_id}/replay/{delivery['id']}")
        wait_until(lambda: len(heard(folder)) == 1, seconds=SOON_SECONDS)
        assert receiver.stop() == 0

    assert delivery["status"] == 202
    assert _ok(replayed) == {"deliveryId": delivery["id"], "status": 202}
    assert len(heard(folder)) == 1
    assert SECRET.encode() not in b"".join(each.read_bytes() for each in folder.glob("spool.db*"))


WITH_A_PAGE = """
import gradio as gr
from hublet.receiver import WebhookPayload, WebhooksServer

with gr.Blocks() as ui:
    gr.Markdown("# A page of coal")

app = WebhooksServer(ui=ui, webhook_secret="coal")

@app.add_webhook("/say_hello")
async def hello(payload: WebhookPayload):
    return {"message": "hello"}

app.launch(prevent_thread_lock=True, server_port=0)
import urllib.request
with urllib.request.urlopen(app.local_url) as page:
    print("A page of coal" in page.read().decode())
app.close()
"""


def test_an_interface_of_gradio_is_shown_where_there_is_gradio() -> None:
    ended = subprocess.run(
        [WITH_GRADIO, "-c", WITH_A_PAGE],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src"), "GRADIO_ANALYTICS_ENABLED": "False"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[-1] == "True"
    assert "Task was destroyed" not in ended.stderr


def _ok(answer: httpx2.Response) -> Any:
    assert answer.status_code == 200, answer.text
    return answer.json()
