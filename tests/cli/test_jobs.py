"""The commands for jobs against a running hub that runs them as processes."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.hublet_command import Hublet
from hublet.cli.jobs.arguments import parse_volume
from patience import SOON_SECONDS
from processes import HUBLET, Place, Server, clean_environment, serving, wait_until

NOBODY = "0" * 24


@pytest.fixture(scope="module")
def server(shared_place: Place) -> Iterator[Server]:
    with serving(
        shared_place, "--test-mode", variables={"HUBLET_JOBS_RUNNER": "process"}
    ) as started:
        yield started


def started(ask: Hublet, *arguments: str) -> str:
    done = ask("jobs", "run", "--detach", *arguments)
    assert done.code == 0, done.err
    return done.out.strip()


def shown(ask: Hublet, job_id: str) -> Any:
    return ask("jobs", "inspect", job_id, "--json").json


def stage(ask: Hublet, job_id: str) -> str:
    return str(shown(ask, job_id)["status"]["stage"])


def test_a_job_prints_and_the_command_ends_as_it_does(ask: Hublet) -> None:
    done = ask(
        "jobs", "run", "-e", "COLOUR=red", "ubuntu", "--", "sh", "-c", "echo so; echo $COLOUR"
    )

    assert (done.code, done.out) == (0, "so\nred\n")
    job_id = re.findall(r"[0-9a-f]{24}", done.err)[0]
    assert done.err == (f"Started the job {job_id} in ubuntu.\nThe job {job_id} is COMPLETED.\n")


def test_a_job_that_fails_makes_the_command_fail(ask: Hublet) -> None:
    done = ask("jobs", "run", "ubuntu", "--", "sh", "-c", "echo so; exit 3")

    assert (done.code, done.out) == (1, "so\n")
    assert "is ERROR: " in done.err


def test_everything_that_is_asked_for_reaches_the_hub(
    ask: Hublet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FROM_HERE", "taken")
    variables, secrets = tmp_path / "variables", tmp_path / "secrets"
    variables.write_text("# A comment\nSIZE='large'\nCOLOUR=red\n")
    secrets.write_text('KEY="s3cret"\n')

    job_id = started(
        ask, "--env", "COLOUR=blue", "-e", "FROM_HERE", "--env-file", str(variables),
        "--secrets-file", str(secrets), "-s", "OTHER=x", "--flavor", "cpu-basic",
        "--timeout", "2m", "--attempts", "2", "--name", "nightly", "--label", "team=navy",
        "--label", "flag", "--expose", "8080", "--expose-public", "8081",
        "ubuntu", "--", "true",
    )  # fmt: skip

    job = shown(ask, job_id)
    assert job["environment"] == {"COLOUR": "blue", "FROM_HERE": "taken", "SIZE": "large"}
    assert job["secrets"] == {"KEY": None, "OTHER": None}
    assert job["tags"] == ["team=navy", "flag", "name=nightly"]
    assert job["expose"] == {"ports": [8080, 8081], "portsPublic": [8081]}
    assert (job["timeout"], job["retry"], job["command"]) == (120, 1, ["true"])
    assert "s3cret" not in json.dumps(job)


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        pytest.param(["--timeout", "soon"], "soon is no length of time", id="timeout"),
        pytest.param(["--volume", "./here:/data"], "is not of the form hf://", id="volume"),
        pytest.param(["--volume", "hf://lonely:/data"], "is not of the form", id="no owner"),
        pytest.param(["--network-alias", "web"], "It needs a --network-group", id="alias"),
        pytest.param(["--env", "=x"], "It needs a name", id="variable without a name"),
        pytest.param(["--env-file", "/nowhere"], "/nowhere cannot be read", id="no such file"),
    ],
)
def test_what_cannot_be_read_is_refused_before_anything_runs(
    ask: Hublet, flags: list[str], sentence: str
) -> None:
    done = ask("jobs", "run", *flags, "ubuntu", "--", "true")

    assert (done.code, done.out) == (2, "")
    assert sentence in " ".join(done.err.split())


def test_the_hub_refuses_in_its_own_words(ask: Hublet) -> None:
    done = ask("jobs", "run", "--flavor", "h200", "ubuntu", "--", "true")

    assert (done.code, done.out) == (1, "")
    assert "h200" in done.err


def test_jobs_are_listed_by_stage_and_label(ask: Hublet) -> None:
    over = started(ask, "--label", "round=listed", "ubuntu", "--", "true")
    ask("jobs", "wait", over)
    running = started(
        ask, "--label", "round=listed", "--name", "long", "ubuntu", "--", "sleep", "600"
    )
    wait_until(lambda: stage(ask, running) == "RUNNING", seconds=SOON_SECONDS)

    assert ask("jobs", "list", "-l", "round=listed", "-q").out.split() == [running]
    everything = ask("jobs", "list", "--all", "-l", "round=listed", "-q").out.split()
    assert everything == [running, over]
    done = ask("jobs", "list", "--status", "completed", "-l", "round=listed", "--json")
    assert [job["id"] for job in done.json] == [over]
    heading, line = ask("jobs", "list", "-l", "round=listed").out.splitlines()
    assert re.split(" {2,}", heading) == ["id", "name", "runs", "created", "stage", "seconds"]
    assert re.split(" {2,}", line)[:3] == [running, "long", "ubuntu sleep 600"]
    assert ask("jobs", "list", "--all", "--limit", "1", "-q").out.split() == [running]

    ask("jobs", "cancel", running)


def test_a_canceled_job_makes_waiting_fail(ask: Hublet) -> None:
    job_id = started(ask, "ubuntu", "--", "sleep", "600")

    canceled = ask("jobs", "cancel", job_id)
    waited = ask("jobs", "wait", job_id)

    assert (canceled.code, canceled.out) == (0, f"{job_id}\n")
    assert waited.code == 1
    assert f"The job {job_id} is CANCELED" in waited.err


def test_an_id_may_name_its_owner(ask: Hublet, server: Server) -> None:
    job_id = started(ask, "ubuntu", "--", "echo", "hello")
    ask("jobs", "wait", job_id)

    assert ask("jobs", "logs", f"{server.user}/{job_id}").out == "hello\n"


def test_logs_are_shown_whole_or_their_end(ask: Hublet) -> None:
    job_id = started(ask, "ubuntu", "--", "seq", "5")
    ask("jobs", "wait", job_id)

    assert ask("jobs", "logs", job_id).out.split() == ["1", "2", "3", "4", "5"]
    assert ask("jobs", "logs", job_id, "--tail", "2").out.split() == ["4", "5"]
    assert ask("jobs", "logs", job_id, "-f").out.split() == ["1", "2", "3", "4", "5"]
    line = json.loads(ask("jobs", "logs", job_id, "--json").out.splitlines()[0])
    assert (line["data"], sorted(line)) == ("1", ["data", "timestamp"])


def test_the_log_of_a_running_job_is_shown_as_far_as_it_is(ask: Hublet) -> None:
    job_id = started(ask, "ubuntu", "--", "sh", "-c", "echo first; sleep 600; echo last")
    wait_until(lambda: ask("jobs", "logs", job_id).out == "first\n", seconds=SOON_SECONDS)

    ask("jobs", "cancel", job_id)


def test_who_follows_loses_no_line_to_a_restart(place: Place, tmp_path: Path) -> None:
    """The hub goes and comes back at the same address while the job prints."""
    variables = {"HUBLET_JOBS_RUNNER": "process"}
    script = "for n in $(seq 1 60); do echo line $n; sleep 0.1; done"
    with serving(place, "--test-mode", variables=variables) as first:
        port = first.address.rpartition(":")[2]
        environment = clean_environment(
            {
                "HUBLET_ENDPOINT": first.address,
                "HUBLET_TOKEN": first.token or "",
                "XDG_CONFIG_HOME": str(tmp_path / "config"),
            }
        )
        follower = subprocess.Popen(
            [*HUBLET, "jobs", "run", "ubuntu", "--", "sh", "-c", script],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert follower.stdout is not None
        assert follower.stdout.readline() == "line 1\n"
    with serving(place, "--test-mode", "--port", port, variables=variables):
        # What came along with the first line is only here.
        out = follower.stdout.read()
        _rest, err = follower.communicate(timeout=SOON_SECONDS)

    assert out.splitlines() == [f"line {number}" for number in range(2, 61)]
    assert follower.returncode == 0, err
    assert "The hub is gone" in err


def test_labels_and_ports_are_replaced(ask: Hublet) -> None:
    job_id = started(ask, "--label", "old=1", "ubuntu", "--", "sleep", "600")

    ask("jobs", "labels", job_id, "--label", "new=2")
    ports = ask("jobs", "expose", job_id, "8080", "--public", "8081")

    assert shown(ask, job_id)["tags"] == ["new=2"]
    assert shown(ask, job_id)["expose"] == {"ports": [8080, 8081], "portsPublic": [8081]}
    assert ports.out.split() == shown(ask, job_id)["status"]["exposeUrls"]
    assert ask("jobs", "expose", job_id, "--clear").err == "It is reached no more.\n"
    ask("jobs", "labels", job_id, "--clear")
    assert shown(ask, job_id)["tags"] == []
    assert ask("jobs", "labels", job_id).code == 2
    assert ask("jobs", "expose", job_id, "80", "--clear").code == 2

    ask("jobs", "cancel", job_id)


def test_a_running_job_is_measured(ask: Hublet) -> None:
    job_id = started(ask, "ubuntu", "--", "sleep", "600")
    wait_until(lambda: stage(ask, job_id) == "RUNNING", seconds=SOON_SECONDS)

    done = ask("jobs", "stats", job_id)

    assert done.code == 0
    assert re.fullmatch(r"cpu \d+% of [\d.]+  memory \d+ of \d+ MiB\n", done.out)
    ask("jobs", "cancel", job_id)
    ask("jobs", "wait", job_id)
    assert ask("jobs", "stats", job_id).err == (
        "The job does not run: there is nothing to measure.\n"
    )


def test_a_job_runs_once_more_and_is_deleted(ask: Hublet) -> None:
    job_id = started(ask, "-s", "KEY=s3cret", "ubuntu", "--", "sh", "-c", "echo $KEY")

    again = ask("jobs", "rerun", job_id)

    assert (again.code, again.out) == (0, "s3cret\n")
    ask("jobs", "wait", job_id)
    assert ask("jobs", "delete", job_id).code == 1
    assert ask("jobs", "delete", job_id, "--yes").out == f"{job_id}\n"
    assert stage(ask, job_id) == "DELETED"


def test_a_job_is_shown_line_by_line(ask: Hublet, server: Server) -> None:
    job_id = started(ask, "--name", "shown", "-s", "KEY=x", "ubuntu", "--", "true")
    ask("jobs", "wait", job_id)

    lines = dict(
        re.split(" {2,}", line, maxsplit=1)
        for line in ask("jobs", "inspect", job_id).out.splitlines()
    )

    assert {name: lines[name] for name in ("id", "owner", "name", "runs", "stage", "secrets")} == {
        "id": job_id,
        "owner": server.user,
        "name": "shown",
        "runs": "ubuntu true",
        "stage": "COMPLETED",
        "secrets": "KEY",
    }


def test_what_jobs_run_on_is_listed_for_everybody(
    ask: Hublet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HUBLET_TOKEN")

    assert ask("jobs", "hardware", "-q").out == "cpu-basic\n"


def test_something_runs_by_the_clock(ask: Hublet) -> None:
    made = ask(
        "jobs", "scheduled", "run", "@daily", "--name", "night", "ubuntu", "--", "echo", "hello"
    )
    scheduled_id = made.out.strip()

    assert made.err.startswith("It runs next at ")
    line = ask("jobs", "scheduled", "list").out.splitlines()[1]
    assert re.split(" {2,}", line)[:4] == [scheduled_id, "@daily", "ubuntu echo hello", "no"]
    assert ask("jobs", "scheduled", "suspend", scheduled_id).err == "It is suspended.\n"
    assert ask("jobs", "scheduled", "resume", scheduled_id).code == 0
    ask("jobs", "scheduled", "reschedule", scheduled_id, "0 4 * * 1")
    job_id = ask("jobs", "scheduled", "trigger", scheduled_id, "-q").out.strip()
    assert ask("jobs", "logs", job_id, "-f").out == "hello\n"
    seen = ask("jobs", "scheduled", "inspect", scheduled_id, "--json").json
    assert (seen["schedule"], seen["status"]["lastJob"]["id"]) == ("0 4 * * 1", job_id)
    assert ask("jobs", "scheduled", "delete", scheduled_id).code == 1
    assert ask("jobs", "scheduled", "delete", scheduled_id, "--yes").code == 0
    assert ask("jobs", "scheduled", "list", "-q").out == ""


def test_a_job_of_nobody_is_refused(ask: Hublet) -> None:
    for command in ("inspect", "logs", "cancel", "wait"):
        done = ask("jobs", command, NOBODY)
        assert (done.code, done.out) == (1, ""), command


@pytest.mark.parametrize(
    ("text", "volume"),
    [
        pytest.param(
            "hf://datasets/ada/ds:/data",
            {"type": "dataset", "source": "ada/ds", "mountPath": "/data"},
            id="a dataset",
        ),
        pytest.param(
            "hf://ada/engine@v1:/model",
            {"type": "model", "source": "ada/engine", "revision": "v1", "mountPath": "/model"},
            id="a model at a revision",
        ),
        pytest.param(
            "hf://buckets/ada/files/in/side:/mnt:ro",
            {
                "type": "bucket",
                "source": "ada/files",
                "path": "in/side",
                "mountPath": "/mnt",
                "readOnly": True,
            },
            id="a folder of a bucket",
        ),
    ],
)
def test_volumes_are_written_as_the_public_command_does(
    text: str, volume: dict[str, object]
) -> None:
    assert parse_volume(text) == volume
