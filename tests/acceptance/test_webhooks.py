"""Webhooks of a hub that runs: to the public client's own server, and to a receiver that fails."""

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx2
import pytest

from acceptance.client_versions import ENVIRONMENTS, VERSIONS
from hublet.testing import Hub, Receiver, User
from patience import SOON_SECONDS
from processes import clean_environment

CHECK = Path(__file__).parent / "clients" / "check_webhook_server.py"

SECOND, MINUTE, HOUR = (timedelta(**{unit: 1}) for unit in ("seconds", "minutes", "hours"))
WAITS = [5 * SECOND, 30 * SECOND, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR]
WAITS += [14 * HOUR, 20 * HOUR, 24 * HOUR]


@dataclass(frozen=True, slots=True, kw_only=True)
class Watching:
    """A webhook on a model, as its owner sees it."""

    hub: Hub
    owner: User
    webhook_id: str

    def ask(self, method: str, path: str, **request: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.owner.token}"}
        answer = httpx2.request(
            method, f"{self.hub.url}{path}", headers=headers, trust_env=False, **request
        )
        assert answer.status_code == 200, answer.text
        return answer.json()

    @property
    def _path(self) -> str:
        return f"/api/settings/webhooks/{self.webhook_id}"

    def is_suspended(self) -> bool:
        shown = self.ask("GET", self._path)["webhook"]["disabled"]
        return bool(shown == "suspended-after-failure")

    def open_discussion(self) -> int:
        """Let something happen; return its number."""
        body = {"title": "It does not turn"}
        number: int = self.ask("POST", "/api/models/ada/engine/discussions", json=body)["num"]
        return number

    def deliveries(self) -> list[dict[str, Any]]:
        """Return all of them, oldest first."""
        self.hub.settle()
        return self.hub.webhooks.deliveries(self.webhook_id)

    def waits_between_attempts(self, delivery_id: str) -> list[timedelta]:
        log = self.ask("GET", f"{self._path}/deliveries/{delivery_id}")["attemptLog"]
        moments = [datetime.fromisoformat(attempt["startedAt"]) for attempt in log]
        return [after - before for before, after in pairwise(moments)]

    def recover(self, since: datetime) -> Any:
        return self.ask("POST", f"{self._path}/recover", json={"since": since.isoformat()})


@pytest.fixture
def watching(hub: Hub, receiver: Receiver) -> Watching:
    watching = Watching(hub=hub, owner=hub.user("ada"), webhook_id="")
    watching.ask("POST", "/api/repos/create", json={"name": "engine"})
    watched = [{"type": "model", "name": "ada/engine"}]
    body = {"url": receiver.url, "watched": watched, "domains": ["repo", "discussion"]}
    created = watching.ask("POST", "/api/settings/webhooks", json=body)["webhook"]
    return Watching(hub=hub, owner=watching.owner, webhook_id=created["id"])


def test_the_public_clients_own_server_understands_everything(hub: Hub, tmp_path: Path) -> None:
    suite = ("-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider")
    ada, grace = hub.user("ada"), hub.user("grace")

    ended = _run_client(
        *("receiver", "python", *suite, "-c", str(CHECK.with_name("pytest.ini")), str(CHECK)),
        variables=_variables(hub, ada, tmp_path) | {"STRANGERS_TOKEN": grace.token},
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_a_failed_delivery_is_tried_along_the_whole_schedule(
    hub: Hub, receiver: Receiver, watching: Watching
) -> None:
    receiver.answer_with(500)
    watching.open_discussion()

    # Each attempt is made at its own time on the way, so that the speed of the machine hardly counts.
    hub.clock.forward(sum(WAITS, timedelta()) * 1.2 + HOUR)

    [delivery] = watching.deliveries()
    waits = watching.waits_between_attempts(delivery["id"])
    late = timedelta(seconds=SOON_SECONDS)
    assert all(p * 0.8 <= wait <= p * 1.2 + late for p, wait in zip(WAITS, waits, strict=True))
    assert delivery["attempts"] == len(WAITS) + 1
    assert (delivery["state"], delivery["reason"]) == ("failed", "exhausted")
    assert len({request.body for request in receiver.deliveries}) == 1
    assert [
        (request.headers["webhook-id"], request.headers["x-webhook-attempt"])
        for request in receiver.deliveries
    ] == [(delivery["id"], str(number)) for number in range(1, 12)]


def test_a_dead_receiver_is_suspended_and_nothing_is_lost(
    hub: Hub, receiver: Receiver, watching: Watching, tmp_path: Path
) -> None:
    receiver.answer_with(500)
    begun = hub.clock.now()
    opened = _open_until_suspended(watching)
    failed_for = hub.clock.now() - begun
    opened.append(watching.open_discussion())

    assert 5 * 24 * HOUR <= failed_for <= 6 * 24 * HOUR
    assert {each["state"] for each in watching.deliveries()} == {"failed", "unsent"}
    assert watching.deliveries()[-1]["reason"] == "suspended-after-failure"
    assert _listed_as(watching, tmp_path) == dict.fromkeys(VERSIONS, "suspended-after-failure")

    receiver.answer_with(200)
    receiver.clear()
    _hf(watching, tmp_path, VERSIONS[-1], "webhooks", "enable", watching.webhook_id)
    assert watching.recover(since=begun) == {"count": len(opened)}
    assert {each["state"] for each in watching.deliveries()} == {"delivered"}

    assert _listed_as(watching, tmp_path) == dict.fromkeys(VERSIONS, False)
    told = [request.json["discussion"]["num"] for request in receiver.deliveries]
    assert sorted(told) == opened


def _open_until_suspended(watching: Watching) -> list[int]:
    """Let something happen every few hours; return the numbers of all that happened."""
    opened: list[int] = []
    while not watching.is_suspended():
        opened.append(watching.open_discussion())
        # A degraded target is tried with one delivery only, when its time has come.
        watching.hub.clock.forward(hours=4)
    return opened


def _listed_as(watching: Watching, folder: Path) -> dict[str, bool | str]:
    """Return what each version of the public command shows of the only webhook."""
    shown = {}
    for version in VERSIONS:
        [listed] = json.loads(_hf(watching, folder, version, "webhooks", "ls", "--json"))
        shown[version] = listed["disabled"]
    return shown


def _hf(watching: Watching, folder: Path, version: str, *command: str) -> str:
    variables = _variables(watching.hub, watching.owner, folder)
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


def _variables(hub: Hub, user: User, folder: Path) -> dict[str, str]:
    return {
        "HF_ENDPOINT": hub.url,
        "HF_TOKEN": user.token,
        "HF_HOME": str(folder / "client"),
        "HF_HUB_DISABLE_UPDATE_CHECK": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "GRADIO_ANALYTICS_ENABLED": "False",
    }
