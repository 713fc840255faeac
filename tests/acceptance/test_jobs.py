"""Jobs of a hub that runs: a restart under those who follow one, and a webhook that starts one."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from acceptance.client_versions import ENVIRONMENTS, VERSIONS_AND_ENGINES
from acceptance.uv_image import IMAGES, make_uv_image
from acceptance.waiting_proxy import waiting_proxy
from patience import SOON_SECONDS
from processes import Place, clean_environment, run_hublet, serving, wait_until

LINES = 300
# Its jobs see the files of the test.
PROCESS_RUNNER = {"HUBLET_JOBS_RUNNER": "process"}
OVER = {"COMPLETED", "ERROR", "CANCELED"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody with a token of a hub, by HTTP and with the `hf` command."""

    address: str
    token: str
    folder: Path

    @property
    def variables(self) -> dict[str, str]:
        return clean_environment(
            {
                "HF_ENDPOINT": self.address,
                "HF_TOKEN": self.token,
                "HF_HOME": str(self.folder / "client"),
                "HF_HUB_DISABLE_UPDATE_CHECK": "1",
                "NO_COLOR": "1",
            }
        )

    @contextmanager
    def following(self, version: str, job_id: str, into: Path) -> Iterator[subprocess.Popen[str]]:
        """Let `hf jobs logs -f` run; what it prints goes into a file."""
        command = [_hf(version), "jobs", "logs", "-f", job_id]
        variables = self.variables | {"PYTHONUNBUFFERED": "1"}
        with (
            into.open("w") as out,
            subprocess.Popen(
                command, env=variables, stdout=out, stderr=subprocess.PIPE, text=True
            ) as process,
        ):
            try:
                yield process
            finally:
                process.kill()

    def hf(self, version: str, *arguments: str) -> tuple[int, str, str]:
        ended = subprocess.run(
            [_hf(version), *arguments],
            env=self.variables,
            capture_output=True,
            text=True,
            timeout=SOON_SECONDS,
            check=False,
        )
        return ended.returncode, ended.stdout, ended.stderr

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        return self._ask(method, path, body).json()

    def read(self, path: str) -> str:
        return self._ask("GET", path).text

    def _ask(self, method: str, path: str, body: Any = None) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {self.token}"}
        with httpx2.Client(base_url=self.address, timeout=SOON_SECONDS, trust_env=False) as client:
            response = client.request(method, path, headers=headers, json=body)
        assert response.status_code == 200, response.text
        return response

    def run(self, script: str, **more: Any) -> str:
        body = {"dockerImage": "ubuntu", "flavor": "cpu-basic", "command": ["sh", "-c", script]}
        job_id: str = self.ask("POST", "/api/jobs/ada", body | more)["id"]
        return job_id

    def ended(self, job_id: str) -> Any:
        """Wait for the end of a job; return its status."""
        wait_until(lambda: self._status(job_id)["stage"] in OVER, seconds=SOON_SECONDS)
        return self._status(job_id)

    def end_jobs(self) -> None:
        """End what still runs: it would go on after the hub, which is what jobs do."""
        for job in self.ask("GET", "/api/jobs/ada?stage=SCHEDULING&stage=RUNNING"):
            self.ask("POST", f"/api/jobs/ada/{job['id']}/cancel")
            self.ended(job["id"])

    def _status(self, job_id: str) -> Any:
        return self.ask("GET", f"/api/jobs/ada/{job_id}")["status"]


def _hf(version: str) -> Path:
    return ENVIRONMENTS / version / "bin" / "hf"


def ada(place: Place, address: str) -> Person:
    _run(place, "user", "add", "ada")
    token = _run(place, "token", "create", "ada", "--role", "write").strip()
    return Person(address=address, token=token, folder=place.folder)


def _run(place: Place, *command: str) -> str:
    ended = run_hublet(*command, *place.flags, folder=place.folder)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@contextmanager
def a_hub(place: Place) -> Iterator[Person]:
    with serving(place, "--test-mode") as hub:
        yield ada(place, hub.address)


@pytest.mark.parametrize("version", ["2.4.0"])
def test_a_restart_under_somebody_who_follows_loses_no_line(place: Place, version: str) -> None:
    # The job waits until the hub is back, and once more until the client is: a job that ends while
    # nobody answers is never asked for its last lines, because the client looks at the stage first.
    hub_is_back, client_is_back = place.folder / "hub-is-back", place.folder / "client-is-back"
    script = f"""
        until_there() {{ until [ -e "$1" ]; do sleep 0.1; done; }}
        for i in $(seq 0 {LINES - 1}); do
            case $i in {LINES // 3}) until_there {hub_is_back};; esac
            case $i in {LINES // 2}) until_there {client_is_back};; esac
            echo line $i
        done
    """
    printed = place.folder / "printed"
    with waiting_proxy() as door, ExitStack() as until_the_end:
        with serving(place, "--test-mode", variables=PROCESS_RUNNER) as hub:
            door.lead_to(hub.address)
            person = ada(place, door.address)
            # Should the test break off.
            job_id = person.run(script, timeoutSeconds=900)
            following = until_the_end.enter_context(person.following(version, job_id, printed))
            wait_until(lambda: printed.read_text().count("\n") > 20, seconds=SOON_SECONDS)
            door.lead_to(None)
        seen = printed.read_text().count("\n")
        with serving(place, "--test-mode", variables=PROCESS_RUNNER) as hub:
            door.lead_to(hub.address)
            hub_is_back.touch()
            wait_until(lambda: printed.read_text().count("\n") > seen, seconds=SOON_SECONDS)
            client_is_back.touch()
            _, errors = following.communicate(timeout=2 * SOON_SECONDS)
            status = person.ended(job_id)

    assert (following.returncode, status["stage"]) == (0, "COMPLETED"), (errors, status, seen)
    assert seen <= LINES // 3
    lines = printed.read_text().splitlines()
    assert lines == [f"line {number}" for number in range(LINES)], (errors, status, seen)


