"""The hub of the pytest plugin, on a database of each kind, for tests whose needs it covers."""

from collections.abc import Callable, Iterator

import pytest

from cluster import wanted_nodes, wanted_store
from cluster_hub import cluster_hub
from hublet.testing.hub import Hub
from processes import Place


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def hub_database_url(request: pytest.FixtureRequest) -> str | None:
    return request.getfixturevalue("postgresql") if request.param == "postgresql" else None


@pytest.fixture
def hub(
    request: pytest.FixtureRequest,
    hub_database_url: str | None,
    fresh_url: Callable[[], str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Hub]:
    """The plugin's hub; on PostgreSQL as many nodes as HUBLET_TEST_NODES says."""
    if hub_database_url is None or (nodes := wanted_nodes()) == 1:
        yield request.getfixturevalue("hub")
        return
    place = Place(folder=tmp_path_factory.mktemp("hub"), database_url=fresh_url())
    with cluster_hub(place, nodes=nodes, store_url=wanted_store(place)) as running:
        yield running
