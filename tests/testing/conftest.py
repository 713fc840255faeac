"""The plugin's own hub, on a database of each kind."""

import pytest


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def hub_database_url(request: pytest.FixtureRequest) -> str | None:
    return request.getfixturevalue("postgresql") if request.param == "postgresql" else None
