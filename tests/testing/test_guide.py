"""The guide and the example project do what they say."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from processes import clean_environment

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "examples" / "webhook_app"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", GUIDE, re.DOTALL | re.MULTILINE)


def run_pytest(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:asyncio"]
    return subprocess.run(
        [*command, "--strict-config", "-W", "error"],
        cwd=folder,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


def test_every_snippet_of_the_guide_runs(tmp_path: Path) -> None:
    [settings] = blocks("toml")
    # A suite in which the prefix of tokens may be any, so all of it can be taken over.
    assert tomllib.loads(settings)
    (tmp_path / "pyproject.toml").write_text(settings)
    snippets = blocks("python")
    for number, text in enumerate(snippets):
        is_conftest = text.startswith("# conftest.py")
        name = "conftest.py" if is_conftest else f"test_snippet_{number}.py"
        (tmp_path / name).write_text(text)

    ended = run_pytest(tmp_path)

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert f"{len(snippets) - 1} passed" in ended.stdout


@pytest.mark.parametrize("name", ["README.md", "pyproject.toml"])
def test_the_example_can_be_copied_on_its_own(name: str) -> None:
    assert ".." not in (EXAMPLE / name).read_text().replace("...", "")


def test_the_examples_tests_pass_outside_of_this_repository(tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(EXAMPLE, project, ignore=shutil.ignore_patterns("__pycache__"))

    ended = run_pytest(project)

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "7 passed" in ended.stdout
