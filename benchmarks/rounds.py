"""Loads on several servers, one after the other and again: ours and a ceiling in the same minute."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from benchmarks.figures import Spoiled
from benchmarks.load import LoadPlan, Outcome
from benchmarks.processes import ROOT, clean_environment, cpu_seconds

_WARM_UP_SECONDS = 1.0
_PATIENCE_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTarget:
    name: str
    process_id: int
    port: int
    request: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One load on one target, with what an answer cost its process."""

    rate: float
    cpu_micros: float
    latencies: dict[int, int]


def request_bytes(
    method: str,
    path: str,
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    media_type: str = "application/json",
) -> bytes:
    fields = {"host": "hub.test", "user-agent": "benchmarks", "accept": "*/*"} | dict(headers or {})
    if body:
        fields |= {"content-type": media_type, "content-length": str(len(body))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + body


def apply_load(plan: LoadPlan, *, name: str) -> Outcome:
    """Run the generator as a process; anything but good answers spoils the measurement."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.load"],
        input=msgspec.json.encode(plan),
        cwd=ROOT,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        timeout=plan.seconds + _PATIENCE_SECONDS,
        check=True,
    )
    outcome = msgspec.json.decode(done.stdout, type=Outcome)
    if outcome.refused or outcome.lost or not outcome.answers:
        raise Spoiled(
            f"{name} gave {outcome.answers} good answers, others by status {outcome.refused}, "
            f"and closed {outcome.lost} connections."
        )
    return outcome


def alternate(
    targets: Sequence[LoadTarget],
    *,
    connections: int,
    seconds: float,
    rounds: int,
    core: int | None,
) -> dict[str, list[Round]]:
    """Warm every target up, then load them in turn; every second round in reverse order."""

    def load(target: LoadTarget, seconds: float) -> Round:
        plan = LoadPlan(
            port=target.port,
            request=target.request,
            connections=connections,
            seconds=seconds,
            core=core,
        )
        before = cpu_seconds(target.process_id)
        outcome = apply_load(plan, name=target.name)
        spent = cpu_seconds(target.process_id) - before
        return Round(
            rate=outcome.rate,
            cpu_micros=spent / outcome.answers * 1e6,
            latencies=outcome.latencies,
        )

    for target in targets:
        load(target, _WARM_UP_SECONDS)
    taken: dict[str, list[Round]] = {target.name: [] for target in targets}
    for number in range(rounds):
        for target in targets if number % 2 == 0 else reversed(targets):
            taken[target.name].append(load(target, seconds))
    return taken
