"""A reset leaves nothing: no row, no file, no task, no process, no moved clock."""

import os
import subprocess
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import httpx2
from huggingface_hub import HfApi

from hublet.core import clock
from hublet.testing import Hub, HubProcess, Receiver
from patience import SOON_SECONDS


def soon(is_so: Callable[[], bool], *, seconds: float = 20.0) -> bool:
    """Wait until it is so; tell whether it came to that."""
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def status(hub: Hub, token: str, path: str = "/api/whoami-v2") -> int:
    headers = {"Authorization": f"Bearer {token}"}
    return httpx2.get(f"{hub.url}{path}", headers=headers, trust_env=False).status_code


def test_nobody_and_nothing_is_left(hub: Hub) -> None:
    ada = hub.user("ada")
    api = HfApi(endpoint=hub.url, token=ada.token)
    api.create_repo("ada/engine")
    api.upload_file(path_or_fileobj=b"coal", path_in_repo="coal.txt", repo_id="ada/engine")
    folder = hub.data_dir

    hub.reset()

    assert status(hub, ada.token) == 401
    assert list(HfApi(endpoint=hub.url, token=hub.admin.token).list_models()) == []
    assert not list(hub.data_dir.glob("repos/**/*.git"))
    assert soon(lambda: not folder.exists())
    assert hub.user("ada").token != ada.token


def test_the_first_hub_and_all_later_ones_are_alike(hub: Hub) -> None:
    def shape() -> list[str]:
        return sorted(str(path.relative_to(hub.data_dir)) for path in hub.data_dir.glob("*.*"))

    hub.reset()
    first = shape()
    hub.user("ada")
    hub.reset()

    assert shape() == first
    assert status(hub, hub.admin.token, "/api/admin/users") == 200


def test_the_clock_and_the_faults_are_as_ever(hub: Hub) -> None:
    hub.clock.forward(days=400)
    hub.user("ada")
    hub.fail_next(503, times=100)

    hub.reset()

    assert abs(hub.clock.now() - clock.now()) < timedelta(minutes=1)
    assert status(hub, hub.admin.token) == 200
    # Ids tell the time too, and would stay in the future.
    webhook = HfApi(endpoint=hub.url, token=hub.admin.token).create_webhook(
        url="http://127.0.0.1:9/", watched=[{"type": "user", "name": "admin"}]
    )
    assert abs(int(webhook.id[:8], 16) - clock.micros() // 1_000_000) < 60


def test_a_delivery_that_waits_is_never_made(hub: Hub, receiver: Receiver) -> None:
    api = HfApi(endpoint=hub.url, token=hub.user("ada").token)
    receiver.answer_with(500)
    api.create_webhook(url=receiver.url, watched=[{"type": "user", "name": "ada"}])
    api.create_repo("ada/engine")
    receiver.wait_for(1)

    hub.reset()
    hub.clock.forward(days=3)

    assert len(receiver.deliveries) == 1
    assert hub.webhooks.deliveries() == []


def test_a_request_under_way_is_broken_off(hub: Hub) -> None:
    hub.slow_next(60, path="/healthz")
    answers: list[httpx2.Response] = []

    def ask() -> None:
        answers.append(httpx2.get(f"{hub.url}/healthz", trust_env=False, timeout=SOON_SECONDS))

    asking = threading.Thread(target=ask)
    asking.start()
    assert soon(lambda: _planned(hub) == 0)
    hub.reset()
    asking.join()

    assert answers[0].status_code == 503
    assert answers[0].json() == {"error": "The hub was reset while it worked on this request."}


def _planned(hub: Hub) -> int:
    return len(httpx2.get(f"{hub.url}/api/test-mode/faults", trust_env=False).json())


def test_a_job_does_not_outlive_its_test(hub: Hub) -> None:
    api = HfApi(endpoint=hub.url, token=hub.user("ada").token)
    # Nobody else on this machine sleeps so long.
    command = ["sleep", f"600.{os.getpid()}"]
    api.run_job(image="ubuntu", command=command)
    assert soon(lambda: _runs(command), seconds=60)

    hub.reset()

    assert soon(lambda: not _runs(command))


def _runs(command: list[str]) -> bool:
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
    return " ".join(command) in listed.stdout.splitlines()


def test_resets_leave_no_threads(hub: Hub, hub_process: HubProcess) -> None:
    hub.reset()
    threads = _threads(hub_process)
    for _ in range(10):
        hub.user("ada")
        hub.reset()

    assert _threads(hub_process) <= threads + 2


def _threads(process: HubProcess) -> int:
    return len(list(Path(f"/proc/{process.pid}/task").iterdir()))
