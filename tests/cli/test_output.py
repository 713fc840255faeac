import io
import sys
from datetime import UTC, datetime

import pytest

from hublet.cli.environment import has_colours
from hublet.cli.output import CommandResult, Table, align, format_cell, paint, show, show_table

TABLE = Table(
    rows=[{"id": "1", "name": "ada", "text": "x" * 30}, {"id": "2", "name": "bob", "text": "y"}],
    columns={"name": "name", "words": "text"},
    name="id",
    empty="Nothing is here.",
)


class Terminal(io.StringIO):
    """A stream that says somebody is looking at it."""

    def isatty(self) -> bool:
        return True


def a_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Put a terminal in place of stdout; pytest would undo that between a fixture and its test."""
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.delenv("NO_COLOR", raising=False)
    return screen


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param("ada", "ada", id="text stays"),
        pytest.param(None, "-", id="nothing takes a place"),
        pytest.param("", "-", id="so does empty text"),
        pytest.param([], "-", id="and an empty list"),
        pytest.param(["a", "b"], "a, b", id="a list in a row"),
        pytest.param(True, "yes", id="yes"),
        pytest.param(False, "no", id="no"),
        pytest.param(0, "0", id="a number"),
        pytest.param(
            datetime(2026, 11, 15, 1, 44, 56, tzinfo=UTC), "2026-11-15 01:44", id="a time"
        ),
        pytest.param("a\nb\tc", "a�b�c", id="a line stays one line"),
        pytest.param("\x1b[31mred\x9b0m", "�[31mred�0m", id="nobody else's text paints"),
        pytest.param("\u202eevil", "�evil", id="nor turns the line around"),
    ],
)
def test_a_value_becomes_a_cell(value: object, text: str) -> None:
    assert format_cell(value) == text


@pytest.mark.parametrize(
    ("rows", "width", "lines"),
    [
        pytest.param(
            [["name", "role"], ["katherine", "read"]],
            None,
            ["name       role", "katherine  read"],
            id="columns stand under each other, and no blanks end a line",
        ),
        pytest.param(
            [["id", "error"], ["1", "a very long story"]],
            16,
            ["id  error", "1   a very long…"],
            id="the widest column is cut",
        ),
        pytest.param(
            [["id", "error"], ["1", "a very long story"]],
            21,
            ["id  error", "1   a very long story"],
            id="what just fits is not cut",
        ),
        pytest.param(
            [["one", "two"], ["abcdefghijkl", "abcdefghijklmnop"]],
            4,
            ["one       two", "abcdefg…  abcdefg…"],
            id="a few letters are always left",
        ),
        pytest.param(
            [["name", "role"], ["東京", "read"], ["e\u0301mile", "read"]],
            None,
            ["name   role", "東京   read", "e\u0301mile  read"],
            id="wide and combining letters are counted as they are seen",
        ),
        pytest.param(
            [["words"], ["東京東京東京"]],
            10,
            ["words", "東京東京…"],
            id="a wide letter is not halved",
        ),
    ],
)
def test_rows_are_aligned(rows: list[list[str]], width: int | None, lines: list[str]) -> None:
    assert align(rows, width=width) == lines


def test_a_table_in_a_pipe_is_whole(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")

    show_table(TABLE, as_json=False, quiet=False)

    assert capsys.readouterr().out == f"name  words\nada   {'x' * 30}\nbob   y\n"


def test_a_table_fits_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)
    monkeypatch.setenv("COLUMNS", "20")

    show_table(TABLE, as_json=False, quiet=False)

    heading, *lines = terminal.getvalue().splitlines()
    assert heading == "\x1b[1mname  words\x1b[0m"
    assert lines == [f"ada   {'x' * 13}…", "bob   y"]


def test_json_and_quiet_leave_out_the_message(capsys: pytest.CaptureFixture[str]) -> None:
    show_table(TABLE, as_json=False, quiet=True)
    show_table(Table(rows=[], columns={}, name="id", empty="Nothing."), as_json=True, quiet=False)
    show(CommandResult(data={"id": "1"}, text="secret", message="Done."), as_json=True)

    captured = capsys.readouterr()
    assert captured.out == '1\n2\n[]\n{"id": "1"}\n'
    assert captured.err == ""


def test_messages_go_to_stderr_and_data_to_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    show(CommandResult(data={"id": "1"}, text="secret", message="Done."), as_json=False)

    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("secret\n", "Done.\n")


@pytest.mark.parametrize(
    ("stream", "no_color", "wanted"),
    [
        pytest.param(Terminal(), None, True, id="a terminal"),
        pytest.param(Terminal(), "", True, id="an empty variable asks for nothing"),
        pytest.param(Terminal(), "1", False, id="a terminal of somebody who wants none"),
        pytest.param(io.StringIO(), None, False, id="a pipe"),
    ],
)
def test_colours_are_for_eyes(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, no_color: str | None, *, wanted: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    if no_color is not None:
        monkeypatch.setenv("NO_COLOR", no_color)

    assert has_colours(stream) is wanted


def test_painted_text_is_plain_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    assert paint("problem", colour="red") == "problem"


def test_painted_text_has_its_colour_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    a_terminal(monkeypatch)

    assert paint("problem", colour="red") == "\x1b[31mproblem\x1b[0m"
