"""Suites that run inside the environment of a public client, which knows nothing of Hublet."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

from acceptance.client_versions import ENVIRONMENTS
from hublet.testing import Hub
from processes import clean_environment


def run_checks(
    hub: Hub, checks: Path, folder: Path, *, environment: str, variables: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run the suite in a folder of checks against a hub."""
    given = {
        **variables,
        "HF_ENDPOINT": hub.url,
        "HF_HOME": str(folder / "client"),
        "HF_HUB_DISABLE_UPDATE_CHECK": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    }
    python = ENVIRONMENTS / environment / "bin" / "python"
    suite = ["-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider"]
    return subprocess.run(
        [python, *suite, "-c", str(checks / "pytest.ini"), str(checks)],
        cwd=folder,
        env=clean_environment(given),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
