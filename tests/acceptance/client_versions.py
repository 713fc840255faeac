"""The versions of the public client that we promise; `make` installs each apart from the others."""

from pathlib import Path

ENVIRONMENTS = Path(__file__).parents[2] / ".venv" / "clients"
VERSIONS = ["2.1.1", "2.4.0"]
# Each version and each engine once: what a client sends does not depend on where it is kept.
VERSIONS_AND_ENGINES = list(zip(VERSIONS, ["postgresql", "sqlite"], strict=True))
