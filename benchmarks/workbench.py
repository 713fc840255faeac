"""What every subject is given: how long to measure, where, and on which cores."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.hubs import Engine, Site
from benchmarks.machine import Cores, cores
from benchmarks.postgresql import postgresql

# The length of a round.
SECONDS = 3.0


@dataclass(slots=True, kw_only=True)
class Workbench:
    seconds: float
    rounds: int
    folder: Path
    cores: Cores
    # How much of the content that a subject names is made: less, to try the harness out.
    share: float = 1.0
    # Whether to print how the database goes about what is measured, where a subject can tell.
    plans: bool = False
    # What `seconds` was asked for by name, for what takes another time by itself.
    asked_seconds: float | None = None
    _stack: ExitStack
    _numbers: Iterator[int] = field(default_factory=count)
    _fresh_url: Callable[[], str] | None = None

    def site(self, engine: Engine) -> Site:
        """Return a place where nothing is yet."""
        folder = self.folder / str(next(self._numbers))
        folder.mkdir()
        url = self._fresh_database() if engine == "PostgreSQL" else None
        return Site(folder=folder, database_url=url)

    def _fresh_database(self) -> str:
        # The server starts with the first subject that needs it.
        if self._fresh_url is None:
            self._fresh_url = self._stack.enter_context(postgresql())
        return self._fresh_url()


@contextmanager
def workbench(
    *, seconds: float | None, rounds: int, share: float = 1.0, plans: bool = False
) -> Iterator[Workbench]:
    with (
        TemporaryDirectory(prefix="hublet-bench-", ignore_cleanup_errors=True) as folder,
        ExitStack() as stack,
    ):
        yield Workbench(
            seconds=SECONDS if seconds is None else seconds,
            asked_seconds=seconds,
            rounds=rounds,
            folder=Path(folder),
            cores=cores(),
            share=share,
            plans=plans,
            _stack=stack,
        )
