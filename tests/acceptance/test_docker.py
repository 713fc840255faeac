"""Jobs in containers of a real engine: run, read, reached, entered, and brought together."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from acceptance.test_ssh import Person, a_hub, brought_here
from docker_engine import IMAGE
from oci_images import busybox_image, needed
from patience import SOON_SECONDS
from processes import Place, wait_until

pytest.importorskip("aiodocker", reason="hublet[docker] is not installed")

PORT = 8000
SERVES = f"mkdir /www && echo $0 > /www/index.html && exec httpd -f -p {PORT} -h /www"


@pytest.fixture
def place(tmp_path: Path, docker_engine: str, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("DOCKER_HOST", docker_engine)
    return Place(folder=tmp_path)


def start(person: Person, *command: str, **more: Any) -> Any:
    body = {"dockerImage": IMAGE, "flavor": "cpu-basic", "command": ["sh", "-c", *command]}
    return person.ask("POST", "/api/jobs/ada", body | more)


def ended(person: Person, job: Any) -> Any:
    path = f"/api/jobs/ada/{job['id']}"
    over = {"COMPLETED", "ERROR", "CANCELED"}
    wait_until(lambda: person.ask("GET", path)["status"]["stage"] in over, seconds=SOON_SECONDS)
    return person.ask("GET", path)["status"]


def printed(person: Person, job: Any) -> list[Any]:
    with person.hub.client(person.token) as client:
        sent = client.get(f"/api/jobs/ada/{job['id']}/logs?follow=false").text
    return [
        json.loads(line.removeprefix("data: ")) for line in sent.splitlines() if "data: " in line
    ]


def through_the_proxy(person: Person, job: Any) -> httpx2.Response:
    host = f"{job['id']}--{PORT}.jobs.localhost:{urlsplit(person.hub.address).port}"
    headers = {"Host": host, "Authorization": f"Bearer {person.token}"}
    return httpx2.get(person.hub.address, headers=headers, trust_env=False)


def test_a_job_runs_is_reached_and_entered(place: Place) -> None:
    with a_hub(place, "docker") as person:
        reached = {"expose": {"ports": [PORT]}, "ssh": {"enabled": True}}
        job = start(person, f"echo begun; {SERVES}", "steam", **reached)
        wait_until(lambda: through_the_proxy(person, job).status_code == 200, seconds=SOON_SECONDS)

        assert through_the_proxy(person, job).text == "steam\n"
        assert [line["data"] for line in printed(person, job)[1:]] == ["begun"]
        if shutil.which("ssh") is not None:
            entered = person.ssh(job, "cat /www/index.html; cat; exit 7", input="in", check=False)
            assert (entered.stdout, entered.returncode) == ("steam\nin", 7)
            assert person.ssh(job, "tty", flags=["-tt"]).stdout.startswith("/dev/pts/")
        person.ask("POST", f"/api/jobs/ada/{job['id']}/cancel")
        assert ended(person, job)["stage"] == "CANCELED"


def test_the_jobs_of_a_group_find_each_other(place: Place) -> None:
    # An alias leads to who claims it, the name of the group to all, the asking one too.
    script = f"""
        until wget -q -O - http://${{HUB_NETWORK_GROUP_PREFIX}}worker:{PORT}; do sleep 0.2; done
        nslookup $HUB_NETWORK_GROUP_HOSTNAME | grep -c 'Address: [0-9]'
    """
    with a_hub(place, "docker") as person:
        start(person, SERVES, "steam", network={"group": "train", "aliases": ["worker"]})
        asking = start(person, script, network={"group": "train"}, timeoutSeconds=60)

        assert ended(person, asking)["stage"] == "COMPLETED"
        assert [line["data"] for line in printed(person, asking)[1:]] == ["steam", "2"]


@pytest.mark.skipif(shutil.which("ssh") is None, reason="OpenSSH is not installed.")
def test_a_port_of_another_in_the_group_is_brought_here_and_nothing_of_the_image_runs(
    place: Place,
) -> None:
    # What would be run to read a file inside tells of it, and never ends.
    trap = "#!/bin/sh\necho run > /run-by-somebody\nexec sleep 300\n"
    script = f"rm /bin/cat; printf '{trap}' > /bin/cat; chmod 755 /bin/cat; exec sleep 300"
    with a_hub(place, "docker") as person:
        start(person, SERVES, "steam", network={"group": "train", "aliases": ["worker"]})
        more = {"ssh": {"enabled": True}, "network": {"group": "train"}}
        job = person.run("sh", "-c", script, dockerImage=IMAGE, **more)
        worker = person.ssh(job, "echo ${HUB_NETWORK_GROUP_PREFIX}worker").stdout.strip()

        with brought_here(person, job, f"{worker}:{PORT}") as address:
            wait_until(lambda: _text(address) == "steam\n", seconds=SOON_SECONDS)

        assert person.ssh(job, "test -e /run-by-somebody", check=False).returncode == 1


def _text(address: str) -> str:
    try:
        return httpx2.get(address, trust_env=False, timeout=10).text
    except httpx2.TransportError:
        return ""


def test_a_private_image_of_the_hub_runs_for_who_may_read_it(place: Place, tmp_path: Path) -> None:
    skopeo = needed("skopeo")
    layout = busybox_image(tmp_path / "layout", text="steam\n")
    with a_hub(place, "docker") as person:
        host = urlsplit(person.hub.address).netloc.replace("localhost", "127.0.0.1")
        body = {"name": "ada/tool", "type": "container", "private": True}
        person.ask("POST", "/api/repos/create", body)
        subprocess.run(
            [skopeo, "copy", "--insecure-policy", "--dest-tls-verify=false",
             "--dest-creds", f"ada:{person.token}",
             f"oci:{layout.folder}:1", f"docker://{host}/ada/tool:1"],
            check=True, capture_output=True, env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
        )  # fmt: skip

        job = start(person, "cat /greeting", dockerImage=f"{host}/ada/tool:1")
        absent = start(person, "true", dockerImage=f"{host}/ada/tool:2")

        assert ended(person, job)["stage"] == "COMPLETED", ended(person, job)
        assert [line["data"] for line in printed(person, job)[1:]] == ["steam"]
        assert "has no image ada/tool:2" in ended(person, absent)["message"]
