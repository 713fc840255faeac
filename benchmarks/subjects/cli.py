"""How long help of `hublet` takes, against that of `hf`."""

from collections.abc import Iterator

from benchmarks.figures import Goal, Row, compare
from benchmarks.processes import COMMANDS, seconds_to_run
from benchmarks.workbench import Workbench

_TIMES = 10
_ASKED = ("--help", "webhooks list --help")
_GOAL = Goal(floor=1 / 4, aim=1 / 6, more_is_better=False, of="ratio")
# A look for a newer version is no part of the comparison.
_NO_NETWORK = {"HF_HUB_DISABLE_UPDATE_CHECK": "1", "HF_HUB_OFFLINE": "1"}


def measure(_bench: Workbench) -> Iterator[Row]:
    """Start of the command line, as a share of the public client's."""
    for words in _ASKED:
        lines = {name: [str(COMMANDS / name), *words.split()] for name in ("hublet", "hf")}
        # The first run of each fills the caches of Python and of the disk.
        times = [
            {name: seconds_to_run(line, variables=_NO_NETWORK) for name, line in lines.items()}
            for _ in range(_TIMES + 1)
        ][1:]
        yield compare(
            f"hublet {words}",
            ours=[each["hublet"] for each in times],
            other=[each["hf"] for each in times],
            other_is=f"hf {words}",
            unit="s",
            goal=_GOAL,
        )
