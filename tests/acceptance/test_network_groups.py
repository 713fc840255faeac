"""Jobs of a hub that runs find each other in groups, also while it is killed and started again."""

import json
from typing import Any

from patience import SOON_SECONDS
from processes import Place, Server, run_hublet, serving, wait_until
from runtime.networks.machines import needs_networks

pytestmark = needs_networks

VARIABLES = {
    "HUBLET_JOBS_RUNNER": "sandbox",
    "HUBLET_JOBS_FLAVORS": "cpu-basic=0.1:256M",
    "HUBLET_JOBS_CORES": "64",
    "HUBLET_JOBS_MEMORY_BYTES": str(64 * 2**30),
    "HUBLET_JOBS_GRACE_SECONDS": "0",
    # What a killed hub held is free this much later.
    "HUBLET_WORKER_LEASE_SECONDS": "10",
}
# Answers with its own name, and says whom it meets under the name of the group and of the aliases,
# each time that this changes.
MEET = """
import os, socket, sys, threading, time

def answer():
    with socket.create_server(("", 8000)) as here:
        while True:
            there, _ = here.accept()
            there.sendall(socket.gethostname().encode())
            there.close()

def met(name):
    found = set()
    try:
        for *_, (address, _) in socket.getaddrinfo(name, 8000, socket.AF_INET, socket.SOCK_STREAM):
            with socket.create_connection((address, 8000), timeout=2) as there:
                found.add(there.recv(64).decode())
    except OSError:
        pass
    return " ".join(sorted(found)) or "nobody"

threading.Thread(target=answer, daemon=True).start()
names = {"all": os.environ["HUB_NETWORK_GROUP_HOSTNAME"]}
for alias in ("leader", "worker"):
    names[alias] = os.environ["HF_NETWORK_GROUP_PREFIX"] + alias
before = {}
while True:
    for label, name in names.items():
        if (now := met(name)) != before.get(label):
            before[label] = now
            print(f"{label}: {now}", flush=True)
    time.sleep(0.1)
"""


class Owner:
    """Somebody with a token, and the jobs under one name."""

    def __init__(self, place: Place, name: str) -> None:
        self._token = _run(place, "token", "create", "ada", "--role", "write").strip()
        self.path = f"/api/jobs/{name}"

    def join(self, hub: Server, *aliases: str, **more: Any) -> str:
        body = {
            "dockerImage": "ubuntu",
            "flavor": "cpu-basic",
            "command": ["python3", "-c", MEET],
            # Should the test break off.
            "timeoutSeconds": 900,
            "network": {"group": "train", "aliases": list(aliases)},
        }
        job_id: str = self.ask(hub, "POST", self.path, json=body | more)["id"]
        return job_id

    def ask(self, hub: Server, method: str, path: str, **more: Any) -> Any:
        with hub.client(self._token) as client:
            response = client.request(method, path, **more)
        assert response.status_code == 200, response.text
        return response.json()

    def cancel(self, hub: Server, job_id: str) -> None:
        self.ask(hub, "POST", f"{self.path}/{job_id}/cancel")

    def meets(self, hub: Server, job_id: str, **expected: list[str]) -> None:
        """Wait until a job says that it meets these, and nobody else."""
        wanted = {label: " ".join(sorted(ids)) or "nobody" for label, ids in expected.items()}

        def is_so() -> bool:
            said = self._said(hub, job_id)
            return all(said.get(label) == ids for label, ids in wanted.items())

        try:
            wait_until(is_so, seconds=SOON_SECONDS)
        except AssertionError:
            assert self._said(hub, job_id) == wanted

    def _said(self, hub: Server, job_id: str) -> dict[str, str]:
        """Return the last of what a job said of each name, as any node tells it."""
        with hub.client(self._token) as client:
            events = client.get(f"{self.path}/{job_id}/logs", params={"follow": "false"}).text
        lines = [
            json.loads(each.removeprefix("data: "))["data"]
            for each in events.splitlines()
            if each.startswith("data: ")
        ]
        pairs = [line.partition(": ") for line in lines]
        return {label: ids for label, _, ids in pairs}


def _run(place: Place, *command: str) -> str:
    ended = run_hublet(*command, *place.flags, folder=place.folder)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_a_group_meets_by_hostname_and_alias_and_survives_a_killed_hub(place: Place) -> None:
    with serving(place, "--test-mode", variables=VARIABLES) as hub:
        _run(place, "user", "add", "ada")
        _run(place, "org", "add", "lab")
        _run(place, "org", "plan", "lab", "team")
        _run(place, "org", "member", "add", "lab", "ada", "--role", "admin")
        lab, alone = Owner(place, "lab"), Owner(place, "ada")
        group = lab.ask(
            hub, "POST", "/api/organizations/lab/resource-groups", json={"name": "apart"}
        )
        one = lab.join(hub, "leader", "worker")
        two, three = lab.join(hub, "worker"), lab.join(hub)
        four = alone.join(hub, "leader")
        five = lab.join(hub, "worker", resourceGroupId=group["id"])
        for member in (one, two, three):
            lab.meets(hub, member, all=[one, two, three], leader=[one], worker=[one, two])
        alone.meets(hub, four, all=[four], leader=[four], worker=[])
        lab.meets(hub, five, all=[five], leader=[], worker=[five])
        hub.process.kill()

    with serving(place, "--test-mode", variables=VARIABLES) as hub:
        six = lab.join(hub, "leader")
        for member in (one, two, three, six):
            lab.meets(hub, member, all=[one, two, three, six], leader=[one, six], worker=[one, two])
        lab.cancel(hub, one)
        for member in (two, three, six):
            lab.meets(hub, member, all=[two, three, six], leader=[six], worker=[two])
        for member in (two, three, five, six):
            lab.cancel(hub, member)
        alone.cancel(hub, four)
        wait_until(lambda: left_in(place) == {"lock"}, seconds=SOON_SECONDS)


def left_in(place: Place) -> set[str]:
    """Return what is left of networks, at each node where there are several."""
    return {path.name for path in place.folder.glob("**/data/jobs/networks/*")}


def test_three_members_of_the_default_flavor_meet_on_two_cores(place: Place) -> None:
    default = {"HUBLET_JOBS_RUNNER": "sandbox", "HUBLET_JOBS_CORES": "2"}
    with serving(place, "--test-mode", variables=default) as hub:
        _run(place, "user", "add", "ada")
        ada = Owner(place, "ada")
        members = [ada.join(hub) for _ in range(3)]

        for member in members:
            ada.meets(hub, member, all=members)
        for member in members:
            ada.cancel(hub, member)
