"""The token endpoint over HTTP, every answer on the disk, against npm's oidc-provider."""

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

import msgspec

from benchmarks.figures import Row, Spoiled, compare
from benchmarks.hubs import ENGINES, Engine, ServedHub, Site, serving
from benchmarks.latencies import merged, percentile
from benchmarks.load import Outcome
from benchmarks.oauth_cases import CASES, Case
from benchmarks.oauth_load import OAuthPlan, OAuthRequest
from benchmarks.oauth_tenant import (
    CHALLENGE,
    REDIRECT_URI,
    Tenant,
    basic,
    create_tenant,
    new_codes,
    new_tokens,
)
from benchmarks.peers import oidc_provider as peer
from benchmarks.peers.environments import PeerUnavailable
from benchmarks.processes import ROOT, clean_environment, cpu_seconds
from benchmarks.rounds import Round
from benchmarks.workbench import Workbench
from hublet.cli.local_hub import run_loop

CONNECTIONS = 32
# A round that has spent them ends early; on PostgreSQL they take as long to make as to redeem.
_CODES_PER_SECOND = 1000
# Each may exchange 6,000 times in five minutes.
_APPS = 30
_OURS = "ours"
_PEERS = {"oidc-provider in memory": False, "oidc-provider on SQLite": True}
# By count, because the first of a kind may have much to load.
_WARM_UP_ANSWERS = 200
_WARM_UP_SECONDS = 20.0
_PATIENCE_SECONDS = 30.0
# On a busy machine even the first answers may take a while.
_SHORTEST_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    name: str
    server: ServedHub
    request: OAuthRequest
    # Makes so many of what the requests need.
    values: Callable[[int], list[str]]


def measure(bench: Workbench) -> Iterator[Row]:
    """Codes, refreshes, exchanges and look-ups over HTTP, against npm's oidc-provider."""
    for engine in ENGINES:
        site = bench.site(engine)
        tenant = run_loop(create_tenant(site.settings(), apps_count=_APPS))
        with ExitStack() as stack:
            hub = stack.enter_context(serving(site, core=bench.cores.server))
            peers = _peers(stack, bench, site)
            for case in CASES:
                targets = [_ours(site, tenant, case, hub)]
                targets += [_theirs(case, name, server) for name, server in peers.items()]
                yield from _rows(engine, case, _alternate(bench, targets))


def _peers(stack: ExitStack, bench: Workbench, site: Site) -> dict[str, ServedHub]:
    started: dict[str, ServedHub] = {}
    for name, durable in _PEERS.items():
        server = peer.serving(
            site.folder,
            durable=durable,
            redirect_uri=REDIRECT_URI,
            challenge=CHALLENGE,
            core=bench.cores.server,
        )
        try:
            started[name] = stack.enter_context(server)
        except PeerUnavailable as reason:
            print(f"left out: {reason}", flush=True)
    return started


def _ours(site: Site, tenant: Tenant, case: Case, hub: ServedHub) -> _Target:
    def values(count: int) -> list[str]:
        settings = site.settings()
        if case.kind == "Client":
            return list(tenant.credentials)
        if case.kind == "AuthorizationCode":
            return run_loop(new_codes(settings, tenant, count=count, scopes=case.scopes))
        issued = run_loop(new_tokens(settings, tenant, count=count, scopes=case.scopes))
        refreshed = case.kind == "RefreshToken"
        return [(each.refresh_token or "") if refreshed else each.access_token for each in issued]

    request = case.request(tenant.credentials[0])
    return _Target(name=_OURS, server=hub, request=request, values=values)


def _theirs(case: Case, name: str, server: ServedHub) -> _Target:
    app = basic(peer.CLIENT_ID, peer.CLIENT_SECRET)
    prepare = partial(peer.prepared, server, case.kind, scopes=" ".join(case.scopes))
    return _Target(
        name=name,
        server=server,
        request=case.their_request(app),
        values=lambda count: [app] if case.kind == "Client" else prepare(count=count),
    )


def _alternate(bench: Workbench, targets: Sequence[_Target]) -> dict[str, list[Round]]:
    """Warm every target up, then load them in turn; every second round in reverse order."""
    for target in targets:
        _load(bench, target, seconds=_WARM_UP_SECONDS, most=_WARM_UP_ANSWERS)
    seconds = max(bench.seconds * bench.share, _SHORTEST_SECONDS)
    taken: dict[str, list[Round]] = {target.name: [] for target in targets}
    for number in range(bench.rounds):
        for target in targets if number % 2 == 0 else reversed(targets):
            taken[target.name].append(_load(bench, target, seconds=seconds))
    return taken


def _load(bench: Workbench, target: _Target, *, seconds: float, most: int | None = None) -> Round:
    spent = target.request.values_are == "spent"
    count = max(most or round(_CODES_PER_SECOND * seconds), CONNECTIONS)
    plan = OAuthPlan(
        port=target.server.port,
        request=target.request,
        values=target.values(count if spent else CONNECTIONS),
        connections=CONNECTIONS,
        seconds=seconds,
        most=most,
        core=bench.cores.load,
    )
    before = cpu_seconds(target.server.child.id)
    outcome = _outcome(plan, name=target.name)
    cpu = cpu_seconds(target.server.child.id) - before
    return Round(
        rate=outcome.rate, cpu_micros=cpu / outcome.answers * 1e6, latencies=outcome.latencies
    )


def _outcome(plan: OAuthPlan, *, name: str) -> Outcome:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.oauth_load"],
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
            f"{name}, {plan.request.path}: {outcome.answers} good answers, others by status "
            f"{outcome.refused}, and {outcome.lost} connections closed."
        )
    return outcome


def _rows(engine: Engine, case: Case, rounds: dict[str, list[Round]]) -> Iterator[Row]:
    ours = rounds.pop(_OURS)
    if not rounds:
        rate = sorted(each.rate for each in ours)[len(ours) // 2]
        yield Row(subject=f"{case.name}, {engine}", unit="/s", ours=rate, note=_times(ours))
    for name, theirs in rounds.items():
        subject = f"{case.name}, {engine}, against {name}"
        row = compare(
            subject,
            ours=[each.rate for each in ours],
            other=[each.rate for each in theirs],
            other_is=name,
            unit="/s",
            goal=case.goal,
        )
        yield replace(row, note=f"ours {_times(ours)}, theirs {_times(theirs)}")
        yield compare(
            f"{subject}, by processor time",
            ours=[1e6 / each.cpu_micros for each in ours],
            other=[1e6 / each.cpu_micros for each in theirs],
            other_is="",
            unit="/s",
            goal=case.goal,
        )


def _times(rounds: Sequence[Round]) -> str:
    counts = merged(each.latencies for each in rounds)
    return f"p50 {percentile(counts, 0.5):.1f} ms and p99 {percentile(counts, 0.99):.1f} ms"
