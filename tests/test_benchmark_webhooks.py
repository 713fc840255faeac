"""The loads on webhooks: what the sink notes, what is computed of it, and that every part runs."""

import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from benchmarks import __main__ as command
from benchmarks.figures import Row, Spoiled
from benchmarks.peers import deliveries, environments
from benchmarks.peers.deliveries import Drain, drain
from benchmarks.peers.environments import Peer, PeerUnavailable, python_of
from benchmarks.sink import Arrival, Sink, read_request, sinking
from benchmarks.subjects import (
    webhooks,
    webhooks_kills,
    webhooks_latency,
    webhooks_matching,
    webhooks_neighbours,
)
from benchmarks.subjects.webhooks_neighbours import waits_of
from benchmarks.webhook_scene import a_push, a_repo, until
from benchmarks.workbench import Workbench, workbench

from hublet.webhooks.triggers.payload import render_body, trigger_of
from patience import SOON_SECONDS

REQUEST = b"POST /hook HTTP/1.1\r\nWebhook-Id: abc\r\nContent-Length: 3\r\n\r\n{ }"


@pytest.mark.parametrize(
    ("received", "read"),
    [
        pytest.param(REQUEST, (len(REQUEST), "abc"), id="whole"),
        pytest.param(REQUEST + REQUEST[:20], (len(REQUEST), "abc"), id="with the next behind it"),
        pytest.param(REQUEST[:-1], None, id="the body is not there yet"),
        pytest.param(REQUEST[:40], None, id="the head is not there yet"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", (18, ""), id="without a body and an id"),
    ],
)
def test_a_request_is_read_to_its_end(received: bytes, read: tuple[int, str] | None) -> None:
    assert read_request(received) == read


@contextmanager
def asking(sink: Sink, endpoint: int) -> Iterator[socket.socket]:
    with socket.create_connection(
        ("127.0.0.1", sink.ports[endpoint]), timeout=SOON_SECONDS
    ) as connection:
        yield connection


def test_a_sink_answers_and_notes_each_request_with_its_endpoint(tmp_path: Path) -> None:
    before = time.monotonic_ns()
    with sinking(tmp_path, endpoints=2) as sink, asking(sink, 0) as first, asking(sink, 1) as other:
        first.sendall(REQUEST)
        assert first.recv(1000).startswith(b"HTTP/1.1 200 OK\r\n")
        other.sendall(REQUEST.replace(b"abc", b"xyz"))
        assert other.recv(1000).startswith(b"HTTP/1.1 200 OK\r\n")
        arrivals = sink.arrivals()
        assert [(each.id, each.endpoint) for each in arrivals] == [("abc", 0), ("xyz", 1)]
        assert before < arrivals[0].nanos < arrivals[1].nanos < time.monotonic_ns()
        assert (sink.count(), sink.arrivals(after=1)) == (2, arrivals[1:])
        sink.forget()
        assert sink.count() == 0
        assert sink.urls[1] == f"http://127.0.0.1:{sink.ports[1]}/hook"


def test_a_black_hole_takes_everything_and_never_answers(tmp_path: Path) -> None:
    with sinking(tmp_path, endpoints=2) as sink, asking(sink, 0) as hole, asking(sink, 1) as other:
        sink.make_holes(1)
        hole.sendall(REQUEST)
        other.sendall(REQUEST)
        assert other.recv(1000).startswith(b"HTTP/1.1 200 OK\r\n")
        hole.settimeout(0.1)
        with pytest.raises(TimeoutError):
            hole.recv(1)
        assert {each.endpoint for each in sink.arrivals()} == {0, 1}
        sink.make_holes(0)
        assert hole.recv(1) == b""


def test_a_second_sink_in_a_folder_has_ports_of_its_own(tmp_path: Path) -> None:
    with sinking(tmp_path, endpoints=1) as sink:
        sink.count()
    with sinking(tmp_path, endpoints=1) as sink:
        assert sink.count() == 0


def test_waits_are_from_each_commit_to_its_arrival_at_each_endpoint() -> None:
    arrivals = [
        Arrival("a2", 1, 5_000_000),
        Arrival("a1", 1, 4_000_000),
        # Sent twice: the first one counts.
        Arrival("b1", 2, 1_500_000),
        Arrival("b1", 2, 9_000_000),
        # There before the one who committed was told.
        Arrival("b2", 2, 2_900_000),
    ]

    assert waits_of(arrivals, [1_000_000, 3_000_000]) == [0.003, 0.002, 0.0005, 0]


def test_an_event_that_reached_an_endpoint_not_at_all_spoils_the_waits() -> None:
    with pytest.raises(Spoiled, match="1 of 2 events reached an endpoint"):
        waits_of([Arrival("a1", 1, 5)], [1, 2])


async def test_waiting_ends_when_it_takes_too_long() -> None:
    with pytest.raises(Spoiled, match="Not all deliveries arrived within 0 seconds"):
        await until(lambda: False, seconds=0.02)


def test_the_body_has_the_length_that_is_told() -> None:
    trigger = trigger_of(a_push(a_repo(owner_id="5" * 24)), "http://hub.test")

    assert trigger is not None
    assert 1150 <= len(render_body(trigger.payload, "6" * 24)) <= 1250


def test_a_drain_is_judged_by_the_clock_and_by_the_processor() -> None:
    drained = Drain(deliveries=100, seconds=2, cpu_seconds=0.5)

    assert (drained.rate, drained.rate_by_cpu) == (50, 200)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Workbench]:
    """A hundredth of the content, on SQLite only."""
    for module in (webhooks, webhooks_kills, webhooks_latency, webhooks_matching):
        monkeypatch.setattr(module, "ENGINES", ("SQLite",))
    monkeypatch.setattr(webhooks_neighbours, "ENGINES", ("SQLite",))
    with workbench(seconds=1, rounds=1, share=0.01) as bench:
        yield bench


