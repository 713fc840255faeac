from collections.abc import Iterator

import pytest

from jobs.networks.machines import Machine, a_machine


@pytest.fixture
def machine() -> Iterator[Machine]:
    """A machine with a world around it; the test runs on it."""
    with a_machine() as machine:
        yield machine
