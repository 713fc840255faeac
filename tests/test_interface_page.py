"""The page that names the tests of the interface names only tests that exist."""

import ast
import re
from itertools import pairwise
from pathlib import Path

import hublet

TESTS = Path(__file__).parent
PAGE = (Path(hublet.__file__).parent.parent.parent / "docs" / "interface.md").read_text()

# The number of a section of the interface, alone in the first cell of a row.
SECTION = re.compile(r"^\| (\d(?:\.\d+)?) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
RULE = re.compile(r"^\| (\d+) \| (\d(?:\.\d+)?) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
NAMED_TEST = re.compile(r"`([\w/]+\.py)(?:::(\w+))?`")

SECTIONS = SECTION.findall(PAGE)
RULES = RULE.findall(PAGE)


def functions_of(path: Path) -> set[str]:
    return {
        node.name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def test_every_test_that_is_named_exists() -> None:
    named = [(file.removeprefix("tests/"), name) for file, name in NAMED_TEST.findall(PAGE)]
    assert len(named) > 100
    assert [file for file, _ in named if not (TESTS / file).is_file()] == []
    missing = [
        f"{file}::{name}" for file, name in named if name and name not in functions_of(TESTS / file)
    ]
    assert missing == []


def test_each_section_and_each_rule_names_a_test() -> None:
    assert [row[0] for row in SECTIONS + RULES if not NAMED_TEST.search(row[-1])] == []


def test_the_sections_follow_one_another_without_a_gap() -> None:
    numbers = [tuple(int(part) for part in number.split(".")) for number, *_ in SECTIONS]
    assert numbers[0] == (1,)
    assert numbers[-1] == (9,)
    for before, after in pairwise(numbers):
        # The first part of a section, the next part of it, or the next section.
        nexts = {(before[0], 1), (*before[:-1], before[-1] + 1), (before[0] + 1,)}
        assert after in nexts, f"{after} follows {before}"
        assert len(before) == 1 or after != (before[0], 1)


def test_the_rules_are_numbered_from_one_on_and_each_belongs_to_a_section() -> None:
    assert [int(number) for number, *_ in RULES] == list(range(1, len(RULES) + 1))
    assert {section for _, section, *_ in RULES} <= {number for number, *_ in SECTIONS}
    assert len(RULES) >= 30
