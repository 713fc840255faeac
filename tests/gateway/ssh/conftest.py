"""The gateway for tests, before jobs that are plain processes."""

from collections.abc import AsyncIterator

import pytest

from gateway.ssh.guests import House, a_house
from hublet.core.database import Database


@pytest.fixture
async def house(database: Database) -> AsyncIterator[House]:
    async with a_house(database) as house:
        yield house
