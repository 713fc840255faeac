"""The guide and the example project do what they say."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
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


def names_in(*requirements: str) -> set[str]:
    """Return the distributions that are asked for, as they are spelled in one way."""
    found = (re.match(r"[\w.-]+", each) for each in requirements)
    return {canonical(each[0]) for each in found if each is not None}


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def imported_by(text: str) -> set[str]:
    """Return the modules of others that a piece of Python imports, without what lies in them."""
    nodes = list(ast.walk(ast.parse(text)))
    named = [each.name for node in nodes if isinstance(node, ast.Import) for each in node.names]
    named += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in named} - sys.stdlib_module_names


def test_the_extra_brings_all_that_guide_and_example_import() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    brought = names_in(*project["dependencies"], *project["optional-dependencies"]["testing"])
    texts = [*blocks("python"), *(path.read_text() for path in EXAMPLE.rglob("*.py"))]
    own = {"conftest", "hublet", "licence_bot"}
    modules = set().union(*map(imported_by, texts)) - own
    distributions = packages_distributions()

    missing = {
        module
        for module in modules
        if not brought & {canonical(each) for each in distributions[module]}
    }

    assert {"huggingface_hub", "httpx2", "fastapi"} <= modules
    assert missing == set()


def test_the_example_names_all_that_it_imports() -> None:
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    texts = [path.read_text() for path in (EXAMPLE / "licence_bot").glob("*.py")]
    modules = set().union(*map(imported_by, texts)) - {"licence_bot"}

    assert modules <= {each.replace("-", "_") for each in names_in(*project["dependencies"])}


@pytest.mark.parametrize("name", ["README.md", "pyproject.toml"])
def test_the_example_can_be_copied_on_its_own(name: str) -> None:
    assert ".." not in (EXAMPLE / name).read_text().replace("...", "")


def test_the_examples_tests_pass_outside_of_this_repository(tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(EXAMPLE, project, ignore=shutil.ignore_patterns("__pycache__"))

    ended = run_pytest(project)

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "11 passed" in ended.stdout
