"""House rules that a reader would otherwise have to remember."""

import ast
import re
from pathlib import Path

import pytest

import hublet

SOURCE = Path(hublet.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
ROOT = SOURCE.parent.parent


def relative(path: Path) -> str:
    return str(path.relative_to(SOURCE))


def imports_of(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


def calls_of(path: Path) -> set[str]:
    return {
        node.func.attr
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_sql_lives_in_stores_and_the_kernel(path: Path) -> None:
    if path.name == "store.py" or "core" in path.parts:
        return
    assert not calls_of(path) & {"fetch_all", "fetch_one", "fetch_value", "execute", "execute_many"}


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_the_framework_stays_at_the_rim(path: Path) -> None:
    at_the_rim = path.name in {"routes.py", "auth.py", "app.py", "serving.py", "gaps.py"} or {
        "pages",
        "http",
        "description",
    } & set(path.parts)
    if not at_the_rim:
        assert not {n.split(".")[0] for n in imports_of(path)} & {"fastapi", "starlette"}


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_time_randomness_and_the_environment_have_one_door(path: Path) -> None:
    # A command also asks the shell for colours, and must not load all settings for that.
    if "core" in path.parts or relative(path) == "cli/environment.py":
        return
    assert not imports_of(path) & {"time", "random", "secrets", "uuid"}
    assert not re.search(r"os\.environ|getenv", path.read_text())


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_every_module_says_what_it_is_for(path: Path) -> None:
    text = path.read_text()
    if text.strip():
        assert ast.get_docstring(ast.parse(text)), "A module opens with a sentence."


@pytest.mark.parametrize("path", FILES, ids=relative)
def test_no_module_outgrows_a_reader(path: Path) -> None:
    # An aim of 150 lines, a ceiling of 300.
    ceiling = 300
    assert len(path.read_text().splitlines()) <= ceiling


def test_the_audit_log_is_append_only() -> None:
    changing = re.compile(r"(UPDATE|DELETE FROM)\s+audit_log", re.IGNORECASE)
    assert [relative(path) for path in FILES if changing.search(path.read_text())] == []


def test_one_word_names_no_shelf_for_everything() -> None:
    shelves = {"utils", "helpers", "common", "manager", "base", "misc"}
    assert [relative(path) for path in FILES if path.stem in shelves] == []


def test_nothing_of_a_machine_is_committed() -> None:
    suspicious = re.compile(r"/(work|root|home/[a-z]+)/(?!\.cache)")
    pages = [ROOT / name for name in ("README.md", "Makefile", "pyproject.toml", ".ci/run")]
    found = [page.name for page in pages if suspicious.search(page.read_text())]
    assert found == []
