"""Webhooks of a hub that runs: to the public client's own server, and to a receiver that fails."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2

from acceptance.receivers import Receiver, receiving
from processes import Place, Server, clean_environment, run_hublet, serving, wait_until

CHECK = Path(__file__).parent / "clients" / "check_webhook_server.py"
# `make` installs each version of the client into an environment of its own, and one with gradio.
ENVIRONMENTS = Path(__file__).parents[2] / ".venv" / "clients"
VERSIONS = ["2.1.1", "2.4.0"]

# The clock is moved under the worker: it must look more often than once a second.
QUICK = {"HUBLET_WORKER_POLL_SECONDS": "0.05"}
PATIENCE_SECONDS = 30.0

SECOND, MINUTE, HOUR = (timedelta(**{unit: 1}) for unit in ("seconds", "minutes", "hours"))
WAITS = [5 * SECOND, 30 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR]
WAITS += [14 * HOUR, 20 * HOUR, 24 * HOUR]


@dataclass(frozen=True, slots=True, kw_only=True)
class Watching:
    """A webhook on a model, and the hub's clock, as their owner sees them."""

    client: httpx2.Client
    webhook_id: str

    @property
    def _path(self) -> str:
        return f"/api/settings/webhooks/{self.webhook_id}"

    def is_suspended(self) -> bool:
        shown = _ok(self.client.get(self._path))["webhook"]["disabled"]
        return bool(shown == "suspended-after-failure")

    def open_discussion(self) -> int:
        """Let something happen; return its number."""
        path, body = "/api/models/admin/engine/discussions", {"title": "It does not turn"}
        number: int = _ok(self.client.post(path, json=body))["num"]
        return number

    def deliveries(self) -> list[dict[str, Any]]:
        """Return all of them, oldest first."""
        found: list[dict[str, Any]] = _ok(self.client.get(f"{self._path}/deliveries?limit=100"))
        return found[::-1]

    def attempts(self) -> int:
        return sum(each["attempts"] for each in self.deliveries())

    def recover(self, since: datetime) -> Any:
        body = {"since": since.isoformat()}
        return _ok(self.client.post(f"{self._path}/recover", json=body))

    def now(self) -> datetime:
        return datetime.fromisoformat(_ok(self.client.get("/api/test-mode/clock"))["now"])

    def move_clock(self, by: timedelta) -> None:
        _ok(self.client.post("/api/test-mode/clock", json={"advanceSeconds": by.total_seconds()}))


def test_the_public_clients_own_server_understands_everything(place: Place) -> None:
    suite = ("-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider")
    with serving(place, "--test-mode") as hub:
        ada, grace = (_token(place, name) for name in ("ada", "grace"))

        ended = _run_client(
            *("receiver", "python", *suite, "-c", str(CHECK.with_name("pytest.ini")), str(CHECK)),
            variables=_variables(place, hub, ada) | {"STRANGERS_TOKEN": grace},
        )

    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_a_failed_delivery_is_tried_along_the_whole_schedule(place: Place) -> None:
    with receiving(status=500) as receiver, _watching(place, receiver) as (_, watching):
        watching.open_discussion()

        for number, planned in enumerate(WAITS, start=1):
            wait = _wait_after_attempt(watching, number)
            assert planned * 0.8 - SECOND <= wait <= planned * 1.2
            watching.move_clock(wait + SECOND)
        wait_until(lambda: watching.attempts() == len(WAITS) + 1, seconds=PATIENCE_SECONDS)

        [delivery] = watching.deliveries()
    assert (delivery["state"], delivery["reason"]) == ("failed", "exhausted")
    assert len({request.body for request in receiver.requests}) == 1
    assert [
        (request.headers["webhook-id"], request.headers["x-webhook-attempt"])
        for request in receiver.requests
    ] == [(delivery["id"], str(number)) for number in range(1, 12)]


