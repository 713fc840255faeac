"""The pages name every command there is; the acceptance tests run what they show."""

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

from typer.main import get_command

from hublet.cli import application
from hublet.cli.remote_command import NOT_REACHABLE, REFUSED, WRONG_USAGE

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "command-line.md"


def commands_of(command: object, words: tuple[str, ...] = ()) -> Iterator[str]:
    inner: dict[str, object] = getattr(command, "commands", {})
    if not inner:
        yield " ".join(words)
    for name, each in inner.items():
        yield from commands_of(each, (*words, name))


def named_in(page: str) -> Iterator[str]:
    """Yield the commands in the first column of tables, where `|` divides the last words.

    A flag of the program itself is none.
    """
    for row in re.findall(r"^\| (`hublet .*?) \| ", page, re.MULTILINE):
        spelled = re.findall(r"`([^`]+)`", row.replace("\\|", "/"))
        for each in spelled:
            words = [word.split("/") for word in each.removeprefix("hublet ").split()]
            commands = map(" ".join, itertools.product(*words))
            yield from (command for command in commands if not command.startswith("--"))


def test_every_command_stands_in_the_table_of_one_page() -> None:
    pages = [(DOCS / name).read_text() for name in ("command-line.md", "operating.md")]

    named = [command for page in pages for command in named_in(page)]

    assert sorted(named) == sorted(commands_of(get_command(application())))


def test_the_page_names_every_exit_code_and_variable() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert re.findall(r"^\| (\d+) \|", page, re.MULTILINE) == [
        str(code) for code in (0, REFUSED, WRONG_USAGE, NOT_REACHABLE, 130)
    ]
    assert set(re.findall(r"\b(?:HUBLET|HF)_[A-Z]+", page)) == {
        "HUBLET_ENDPOINT", "HUBLET_TOKEN", "HF_ENDPOINT", "HF_TOKEN",
    }  # fmt: skip
