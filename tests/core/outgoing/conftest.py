"""A client that may reach this machine, where the strangers of these tests live."""

from collections.abc import AsyncIterator

import pytest

from hublet.core.outgoing import OutgoingClient
from outgoing_requests import settings


@pytest.fixture
async def outgoing() -> AsyncIterator[OutgoingClient]:
    async with OutgoingClient(settings(test_mode=True)) as client:
        yield client
