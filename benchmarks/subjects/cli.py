"""How long `hublet --help` takes, against `hf --help`."""

from collections.abc import Iterator

from benchmarks.figures import Goal, Row, compare
from benchmarks.processes import COMMANDS, seconds_to_run
from benchmarks.workbench import Workbench

_TIMES = 10
_GOAL = Goal(floor=1 / 4, aim=1 / 6, more_is_better=False, of="ratio")
# A look for a newer version is no part of the comparison.
_NO_NETWORK = {"HF_HUB_DISABLE_UPDATE_CHECK": "1", "HF_HUB_OFFLINE": "1"}


def measure(_bench: Workbench) -> Iterator[Row]:
    """Start of the command line, as a share of the public client's."""
    commands = {name: [str(COMMANDS / name), "--help"] for name in ("hublet", "hf")}
    # The first run of each fills the caches of Python and of the disk.
    times = [
        {name: seconds_to_run(line, variables=_NO_NETWORK) for name, line in commands.items()}
        for _ in range(_TIMES + 1)
    ][1:]
    yield compare(
        "hublet --help",
        ours=[each["hublet"] for each in times],
        other=[each["hf"] for each in times],
        other_is="hf --help",
        unit="s",
        goal=_GOAL,
    )
