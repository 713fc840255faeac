"""Waiting for a job, also while its hub is away."""

import json

import pytest

from client.scripted_server import ScriptedResponse, scripted_server
from hublet.client import Hub, NotReachable, Refused
from hublet.client.jobs import Jobs, wait_for_end

ID = "a" * 24


def said(stage: str) -> ScriptedResponse:
    return ScriptedResponse(body=json.dumps({"id": ID, "status": {"stage": stage}}).encode())


RUNNING, COMPLETED = said("RUNNING"), said("COMPLETED")
# It breaks off in the middle of its answer.
BROKEN = ScriptedResponse(body=b"{", length=10)
STARTING = ScriptedResponse(status=503, body=b'{"error": "The hub is starting."}')
GONE = ScriptedResponse(status=404, body=b'{"error": "There is no job."}')


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long it would have waited each time."""
    waited: list[float] = []
    monkeypatch.setattr("hublet.client.jobs.pause", waited.append)
    return waited


def waited_for(*answers: ScriptedResponse) -> tuple[str, list[str]]:
    lost: list[str] = []
    with scripted_server(*answers) as script:
        jobs = Jobs(hub=Hub(endpoint=script.address), owner="ada")
        job = wait_for_end(jobs, jobs.get(ID), on_disconnect=lost.append)
    return job["status"]["stage"], lost


def test_a_hub_that_restarts_meanwhile_is_waited_for(waits: list[float]) -> None:
    ended = waited_for(RUNNING, BROKEN, STARTING, RUNNING, BROKEN, COMPLETED)

    assert ended == (
        "COMPLETED",
        ["the connection broke", "The hub is starting.", "the connection broke"],
    )
    # Longer each time, until it answers again.
    assert waits == [1.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0, 1.0]


def test_what_the_hub_refuses_ends_the_waiting() -> None:
    with pytest.raises(Refused, match="There is no job"):
        waited_for(RUNNING, GONE)


def test_a_hub_that_never_answered_is_not_waited_for() -> None:
    with pytest.raises(NotReachable):
        waited_for(BROKEN)
