from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from hublet.runtime import launch_threads
from runtime.networks.machines import Machine, a_machine


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """A machine with a world around it; the test runs on it."""
    # A thread is where it was started: those of tests before are on another machine.
    with a_machine() as machine, ThreadPoolExecutor() as threads:
        monkeypatch.setattr(launch_threads, "_pool", threads)
        yield machine
