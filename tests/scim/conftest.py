"""The two directories of an organization."""

import httpx2
import pytest

from hublet.core.database import Database
from scim.directories import Directory, a_directory


@pytest.fixture
async def invited(client: httpx2.AsyncClient, database: Database) -> Directory:
    """Of users who have accounts of their own."""
    return await a_directory(client, database)


@pytest.fixture
async def managed(client: httpx2.AsyncClient, database: Database) -> Directory:
    """Of users whose accounts belong to the organization."""
    return await a_directory(client, database, managed=True)