def units_of(rows: Sequence[Row]) -> dict[str, str]:
    return {row.subject: row.unit for row in rows}


def test_deliveries_are_drained_by_a_worker_and_held_against_peers(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def a_drain(peer: Peer, *_: object, **__: object) -> Drain:
        if peer is absent:
            raise PeerUnavailable("It cannot be installed.")
        return Drain(deliveries=50, seconds=5, cpu_seconds=2)

    absent = _peer(Path("absent.py"))
    monkeypatch.setattr(webhooks, "PEERS", {"SQLite": [(absent, 4), (_peer(Path("slow.py")), 4)]})
    monkeypatch.setattr(webhooks, "drain", a_drain)
    rows = list(webhooks.measure(bench))

    subject = "webhook deliveries, SQLite"
    assert units_of(rows) == {
        subject: "/s",
        f"{subject}, by processor time": "/s",
        f"{subject}, against slow": "/s",
        f"{subject}, against slow, by processor time": "/s",
    }
    assert [row.other for row in rows] == [None, None, 10, 25]
    assert rows[2].ratio == rows[0].ours / 10
    assert "100 of 1.2 kB to 50 endpoints" in rows[0].note
    assert capsys.readouterr().out == "webhooks, SQLite: It cannot be installed.\n"


@pytest.mark.parametrize(
    ("measure", "subjects"),
    [
        pytest.param(
            webhooks_latency.measure,
            {"commit to first byte when idle, SQLite, p99": "ms"},
            id="latency",
        ),
        pytest.param(
            webhooks_neighbours.measure,
            {"healthy endpoints beside 10 black holes of 50, SQLite, p99": "ms"},
            id="neighbours",
        ),
        pytest.param(
            webhooks_matching.measure,
            {
                "push past 1,000 webhooks, none matches, SQLite": "µs",
                "push past 1,000 webhooks, 10 match, SQLite": "ms",
            },
            id="matching",
        ),
    ],
)
def test_each_subject_gives_its_rows(
    bench: Workbench,
    measure: Callable[[Workbench], Iterator[Row]],
    subjects: dict[str, str],
) -> None:
    rows = list(measure(bench))

    assert units_of(rows) == subjects
    assert all(row.goal is not None for row in rows)


@pytest.mark.parametrize(
    ("states", "arrived", "lost"),
    [
        pytest.param({"a": "delivered"}, ["a", "a"], 0, id="sent twice is not lost"),
        pytest.param({"a": "delivered"}, ["b"], 1, id="received by nobody"),
        pytest.param({"a": "pending"}, ["a"], 1, id="received, and never written"),
        pytest.param({"a": "failed", "b": "fresh"}, [], 2, id="neither"),
    ],
)
def test_what_is_not_received_and_written_is_lost(
    states: dict[str, str], arrived: list[str], lost: int
) -> None:
    assert webhooks_kills.count_lost(states, arrived) == lost


def test_a_killed_hub_loses_nothing(bench: Workbench) -> None:
    rows = list(webhooks_kills.measure(bench))

    assert units_of(rows) == {
        "deliveries lost over kills, SQLite": "",
        "deliveries sent twice for each kill, SQLite": "",
        "restart to first delivery, SQLite": "s",
    }
    lost, twice, restart = rows
    assert lost.ours == 0
    assert lost.note.startswith("1 kills of `hublet serve`, ")
    assert " 0 deliveries" not in lost.note
    assert twice.ours >= 0
    assert restart.ours > 0


def _peer(script: Path, *, requirements: tuple[str, ...] = ("no-such-thing",)) -> Peer:
    return Peer(name=script.stem, script=script, requirements=requirements)


def _script(folder: Path, text: str) -> Peer:
    script = folder / "peer.py"
    script.write_text(text)
    return _peer(script)


POSTS_ONCE = """
import http.client, json, sys
plan = json.loads(sys.argv[1])
for url in plan["urls"][:plan["events"]]:
    connection = http.client.HTTPConnection(url.split("/")[2])
    connection.request("POST", "/hook", body=b"x" * plan["bytes"])
    connection.getresponse().read()
print("something else")
print(json.dumps({"deliveries": len(plan["urls"]), "seconds": 2, "cpu_seconds": 1}))
"""


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Peers run in this environment."""
    monkeypatch.setattr(deliveries, "python_of", lambda _peer: Path(sys.executable))


@pytest.mark.usefixtures("here")
def test_a_peer_is_given_the_endpoints_and_believed_when_all_arrived(
    bench: Workbench, tmp_path: Path
) -> None:
    with sinking(tmp_path, endpoints=1) as sink:
        peer = _script(tmp_path, POSTS_ONCE)
        drained = drain(peer, bench.site("SQLite"), sink, events=1, size=10, core=None)

    assert drained == Drain(deliveries=1, seconds=2, cpu_seconds=1)


@pytest.mark.usefixtures("here")
def test_a_peer_that_sent_less_than_it_says_spoils_the_measurement(
    bench: Workbench, tmp_path: Path
) -> None:
    peer = _script(tmp_path, POSTS_ONCE)
    with (
        sinking(tmp_path, endpoints=2) as sink,
        pytest.raises(Spoiled, match="peer sent 1 of 2 deliveries"),
    ):
        drain(peer, bench.site("SQLite"), sink, events=1, size=10, core=None)


@pytest.mark.usefixtures("here")
def test_a_peer_that_fails_is_told_with_its_last_words(bench: Workbench, tmp_path: Path) -> None:
    peer = _script(tmp_path, "raise SystemExit('No database.')")
    with (
        sinking(tmp_path, endpoints=1) as sink,
        pytest.raises(Spoiled, match="peer ended with 1 and said: No database"),
    ):
        drain(peer, bench.site("SQLite"), sink, events=1, size=10, core=None)


def _commands(
    monkeypatch: pytest.MonkeyPatch, *, fails: bool = False, makes: Path | None = None
) -> list[list[str]]:
    """Note the commands instead of running them."""
    commands: list[list[str]] = []

    def run(arguments: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        commands.append(arguments)
        if makes is not None:
            makes.mkdir(parents=True, exist_ok=True)
        said = "WARNING: x\nERROR: No matching distribution\n" if fails else ""
        return subprocess.CompletedProcess(arguments, int(fails), "", said)

    monkeypatch.setattr(subprocess, "run", run)
    return commands


def test_an_environment_is_built_once_and_again_when_it_must_hold_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    commands = _commands(monkeypatch, makes=tmp_path / "peer")
    peer = _peer(Path("peer.py"), requirements=("a==1", "b"))
    python = tmp_path / "peer" / "bin" / "python"

    assert [python_of(peer, place=tmp_path), python_of(peer, place=tmp_path)] == [python] * 2
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    assert commands == [
        [sys.executable, "-m", "venv", "--clear", str(tmp_path / "peer")],
        [*pip, "a==1", "b"],
    ]
    python_of(_peer(Path("peer.py"), requirements=("a==2",)), place=tmp_path)
    assert commands[-1] == [*pip, "a==2"]


def test_without_a_package_the_peer_is_not_to_be_had(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _commands(monkeypatch, fails=True)

    with pytest.raises(
        PeerUnavailable, match=r"peer could not be installed: No matching distribution$"
    ):
        python_of(_peer(Path("peer.py")), place=tmp_path)


def test_environments_of_peers_lie_beside_ours() -> None:
    assert environments.PLACE.parts[-2:] == (".venv", "peers")


def test_the_webhook_subjects_can_be_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    command.main(["--list"])

    named = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert [name for name in named if name.startswith("webhook")] == [
        "webhooks",
        "webhook_latency",
        "webhook_neighbours",
        "webhook_kills",
        "webhook_matching",
    ]
