"""The unmodified public client, in each version we promise, drives a real hub."""

import subprocess
from pathlib import Path

import pytest

from acceptance.client_versions import ENVIRONMENTS, VERSIONS_AND_ENGINES
from hublet.testing import Hub
from processes import clean_environment

CHECKS = Path(__file__).parent / "clients"


@pytest.mark.parametrize(
    ("version", "hub_database_url"), VERSIONS_AND_ENGINES, indirect=["hub_database_url"]
)
def test_the_public_client_works_unchanged(hub: Hub, tmp_path: Path, version: str) -> None:
    ada, grace = hub.user("ada"), hub.user("grace")
    hub.organization("analytical", owner=ada)

    ended = _check(
        hub, {"HF_TOKEN": ada.token, "STRANGERS_TOKEN": grace.token}, tmp_path, version=version
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr


def _check(
    hub: Hub, tokens: dict[str, str], folder: Path, *, version: str
) -> subprocess.CompletedProcess[str]:
    variables = {
        **tokens,
        "HF_ENDPOINT": hub.url,
        "HF_HOME": str(folder / "client"),
        "HF_HUB_DISABLE_UPDATE_CHECK": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    }
    python = ENVIRONMENTS / version / "bin" / "python"
    suite = (
        "-m",
        "pytest",
        "-q",
        "--tb=short",
        "-p",
        "no:cacheprovider",
        "-c",
        str(CHECKS / "pytest.ini"),
    )
    return subprocess.run(
        [python, *suite, str(CHECKS)],
        cwd=folder,
        env=clean_environment(variables),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