def test_a_dead_receiver_is_suspended_and_nothing_is_lost(place: Place) -> None:
    with receiving(status=500) as receiver, _watching(place, receiver) as (hub, watching):
        begun = watching.now()
        opened = _open_until_suspended(watching)
        failed_for = watching.now() - begun
        opened.append(watching.open_discussion())

        assert 5 * 24 * HOUR <= failed_for <= 6 * 24 * HOUR
        assert {each["state"] for each in watching.deliveries()} == {"failed", "unsent"}
        assert watching.deliveries()[-1]["reason"] == "suspended-after-failure"
        assert _listed_as(place, hub) == dict.fromkeys(VERSIONS, "suspended-after-failure")

        receiver.status = 200
        receiver.requests.clear()
        _hf(place, hub, VERSIONS[-1], "webhooks", "enable", watching.webhook_id)
        assert watching.recover(since=begun) == {"count": len(opened)}
        wait_until(lambda: _is_all_delivered(watching), seconds=PATIENCE_SECONDS)

        assert _listed_as(place, hub) == dict.fromkeys(VERSIONS, False)
    told = [request.json["discussion"]["num"] for request in receiver.requests]
    assert sorted(told) == opened


def _wait_after_attempt(watching: Watching, number: int) -> timedelta:
    """Wait for an attempt of the only delivery; return how long after it the next one is due."""
    wait_until(lambda: watching.attempts() == number, seconds=PATIENCE_SECONDS)
    [delivery] = watching.deliveries()
    return datetime.fromisoformat(delivery["nextAttemptAt"]) - watching.now()


def _open_until_suspended(watching: Watching) -> list[int]:
    """Let something happen every few hours; return the numbers of all that happened."""
    opened: list[int] = []
    while not watching.is_suspended():
        attempts = watching.attempts()
        opened.append(watching.open_discussion())
        # A degraded target is tried with one delivery only, when its time has come.
        watching.move_clock(4 * HOUR)
        _wait_for_another(watching, attempts)
    return opened


def _wait_for_another(watching: Watching, attempts: int) -> None:
    """Wait until there are more attempts than these, or there will be none."""
    wait_until(
        lambda: watching.is_suspended() or watching.attempts() > attempts, seconds=PATIENCE_SECONDS
    )


def _is_all_delivered(watching: Watching) -> bool:
    return {each["state"] for each in watching.deliveries()} == {"delivered"}


@contextmanager
def _watching(place: Place, receiver: Receiver) -> Iterator[tuple[Server, Watching]]:
    with serving(place, "--test-mode", variables=QUICK) as hub, hub.client(hub.token) as client:
        _ok(client.post("/api/repos/create", json={"name": "engine"}))
        body = {"url": receiver.url, "watched": [{"type": "model", "name": "admin/engine"}]}
        created = _ok(client.post("/api/settings/webhooks", json=body))["webhook"]
        yield hub, Watching(client=client, webhook_id=created["id"])


def _listed_as(place: Place, hub: Server) -> dict[str, bool | str]:
    """Return what each version of the public command shows of the only webhook."""
    shown = {}
    for version in VERSIONS:
        [listed] = json.loads(_hf(place, hub, version, "webhooks", "ls", "--json"))
        shown[version] = listed["disabled"]
    return shown


def _hf(place: Place, hub: Server, version: str, *command: str) -> str:
    variables = _variables(place, hub, hub.token or "")
    ended = _run_client(version, "hf", *command, variables=variables)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def _run_client(
    environment: str, program: str, *arguments: str, variables: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [ENVIRONMENTS / environment / "bin" / program, *arguments],
        env=clean_environment(variables),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def _variables(place: Place, hub: Server, token: str) -> dict[str, str]:
    return {
        "HF_ENDPOINT": hub.address,
        "HF_TOKEN": token,
        "HF_HOME": str(place.folder / "client"),
        "HF_HUB_DISABLE_UPDATE_CHECK": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "GRADIO_ANALYTICS_ENABLED": "False",
    }


def _token(place: Place, name: str) -> str:
    _run(place, "user", "add", name)
    return _run(place, "token", "create", name, "--role", "write").strip()


def _run(place: Place, *command: str) -> str:
    ended = run_hublet(*command, *place.flags, folder=place.folder)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def _ok(answer: httpx2.Response) -> Any:
    assert answer.status_code == 200, answer.text
    return answer.json()
