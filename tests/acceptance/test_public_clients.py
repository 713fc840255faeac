"""The unmodified public client, in each version we promise, drives a real hub."""

import subprocess
from pathlib import Path

import pytest

from processes import Place, Server, clean_environment, run_hublet, serving

CHECKS = Path(__file__).parent / "clients"
# `make` installs each version into an environment of its own.
ENVIRONMENTS = Path(__file__).parents[2] / ".venv" / "clients"


@pytest.mark.parametrize("version", ["2.1.1", "2.4.0"])
def test_the_public_client_works_unchanged(place: Place, version: str) -> None:
    with serving(place, "--test-mode") as hub:
        _run(place, "org", "add", "analytical")
        tokens = {name: _token(place, name) for name in ("ada", "grace")}
        _run(place, "org", "member", "add", "analytical", "ada", "--role", "admin")

        ended = _check(place, hub, tokens, version=version)

    assert ended.returncode == 0, ended.stdout + ended.stderr


def _token(place: Place, name: str) -> str:
    _run(place, "user", "add", name)
    return _run(place, "token", "create", name, "--role", "write").strip()


def _run(place: Place, *command: str) -> str:
    ended = run_hublet(*command, *place.flags, folder=place.folder)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def _check(
    place: Place, hub: Server, tokens: dict[str, str], *, version: str
) -> subprocess.CompletedProcess[str]:
    variables = {
        "HF_ENDPOINT": hub.address,
        "HF_TOKEN": tokens["ada"],
        "STRANGERS_TOKEN": tokens["grace"],
        "HF_HOME": str(place.folder / "client"),
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
        cwd=place.folder,
        env=clean_environment(variables),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
