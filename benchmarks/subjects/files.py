"""Pages of files: a file of 2,000 lines for the first time and again, a folder with last commits."""

import time
from collections.abc import Iterator
from statistics import median

from benchmarks.content import OWNER, Account, commit_body
from benchmarks.figures import Goal, Row, Spoiled
from benchmarks.hubs import ServedHub, populate, serving
from benchmarks.latencies import merged, percentile
from benchmarks.processes import cpu_seconds, fetch
from benchmarks.rounds import LoadTarget, alternate, request_bytes
from benchmarks.workbench import Workbench
from hublet.cli.local_hub import run_loop

_COLD = Goal(aim=150, more_is_better=False, of="ours")
_WARM = Goal(aim=20, more_is_better=False, of="ours")
_REPO = "engine"
_BROWSER = {"accept": "text/html", "accept-encoding": "gzip"}
# Different files of the same kind, so that each is opened for the first time.
_COLD_FILES = 12
_FUNCTION = """
def function_{number}(argument: int, *, words: str = "number {number}") -> dict[str, int]:
    \"\"\"Return what the argument and {number} have in common.\"\"\"
    found = {{word: len(word) + argument for word in words.split()}}  # comment {number}
    if argument % {number} == 0:
        return found
    for name, value in sorted(found.items()):
        print(f"{{name}} has {{value}}", 0x{number:x}, True, None)
    return found | {{"last": {number}}}
"""
_FUNCTIONS = 200


def measure(bench: Workbench) -> Iterator[Row]:
    """A file of 2,000 lines of Python: the median of first visits, p50 and p99 of later ones."""
    site = bench.site("SQLite")
    token = run_loop(populate(site.settings()))
    with serving(site, core=bench.cores.server) as hub:
        _fill(Account(hub=hub, token=token))
        # The first page of all imports what colours code.
        _open(hub, _page("blob/main", "warm-up.py"))
        # The lines come first; the script of the page asks for their colours.
        yield from _cold_rows(hub, "first visit", _BROWSER, _COLD)
        yield from _cold_rows(hub, "its colours", _BROWSER | {"fragment": "lines"}, None)
        _open(hub, _page("tree", "main?commits=true"))
        pages = {
            "file of 2,000 lines, again": _blob(0),
            "folder of 61 files": _page("tree", "main"),
        }
        yield from _warm_rows(bench, hub, pages)


def _cold_rows(
    hub: ServedHub, name: str, headers: dict[str, str], goal: Goal | None
) -> Iterator[Row]:
    before, taken = cpu_seconds(hub.child.id), list[float]()
    for number in range(_COLD_FILES):
        start = time.perf_counter()
        _open(hub, _blob(number), headers)
        taken.append((time.perf_counter() - start) * 1000)
    processor = (cpu_seconds(hub.child.id) - before) / _COLD_FILES * 1000
    subject = f"file of 2,000 lines, {name}"
    yield Row(subject=subject, unit="ms", ours=median(taken), goal=goal)
    yield Row(subject=f"{subject}, processor time", unit="ms", ours=processor, goal=goal)


def _warm_rows(bench: Workbench, hub: ServedHub, pages: dict[str, str]) -> Iterator[Row]:
    targets = [
        LoadTarget(
            name=name,
            process_id=hub.child.id,
            port=hub.port,
            request=request_bytes("GET", path, headers=_BROWSER),
        )
        for name, path in pages.items()
    ]
    rounds = alternate(
        targets,
        connections=1,
        seconds=bench.seconds,
        rounds=bench.rounds,
        core=bench.cores.load,
    )
    for name, each_taken in rounds.items():
        latencies = merged(each.latencies for each in each_taken)
        for share, word in ((0.5, "p50"), (0.99, "p99")):
            yield Row(
                subject=f"{name}, {word}", unit="ms", ours=percentile(latencies, share), goal=_WARM
            )
        processor = sum(each.cpu_micros for each in each_taken) / len(each_taken) / 1000
        yield Row(subject=f"{name}, processor time", unit="ms", ours=processor, goal=_WARM)


def _fill(account: Account) -> None:
    account.create_repo(_REPO)
    code = "".join(_FUNCTION.format(number=number + 1) for number in range(_FUNCTIONS))
    files = {f"code-{number:02}.py": f"# {number}{code}".encode() for number in range(_COLD_FILES)}
    files |= {f"note-{number:02}.txt": b"a note\n" for number in range(48)}
    account.commit(_REPO, commit_body({"warm-up.py": b"import os\n", **files}))


def _page(view: str, rest: str) -> str:
    return f"/{OWNER}/{_REPO}/{view}/{rest}"


def _blob(number: int) -> str:
    return _page("blob/main", f"code-{number:02}.py")


def _open(hub: ServedHub, path: str, headers: dict[str, str] = _BROWSER) -> None:
    status, _ = fetch(hub.port, path, headers)
    if status != 200:
        raise Spoiled(f"{path} answered {status}.")
