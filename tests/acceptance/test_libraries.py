"""`datasets` and `transformers`, unmodified and without torch, keep their things on a real hub."""

from pathlib import Path

from acceptance.client_checks import run_checks
from hublet.testing import Hub

CHECKS = Path(__file__).parent / "libraries"


def test_the_libraries_work_unchanged(hub: Hub, tmp_path: Path) -> None:
    ada = hub.user("ada")

    ended = run_checks(
        hub, CHECKS, tmp_path, environment="libraries", variables={"HF_TOKEN": ada.token}
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr
