"""The unmodified public client, in each version we promise, drives a real hub."""

from pathlib import Path

import pytest

from acceptance.client_checks import run_checks
from acceptance.client_versions import VERSIONS_AND_ENGINES
from hublet.testing import Hub

CHECKS = Path(__file__).parent / "clients"


@pytest.mark.parametrize(
    ("version", "hub_database_url"), VERSIONS_AND_ENGINES, indirect=["hub_database_url"]
)
def test_the_public_client_works_unchanged(hub: Hub, tmp_path: Path, version: str) -> None:
    ada, grace = hub.user("ada"), hub.user("grace")
    hub.organization("analytical", owner=ada)

    ended = run_checks(
        hub,
        CHECKS,
        tmp_path,
        environment=version,
        variables={"HF_TOKEN": ada.token, "STRANGERS_TOKEN": grace.token},
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr
