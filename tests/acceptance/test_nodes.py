"""Several nodes on one PostgreSQL behind a balancer, as operators run them."""

from collections.abc import Callable
from pathlib import Path

from cluster import cluster
from processes import Place


def test_the_balancer_alternates_and_each_node_reads_what_another_wrote(
    fresh_url: Callable[[], str], tmp_path: Path
) -> None:
    place = Place(folder=tmp_path, database_url=fresh_url())
    with cluster(place, nodes=2) as running, running.server.client(running.server.token) as client:
        for number in range(6):
            name = f"model-{number}"
            created = client.post("/api/repos/create", json={"type": "model", "name": name})
            assert created.status_code == 200
            assert client.get(f"/api/models/admin/{name}").status_code == 200
            assert client.get("/api/whoami-v2").json()["name"] == "admin"

        assert sorted(running.balancer.served.values()) == [9, 9]
        assert running.balancer.failures == []
