"""Measures the subjects named on the command line, or all of them, and prints a table."""

import argparse
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import msgspec

from benchmarks.figures import Failure, Row, Spoiled
from benchmarks.machine import describe_machine
from benchmarks.subjects import ONLY_BY_NAME, SUBJECTS
from benchmarks.table import render
from benchmarks.workbench import Workbench, workbench
from hublet.core.config import Settings
from hublet.core.logs import configure, get_logger

log = get_logger("benchmarks")

_QUICK_SHARE = 0.01


def main(arguments: Sequence[str] | None = None) -> None:
    given = _parser().parse_args(arguments)
    if given.list:
        print("\n".join(f"{name:22}{each.__doc__}" for name, each in SUBJECTS.items()))
        return
    # Whatever ends the run, `finally` ends its children.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    configure(replace(Settings().logs, level="warning"))
    share = _QUICK_SHARE if given.quick else given.share
    with workbench(
        seconds=given.seconds, rounds=given.rounds, share=share, plans=given.plans
    ) as bench:
        report(
            bench,
            given.names or [each for each in SUBJECTS if each not in ONLY_BY_NAME],
            into=given.json,
        )


def report(bench: Workbench, names: Sequence[str], *, into: Path | None) -> None:
    """Measure and print; a figure that disappoints is told, and fails nothing."""
    machine = describe_machine()
    print("\n".join(f"{name}: {value}" for name, value in machine.items()), "\n")
    results = [each for name in names for each in _results(bench, name)]
    load = ", ".join(f"{load:.1f}" for load in os.getloadavg())
    print(f"\nload average after: {load}\n\n{render(results)}")
    if into is not None:
        document = {"machine": machine, "results": [_shown(each) for each in results]}
        into.write_bytes(msgspec.json.format(msgspec.json.encode(document)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", type=_subject, help=", ".join(SUBJECTS))
    parser.add_argument(
        "--seconds", type=float, help="length of a round (3), or of the soak (3600)"
    )
    parser.add_argument("--rounds", type=int, default=4, help="rounds of each subject (4)")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a hundredth of the content, to see that all of it works; the figures mean nothing",
    )
    parser.add_argument(
        "--share", type=float, default=1.0, help="how much of the content is made (1)"
    )
    parser.add_argument(
        "--plans", action="store_true", help="print query plans too (notifications)"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to a file")
    parser.add_argument("--list", action="store_true", help="list the subjects and stop")
    return parser


def _subject(name: str) -> str:
    if name not in SUBJECTS:
        raise argparse.ArgumentTypeError(f"{name} is none of {', '.join(SUBJECTS)}")
    return name


def _stop(number: int, _frame: object) -> NoReturn:
    sys.exit(128 + number)


def _results(bench: Workbench, name: str) -> Iterator[Row | Failure]:
    """Measure one subject; what goes wrong in it is told, and the others are measured."""
    print(f"{name} …", flush=True)
    try:
        yield from SUBJECTS[name](bench)
    except Spoiled as error:
        yield Failure(subject=name, reason=str(error))
    except Exception as error:
        log.exception("could not be measured", subject=name)
        yield Failure(subject=name, reason=f"{type(error).__name__}: {error}")


def _shown(result: Row | Failure) -> dict[str, object]:
    shown: dict[str, object] = msgspec.to_builtins(result)
    if isinstance(result, Row):
        shown |= {"ratio": result.ratio, "verdict": result.verdict}
    return shown


if __name__ == "__main__":
    main()