@pytest.mark.parametrize(("version", "place"), VERSIONS_AND_ENGINES, indirect=["place"])
def test_a_change_of_a_dataset_starts_a_job_that_prints_what_happened(
    place: Place, version: str
) -> None:
    with a_hub(place) as person:
        person.ask("POST", "/api/repos/create", {"type": "dataset", "name": "numbers"})
        job = {
            "dockerImage": "ubuntu",
            "flavor": "cpu-basic",
            "command": ["sh", "-c", 'echo "$WEBHOOK_PAYLOAD"'],
        }
        watched = [{"type": "dataset", "name": "ada/numbers"}]
        body = {"watched": watched, "domains": ["repo"], "job": job}
        person.ask("POST", "/api/settings/webhooks", body)
        (person.folder / "a.txt").write_text("1")
        upload = ("upload", "ada/numbers", str(person.folder / "a.txt"), "--repo-type", "dataset")
        assert person.hf(version, *upload)[0] == 0
        wait_until(lambda: person.ask("GET", "/api/jobs/ada"), seconds=SOON_SECONDS)
        [started] = person.ask("GET", "/api/jobs/ada")
        status = person.ended(started["id"])

        code, out, errors = person.hf(version, "jobs", "logs", "-f", started["id"])

    assert (status["stage"], code) == ("COMPLETED", 0), errors
    payload = json.loads(out)
    assert payload["repo"]["name"] == "ada/numbers"
    assert payload["event"] == {"action": "update", "scope": "repo.content"}


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="the sandbox needs bubblewrap")
@pytest.mark.parametrize(("version", "place"), VERSIONS_AND_ENGINES, indirect=["place"])
def test_on_a_new_hub_an_image_runs_with_the_machines_own_programs(
    place: Place, version: str
) -> None:
    with serving(place) as hub:
        code, out, errors = ada(place, hub.address).hf(
            version, "jobs", "run", "ubuntu", "echo", "hello"
        )

    assert code == 0, errors
    told = "===== No image ubuntu here: the job runs with the programs of the hub's machine ====="
    lines = out.splitlines()
    assert lines.index(told) + 1 == lines.index("hello")


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="volumes need bubblewrap")
@pytest.mark.parametrize(("version", "place"), VERSIONS_AND_ENGINES, indirect=["place"])
def test_a_job_reads_a_dataset_and_writes_into_a_bucket(place: Place, version: str) -> None:
    with a_hub(place) as person:
        person.ask("POST", "/api/repos/create", {"type": "dataset", "name": "numbers"})
        person.ask("POST", "/api/buckets/ada/box", {})
        (person.folder / "a.txt").write_text("42\n")
        upload = ("upload", "ada/numbers", str(person.folder / "a.txt"), "--repo-type", "dataset")
        assert person.hf(version, *upload)[0] == 0
        volumes = ("-v", "hf://datasets/ada/numbers:/data", "-v", "hf://buckets/ada/box:/box")
        script = "cat /data/a.txt; cp /data/a.txt /box/copy.txt; echo no > /data/b.txt"

        code, out, errors = person.hf(
            version, "jobs", "run", *volumes, "ubuntu", "sh", "-c", script
        )

        assert "42" in out.splitlines()
        # The last command failed: what is mounted from a repository cannot be written.
        assert code == 1, errors
        assert person.read("/api/buckets/ada/box/files/copy.txt") == "42\n"


UV_SCRIPT = """
# /// script
# requires-python = ">=3.11"
# dependencies = []
# ///
import sys
print("from a script with", *sys.argv[1:])
"""


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="volumes need bubblewrap")
@pytest.mark.parametrize(("version", "place"), VERSIONS_AND_ENGINES, indirect=["place"])
def test_a_local_script_is_run_by_uv(place: Place, version: str) -> None:
    script, image = place.folder / "script.py", place.folder / "image"
    script.write_text(UV_SCRIPT)
    make_uv_image(image)
    variables = {"HUBLET_JOBS_IMAGES": f"{IMAGES}={image}"}
    with serving(place, "--test-mode", variables=variables) as hub:
        code, out, errors = ada(place, hub.address).hf(
            version, "jobs", "uv", "run", str(script), "words"
        )

    assert code == 0, out + errors
    assert "from a script with words" in out.splitlines(), out + errors
