"""House rules that a reader would otherwise have to remember."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from statistics import median

import hublet

SOURCE = Path(hublet.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
ROOT = SOURCE.parent.parent


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(tree_of(path)))


def relative(path: Path) -> str:
    return str(path.relative_to(SOURCE))


def imports_of(path: Path) -> set[str]:
    names: set[str] = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


def calls_of(path: Path) -> set[str]:
    return {
        node.func.attr
        for node in nodes_of(path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }


SQL = {"fetch_all", "fetch_one", "fetch_value", "execute", "execute_many"}
QUERY_PROGRAMS = ("sql/program.py", "sql/statistics_program.py")
AT_THE_RIM = {"routes.py", "auth.py", "pages.py", "app.py", "serving.py", "gaps.py"}


def those(files: Iterable[Path]) -> list[str]:
    return [relative(path) for path in files]


def test_sql_lives_in_stores_and_the_kernel() -> None:
    outside = [
        path
        for path in FILES
        if not path.name.endswith("store.py")
        and "core" not in path.parts
        # Programs of their own, which ask DuckDB and no database of the hub.
        and not relative(path).startswith(QUERY_PROGRAMS)
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
        and not relative(path).startswith(("runtime/shim/", "runtime/attach/", *QUERY_PROGRAMS))
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


# Programs that run inside of jobs are folders of their own, whatever their depth.
IN_JOB_PROGRAMS = ("runtime/shim/", "runtime/attach/")
MODULES = [path for path in FILES if path.name not in {"__init__.py", "__main__.py"}]


def lines_of(path: Path) -> int:
    return len(path.read_text().splitlines())


def features() -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = defaultdict(list)
    for path in FILES:
        found[path.relative_to(SOURCE).parts[0]].append(path)
    return found


def test_no_module_outgrows_a_reader() -> None:
    assert those(path for path in FILES if lines_of(path) > 400) == []


def test_files_are_few_and_full() -> None:
    # Fewer, fuller files: a story that one person reads in one go should need few of them. With the
    # pages of the second part the bounds moved from 815 and 130, with several machines from 885; see
    # decision 0053.
    assert len(FILES) <= 1020
    assert 90 <= median(lines_of(path) for path in MODULES) <= 165


def test_folders_are_two_levels_deep() -> None:
    deep = [path for path in FILES if len(path.relative_to(SOURCE).parts) > 3]
    assert [path for path in those(deep) if not path.startswith(IN_JOB_PROGRAMS)] == []


def test_a_folder_of_a_feature_holds_four_modules() -> None:
    parts = Counter(path.parent for path in MODULES if len(path.relative_to(SOURCE).parts) == 3)
    assert [relative(part) for part, count in parts.items() if count < 4] == []


# Gerunds that are the standard term of the field.
GERUNDS = {
    "batching", "encoding", "forwarding", "gating", "matching", "outgoing", "paging", "pruning",
    "rendering", "routing", "scheduling", "sealing", "serving", "signing", "streaming", "testing",
    "tracing",
}  # fmt: skip


def test_modules_are_nouns() -> None:
    names = {part for path in FILES for part in path.relative_to(SOURCE).with_suffix("").parts}
    last_words = {name: name.split("_")[-1] for name in names}
    gerunds = [name for name, word in last_words.items() if word.endswith("ing")]
    assert [name for name in gerunds if last_words[name] not in GERUNDS] == []


# Each of these has one word in the glossary: event, or a name that says of what.
NOT_OUR_WORDS = {"fact", "happening", "news", "deed", "tell", "besides", "overseer"}
NEVER_BARE = {"Target", "Answer", "Asked", "Place", "Happening", "Entry", "Plan"}
# As public names these say nothing about what they are.
PARTICIPLES = {"shown", "asked", "told", "found", "given", "taken", "kept", "seen", "heard", "said"}


def names_in(path: Path) -> Iterator[str]:
    for node in nodes_of(path):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name) | ast.arg(arg=name) | ast.Name(id=name):
                yield name
            case ast.Attribute(attr=name):
                yield name


def words_of(name: str) -> set[str]:
    words = {word.lower() for word in re.findall(r"[A-Z]?[a-z]+", name)}
    return words | {word.removesuffix("s") for word in words}


def test_names_keep_to_the_glossary() -> None:
    found = {
        f"{relative(path)}: {name}"
        for path in FILES
        for name in names_in(path)
        # `tell` is what files do about their position.
        if words_of(name) & NOT_OUR_WORDS and name != "tell"
    }
    assert found == set()


def test_docstrings_and_comments_say_event() -> None:
    other = re.compile(r"\b(facts?|happenings?|deeds?|news)\b", re.IGNORECASE)
    found = [
        f"{relative(path)}: {line.strip()}"
        for path in FILES
        for line in path.read_text().splitlines()
        # A table keeps its name.
        if other.search(line.replace("FROM facts", "").replace("INTO facts", ""))
    ]
    assert found == []


def test_a_class_name_is_unique_in_its_feature() -> None:
    for feature, files in features().items():
        names = Counter(
            node.name for path in files for node in nodes_of(path) if isinstance(node, ast.ClassDef)
        )
        assert [name for name, count in names.items() if count > 1] == [], feature
        assert names.keys() & NEVER_BARE == set(), feature


def test_public_names_are_no_bare_participles() -> None:
    found = [
        f"{relative(path)}: {node.name}"
        for path in FILES
        for node in tree_of(path).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        if node.name in PARTICIPLES
    ]
    assert found == []


def test_a_feature_has_one_module_of_errors_and_one_of_reactions() -> None:
    inner = [path for path in FILES if len(path.relative_to(SOURCE).parts) > 2]
    assert those(path for path in inner if path.stem in {"errors", "reactions"}) == []


def test_the_application_lists_features() -> None:
    imported = [name for name in imports_of(SOURCE / "app.py") if name.endswith("routes")]
    # One module of routes for each feature, and two of the kernel.
    assert [name for name in imported if name.count(".") > 2] == []


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


def test_records_use_the_dataclass_of_the_hub() -> None:
    usual = "@dataclass(frozen=True, slots=True, kw_only=True)"
    # Commands load nothing of a hub, the receiver and what runs inside of jobs have none.
    apart = ("cli/", "client/", "receiver/", "runtime/shim/", "core/dataclasses.py")
    files = [path for path in FILES if usual in path.read_text()]
    heavy = [path for path in files if "hublet.core.dataclasses" not in imports_of(path)]
    assert [path for path in those(heavy) if not path.startswith(apart)] == []


def test_no_test_needs_a_quiet_machine() -> None:
    """A wait ends at `SOON_SECONDS`; work is measured by the thread's own time, or in benchmarks."""
    quick = re.compile(r"(monotonic|perf_counter|[^_]time)\(\) - [\w.]+ <(?! (60|SOON_SECONDS)\b)")
    short = re.compile(r"(asyncio\.timeout\(|wait_for\(.+, )([2-9]|\d\d)(\.\d+)?\)")
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if quick.search(line) or short.search(line)
    ]
    assert found == []
