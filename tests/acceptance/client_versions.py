"""The versions of the public client that we promise; `make` installs each apart from the others."""

from pathlib import Path

from cluster import wanted_nodes

ENVIRONMENTS = Path(__file__).parents[2] / ".venv" / "clients"
VERSIONS = ["2.1.1", "2.4.0"]


def engine_for_clients(engine: str) -> str:
    """Return the engine of a hub that a client is tried at; several nodes have PostgreSQL only."""
    return engine if wanted_nodes() == 1 else "postgresql"


# Each version and each engine once: what a client sends does not depend on where it is kept.
VERSIONS_AND_ENGINES = [
    (version, engine_for_clients(engine))
    for version, engine in zip(VERSIONS, ["postgresql", "sqlite"], strict=True)
]
