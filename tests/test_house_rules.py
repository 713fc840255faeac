"""House rules that a reader would otherwise have to remember."""

import ast
import re
from collections.abc import Iterable
from pathlib import Path

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


SQL = {"fetch_all", "fetch_one", "fetch_value", "execute", "execute_many"}
AT_THE_RIM = {"routes.py", "auth.py", "pages.py", "app.py", "serving.py", "gaps.py"}


def those(files: Iterable[Path]) -> list[str]:
    return [relative(path) for path in files]


def test_sql_lives_in_stores_and_the_kernel() -> None:
    outside = [
        path for path in FILES if not path.name.endswith("store.py") and "core" not in path.parts
    ]
    assert those(path for path in outside if calls_of(path) & SQL) == []


def test_the_framework_stays_at_the_rim() -> None:
    inside = [
        path
        for path in FILES
        if path.name not in AT_THE_RIM
        and not path.name.endswith("_routes.py")
        # The receiver is an application of its own, and nearly all rim.
        and not {"pages", "http", "description", "receiver"} & set(path.parts)
    ]
    framework = {"fastapi", "starlette"}
    found = those(
        path for path in inside if {name.split(".")[0] for name in imports_of(path)} & framework
    )
    assert found == []


def test_time_randomness_and_the_environment_have_one_door() -> None:
    # A command also asks the shell for colours, and must not load all settings for that.
    outside = [
        path
        for path in FILES
        if "core" not in path.parts
        and relative(path) != "cli/environment.py"
        # A program of its own, which knows no other module of the hub.
        and not relative(path).startswith(("runtime/shim/", "runtime/attach/"))
        # The receiver stands apart from the hub, and has one door of its own.
        and relative(path) != "receiver/environment.py"
        # The environment of somebody's tests, which is not the hub's.
        and relative(path) != "testing/environment.py"
    ]
    environment = re.compile(r"os\.environ|getenv")
    doors = {"time", "random", "secrets", "uuid"}
    found = those(
        path for path in outside if imports_of(path) & doors or environment.search(path.read_text())
    )
    assert found == []


def test_every_module_says_what_it_is_for() -> None:
    silent = [path for path in FILES if (text := path.read_text()).strip() and not says(text)]
    assert those(silent) == [], "A module opens with a sentence."


def says(text: str) -> bool:
    return ast.get_docstring(ast.parse(text)) is not None


def test_no_module_outgrows_a_reader() -> None:
    ceiling = 400
    assert those(path for path in FILES if len(path.read_text().splitlines()) > ceiling) == []


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


def test_records_are_made_lightly() -> None:
    usual = "@dataclass(frozen=True, slots=True, kw_only=True)"
    # Commands load nothing of a hub, the receiver and what runs inside of jobs have none.
    apart = ("cli/", "client/", "receiver/", "runtime/shim/", "core.dataclasses.py")
    files = [path for path in FILES if usual in path.read_text()]
    heavy = [path for path in files if "hublet.core.dataclasses" not in imports_of(path)]
    assert [path for path in those(heavy) if not path.startswith(apart)] == []
