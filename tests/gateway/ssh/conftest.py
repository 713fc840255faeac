"""The gateway for tests, before jobs that are plain processes."""

from collections.abc import AsyncIterator

import pytest

from gateway.ssh.guests import SshHarness, a_harness
from hublet.core.database import Database


@pytest.fixture
async def harness(database: Database) -> AsyncIterator[SshHarness]:
    async with a_harness(database) as harness:
        yield harness
