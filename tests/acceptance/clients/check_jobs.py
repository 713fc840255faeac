"""Jobs, as the client and its command run them."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError

HF = Path(sys.executable).parent / "hf"


def hf(*arguments: str, code: int = 0) -> str:
    """Run a command that is to end with this code; return what it prints."""
    ended = subprocess.run(
        [HF, "jobs", *arguments], capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.returncode == code, ended.stdout + ended.stderr
    return ended.stdout if code == 0 else ended.stdout + ended.stderr


def start(api: HfApi, script: str, **more: Any) -> str:
    job = api.run_job(image="ubuntu", command=["sh", "-c", script], **more)
    return job.id


def ended(api: HfApi, job_id: str) -> str:
    deadline = time.monotonic() + 180
    while (stage := api.inspect_job(job_id=job_id).status.stage) in {"SCHEDULING", "RUNNING"}:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return str(stage)


def running(api: HfApi, job_id: str) -> None:
    deadline = time.monotonic() + 180
    while api.inspect_job(job_id=job_id).status.stage != "RUNNING":
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_run_prints_what_the_job_prints() -> None:
    assert "hello" in hf("run", "ubuntu", "echo", "hello").splitlines()


def test_run_fails_when_the_job_does() -> None:
    told = hf("run", "ubuntu", "sh", "-c", "echo bad; exit 3", code=1)

    assert "bad" in told.splitlines()
    assert "exit code 3" in told


def test_variables_and_secrets_reach_the_job_and_secrets_nobody_else(api: HfApi) -> None:
    job_id = start(
        api, "echo $MODE $KEY $JOB_ID $ACCELERATOR", env={"MODE": "fast"}, secrets={"KEY": "s3cret"}
    )
    ended(api, job_id)

    logs = list(api.fetch_job_logs(job_id=job_id))

    assert logs == [f"fast s3cret {job_id} none"]
    job = api.inspect_job(job_id=job_id)
    assert "s3cret" not in repr(job)
    assert job.environment == {"MODE": "fast"}


def test_logs_are_followed_and_cut(api: HfApi) -> None:
    job_id = start(api, "for i in 1 2 3 4 5; do echo $i; sleep 0.2; done")

    followed = hf("logs", "-f", job_id)
    cut = hf("logs", "--tail", "2", job_id)

    assert followed.split() == ["1", "2", "3", "4", "5"]
    assert cut.split() == ["4", "5"]


def test_a_job_is_listed_inspected_and_labelled(api: HfApi) -> None:
    job_id = start(api, "true", labels={"kind": "check"})
    ended(api, job_id)

    listed = json.loads(hf("ls", "-a", "--format", "json"))
    [shown] = json.loads(hf("inspect", job_id, "--format", "json"))

    assert job_id in [job["id"] for job in listed]
    assert (shown["id"], shown["status"]["stage"]) == (job_id, "COMPLETED")
    assert (api.inspect_job(job_id=job_id).labels or {})["kind"] == "check"
    hf("labels", job_id, "--label", "kind=other")
    assert (api.inspect_job(job_id=job_id).labels or {})["kind"] == "other"


def test_a_cancelled_job_ends(api: HfApi) -> None:
    job_id = start(api, "sleep 600")
    running(api, job_id)

    hf("cancel", job_id)

    assert ended(api, job_id) == "CANCELED"


def test_waiting_tells_how_it_ended(api: HfApi) -> None:
    good, bad = start(api, "sleep 1"), start(api, "exit 1")

    assert "COMPLETED" in hf("wait", good)
    assert "ERROR" in hf("wait", good, bad, code=1)


def test_a_job_that_takes_too_long_is_ended(api: HfApi) -> None:
    job_id = start(api, "sleep 600", timeout=1)

    assert ended(api, job_id) == "ERROR"
    assert api.inspect_job(job_id=job_id).status.message == "Job timeout"


def test_a_job_is_tried_again(api: HfApi) -> None:
    job_id = start(api, "echo once more; exit 1", attempts=2)

    assert ended(api, job_id) == "ERROR"
    assert list(api.fetch_job_logs(job_id=job_id)) == ["once more", "once more"]


def test_statistics_are_shown_while_a_job_runs(api: HfApi) -> None:
    # The command ends with the job.
    job_id = start(api, "sleep 20")
    running(api, job_id)

    assert job_id[:10] in hf("stats", job_id)


def test_hardware_is_listed() -> None:
    assert "cpu-basic" in hf("hardware")


def test_a_job_runs_by_the_clock(api: HfApi) -> None:
    hf("scheduled", "run", "@hourly", "--name", "by-the-clock", "ubuntu", "echo", "tick")
    [found] = [job for job in api.list_scheduled_jobs() if job.job_spec.command == ["echo", "tick"]]

    assert found.id[:6] in hf("scheduled", "ls")
    assert "@hourly" in hf("scheduled", "inspect", found.id, "--format", "json")
    hf("scheduled", "suspend", found.id)
    assert api.inspect_scheduled_job(scheduled_job_id=found.id).suspend is True
    hf("scheduled", "resume", found.id)
    assert api.inspect_scheduled_job(scheduled_job_id=found.id).suspend is False
    hf("scheduled", "delete", found.id)
    assert found.id not in [job.id for job in api.list_scheduled_jobs()]


def test_a_scheduled_job_is_run_at_once_and_at_another_time(api: HfApi) -> None:
    made = api.create_scheduled_job(image="ubuntu", command=["echo", "tock"], schedule="@yearly")

    told = json.loads(hf("scheduled", "trigger", made.id, "--format", "json"))

    assert ended(api, told["id"]) == "COMPLETED"
    assert list(api.fetch_job_logs(job_id=told["id"])) == ["tock"]
    hf("scheduled", "reschedule", made.id, "0 9 * * 1")
    again = api.inspect_scheduled_job(scheduled_job_id=made.id)
    assert (again.schedule, again.suspend) == ("0 9 * * 1", False)
    api.delete_scheduled_job(scheduled_job_id=made.id)


def test_a_stranger_sees_nothing_of_it(api: HfApi, stranger: HfApi) -> None:
    job_id = start(api, "true")

    with pytest.raises(HfHubHTTPError) as refused:
        stranger.inspect_job(job_id=job_id, namespace="ada")

    assert refused.value.response.status_code == 404


def test_a_flavor_that_is_not_offered_is_refused_with_the_choice(api: HfApi) -> None:
    with pytest.raises(HfHubHTTPError, match="this hub does not offer a100-large"):
        start(api, "true", flavor="a100-large")
