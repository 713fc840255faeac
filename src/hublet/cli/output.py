"""Output of a command: data on stdout, messages on stderr, tables that fit the terminal."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import NamedTuple

import typer

from hublet.cli.environment import has_colours

_GAP = "  "
_EMPTY_CELL = "-"
_MIN_WIDTH = 8
_UNIT = 1000


# Both are named tuples: a dataclass takes ten times as long to create, and two of them were a
# twentieth of the time of a short command.


class CommandResult(NamedTuple):
    """The result of a command that is not a list."""

    # Printed with --json.
    data: Mapping[str, object]
    # Printed on stdout without --json: only what a script needs.
    text: str | None = None
    # A sentence for people, printed on stderr.
    message: str | None = None
    # Whether the command ends with an exit code of failure.
    failed: bool = False


class Table(NamedTuple):
    """A list: its rows as --json prints them, and the columns of the table."""

    rows: Sequence[Mapping[str, object]]
    # The heading of each column, and the key of its values.
    columns: Mapping[str, str]
    # The key of what --quiet prints.
    name: str
    # The sentence for a list without rows.
    empty: str
    note: str | None = None
    # Printed with --json instead of the rows.
    data: Sequence[object] | None = None


def show(result: CommandResult, *, as_json: bool, quiet: bool = False) -> None:
    if as_json:
        show_json(result.data)
        return
    if result.text is not None:
        typer.echo(result.text)
    if result.message is not None and not quiet:
        say(result.message)


def show_table(table: Table, *, as_json: bool, quiet: bool) -> None:
    if as_json:
        show_json(table.rows if table.data is None else table.data)
        return
    if quiet:
        for row in table.rows:
            typer.echo(format_cell(row[table.name]))
        return
    if table.rows:
        rows = [[format_cell(row[key]) for key in table.columns.values()] for row in table.rows]
        heading, *lines = align([list(table.columns), *rows], width=_terminal_width())
        typer.echo("\n".join([paint(heading, bold=True), *lines]))
    for message in filter(None, (None if table.rows else table.empty, table.note)):
        say(message)


def show_json(data: object) -> None:
    import json

    typer.echo(json.dumps(data, default=_encode_time))


def say(message: str) -> None:
    typer.echo(message, err=True)


@contextmanager
def show_progress(message: str) -> Iterator[None]:
    """Show a message on a terminal while something takes time, then erase it."""
    if not sys.stderr.isatty():
        yield
        return
    sys.stderr.write(f"{message}…")
    sys.stderr.flush()
    try:
        yield
    finally:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


def parse_time(text: str | None) -> datetime | None:
    """Parse a time of the hub's API."""
    return None if text is None else datetime.fromisoformat(text)


def paint(text: str, *, colour: str | None = None, bold: bool = False) -> str:
    """Return the text in colour, if stdout is a terminal that shows colours."""
    return typer.style(text, fg=colour, bold=bold or None) if has_colours(sys.stdout) else text


def format_cell(value: object) -> str:
    """Format a value on one line; never empty, so that columns can be counted."""
    if value is None:
        return _EMPTY_CELL
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M")
    if isinstance(value, list | tuple):
        return ", ".join(map(format_cell, value)) or _EMPTY_CELL
    return replace_unprintable(str(value)) or _EMPTY_CELL


def replace_unprintable(text: str) -> str:
    """Replace control characters: some texts are chosen by users, and could move the cursor."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text
    )


def align(rows: Sequence[Sequence[str]], *, width: int | None) -> list[str]:
    """Put cells under each other; within a width, the widest columns are cut first."""
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    if width is not None:
        widths = _fit(widths, width)
    return [_line(row, widths) for row in rows]


def _fit(widths: Iterable[int], available: int) -> list[int]:
    fitted = list(widths)
    while sum(fitted) + len(_GAP) * (len(fitted) - 1) > available:
        widest = max(fitted)
        if widest <= _MIN_WIDTH:
            break
        fitted[fitted.index(widest)] -= 1
    return fitted


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = (_cut(text, width) for text, width in zip(row, widths, strict=True))
    padded = (
        text + " " * (width - _width(text)) for text, width in zip(cells, widths, strict=True)
    )
    return _GAP.join(padded).rstrip()


def _cut(text: str, width: int) -> str:
    if _width(text) <= width:
        return text
    kept = ""
    for letter in text:
        if _width(kept + letter) >= width:
            break
        kept += letter
    return f"{kept}…"


def _width(text: str) -> int:
    """Count columns, not characters: names may be written in wide or combining letters."""
    if text.isascii():
        return len(text)
    import unicodedata

    marks = sum(1 for letter in text if unicodedata.combining(letter))
    wide = sum(1 for letter in text if unicodedata.east_asian_width(letter) in "WF")
    return len(text) + wide - marks


def _terminal_width() -> int | None:
    # Output into a pipe or a file is not cut, so that it can be searched.
    return typer.get_terminal_size().columns if sys.stdout.isatty() else None


def _encode_time(value: object) -> str:
    from hublet.core.clock import wire

    if isinstance(value, datetime):
        return wire(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON.")


def format_size(count: int) -> str:
    """Write a number of bytes with the unit that suits it."""
    size, units = float(count), ["bytes", "kB", "MB", "GB", "TB", "PB"]
    while size >= _UNIT and len(units) > 1:
        size /= _UNIT
        units.pop(0)
    return f"{count} bytes" if units[0] == "bytes" else f"{size:.1f} {units[0]}"
