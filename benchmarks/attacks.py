"""What an attacker can make the hub do, by its worst known input."""

import time
from collections.abc import Iterator
from contextlib import suppress
from statistics import median

from benchmarks.figures import Goal, Row
from benchmarks.workbench import Workbench
from hublet.core import yaml_loader

_MEGABYTE = yaml_loader.LARGEST_TEXT
_YAML_GOAL = Goal(floor=50, aim=30, more_is_better=False, of="ours")


def measure(bench: Workbench) -> Iterator[Row]:
    """Work that one hostile request causes, at its worst."""
    for attack in (_yaml,):
        yield attack(bench)


def yaml_bombs() -> dict[str, str]:
    """Return YAML for each way that is known to make a parser slow."""
    short_values = "".join(f"k{number}: 1.5\n" for number in range(1000))
    return {
        "base 60": _fill("a: ", "1:"),
        "numbers": _fill("[", "1.5e3,"),
        "digits": _fill("a: ", "1", "x"),
        "lists": _fill("[", "[],"),
        "mappings": _fill("[", "{a: b},"),
        "short values": "[" + "1.5," * 10_200 + "]",
        "names": _fill("", "".join(f"{number}:\n" for number in range(150_000))),
        "one name twice": _fill("", "a: b\n"),
        "anchors": _fill("[", "&a b,"),
        "tags": _fill("[", "!!str b,"),
        "merges": _fill("", "<<: {a: b}\n"),
        "aliases": _fill("a: &a [b]\nc: [", "*a,"),
        "directives": _fill("", "".join(f"%TAG !{number:x}! x\n" for number in range(90_000))),
        "open lists": _fill("", "["),
        "open lines": _fill("", "- "),
        "a long line": _fill("", "x"),
        "folded lines": _fill("", "x y\n "),
        "a literal block": _fill("a: |\n", " x\n"),
        "escapes": _fill('"', "\\n", '"'),
        "comments": _fill("", "#\n"),
        "documents": _fill("", "--- a\n"),
        "values, then text": _fill(short_values + "z: |\n", " x\n"),
    }


def _fill(start: str, part: str, end: str = "") -> str:
    size = _MEGABYTE - len(start) - len(end)
    return start + (part * (size // len(part) + 1))[:size] + end


def _yaml(bench: Workbench) -> Row:
    worst, millis = max(
        ((name, _millis(text, bench.rounds)) for name, text in yaml_bombs().items()),
        key=lambda each: each[1],
    )
    return Row(
        subject="1 MB of hostile YAML",
        unit="ms",
        ours=millis,
        goal=_YAML_GOAL,
        note=f"the worst is: {worst}",
    )


def _millis(text: str, rounds: int) -> float:
    return median(_seconds(text) for _ in range(rounds)) * 1000


def _seconds(text: str) -> float:
    # The thread's own time: a neighbour on the machine must not count.
    start = time.thread_time()
    with suppress(yaml_loader.InvalidYaml):
        yaml_loader.load(text)
    return time.thread_time() - start
