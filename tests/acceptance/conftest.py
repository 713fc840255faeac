"""The hub of the pytest plugin, on a database of each kind, for tests whose needs it covers."""

import pytest


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def hub_database_url(request: pytest.FixtureRequest) -> str | None:
    return request.getfixturevalue("postgresql") if request.param == "postgresql" else None
