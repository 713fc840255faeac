"""The receiving server against the public library's, the same script with another import."""

import http.client
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.figures import Goal, Row, Spoiled, compare
from benchmarks.peers import receiving
from benchmarks.processes import ROOT, Child, free_port, running
from benchmarks.rounds import LoadTarget, Round, alternate, request_bytes
from benchmarks.workbench import Workbench

PATH = "/webhooks/hear"
CONNECTIONS = 32
OURS = "hublet.receiver"
THEIRS = "huggingface_hub"
# `make` installs the public library there, with gradio, for the acceptance tests too.
PYTHONS = {
    OURS: Path(sys.executable),
    THEIRS: ROOT / ".venv" / "clients" / "receiver" / "bin" / "python",
}
BODY = (
    b'{"event":{"action":"update","scope":"repo.content"},"repo":{"type":"model",'
    b'"name":"ada/engine","id":"6af9735f29ea2002586654a4","private":false,"url":{"web":'
    b'"https://hub.example.com/ada/engine","api":"https://hub.example.com/api/models/ada/engine"},'
    b'"owner":{"id":"6af973580ae3c85584efc477"},"tags":["license:mit","region:us"],"headSha":'
    b'"359d420fdc59764d9148b9191bef8f025f9cecd2"},"updatedRefs":[{"ref":"refs/heads/main","oldSha":'
    b'"b0770fa0bf7da954e903d44b01cb4256097b1b8c","newSha":'
    b'"359d420fdc59764d9148b9191bef8f025f9cecd2"}],"webhook":{"id":"6af9736029ea2002586654a6",'
    b'"version":3}}'
)
HEADERS = {"x-webhook-secret": receiving.SECRET}
_ANSWER = (200, b'{"processed":true}')
_VARIABLES = {"GRADIO_ANALYTICS_ENABLED": "False", "HF_HUB_DISABLE_TELEMETRY": "1"}
_READY_SECONDS = 120.0
_GOAL = Goal(floor=3, aim=8, more_is_better=True, of="ratio")


def measure(bench: Workbench) -> Iterator[Row]:
    """Deliveries that a receiving server takes, against the public library's server."""
    if not PYTHONS[THEIRS].exists():
        raise Spoiled("The public library with gradio is not installed: `make test` does that.")
    with ExitStack() as stack:
        targets = []
        for library, python in PYTHONS.items():
            port = free_port()
            child = stack.enter_context(
                running(
                    [str(python), receiving.__file__, library, str(port)],
                    output=bench.folder / f"{library}.log",
                    core=bench.cores.server,
                    variables=_VARIABLES,
                )
            )
            wait_until_it_receives(child, port)
            request = request_bytes("POST", PATH, headers=HEADERS, body=BODY)
            targets.append(
                LoadTarget(name=library, process_id=child.id, port=port, request=request)
            )
        rounds = alternate(
            targets,
            connections=CONNECTIONS,
            seconds=bench.seconds,
            rounds=bench.rounds,
            core=bench.cores.load,
        )
    yield from rows_of(rounds)


def rows_of(rounds: Mapping[str, Sequence[Round]]) -> Iterator[Row]:
    subject = "deliveries received, with a secret"
    ours, theirs = rounds[OURS], rounds[THEIRS]
    yield compare(
        subject,
        ours=[each.rate for each in ours],
        other=[each.rate for each in theirs],
        other_is="WebhooksServer of huggingface_hub, with gradio",
        unit="/s",
        goal=_GOAL,
    )
    yield compare(
        f"{subject}, by processor time",
        ours=[1e6 / each.cpu_micros for each in ours],
        other=[1e6 / each.cpu_micros for each in theirs],
        other_is="",
        unit="/s",
        goal=_GOAL,
    )


def wait_until_it_receives(child: Child, port: int) -> None:
    """Wait for the first good answer; the public library has its page before it has its hooks."""
    deadline = time.monotonic() + _READY_SECONDS
    while (answer := _deliver(port)) != _ANSWER:
        if child.process.poll() is not None or time.monotonic() > deadline:
            raise Spoiled(f"{child.name} answered {answer} and said: {child.last_words()}")
        time.sleep(0.1)


def _deliver(port: int) -> tuple[int, bytes] | None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_READY_SECONDS)
    try:
        headers = HEADERS | {"content-type": "application/json"}
        connection.request("POST", PATH, body=BODY, headers=headers)
        response = connection.getresponse()
        return response.status, response.read()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
