"""Previews of tables: the first rows of CSV, TSV, JSON lines and Parquet."""

import csv
import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from itertools import islice
from typing import Any

from markupsafe import Markup

from hublet.core.dataclasses import dataclass
from hublet.web.rendering import ByteReader, parquet_program
from hublet.web.rendering.code import escape_line, make_visible
from hublet.web.rendering.parquet_program import cell_text

VERSION = "tables-1"

# How much of a file is looked at, and how much of that is shown.
MAX_BYTES = 256 * 1024
MAX_ROWS = 100
MAX_COLUMNS = 100
MAX_CELL_CHARACTERS = 500
# Of a Parquet file: its footer, and the first group of rows, packed and unpacked.
MAX_FOOTER_BYTES = 16 << 20
MAX_GROUP_BYTES = 32 << 20

_DELIMITERS = ",;\t|"
_PARQUET_MAGIC = b"PAR1"
_SHORTEST_PARQUET = 12
_DAMAGED_PARQUET = "This Parquet file is damaged."
# A line of the program that reads it.
_MAX_MESSAGE = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    name: Markup
    # Empty where a format has no types.
    type: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePreview:
    columns: tuple[TableColumn, ...] = ()
    rows: tuple[tuple[Markup, ...], ...] = ()
    # How many rows the whole file has, where it says so.
    row_count: int | None = None
    # Whether rows or columns are missing.
    is_cut: bool = False
    refusal: str = ""


def preview_table(file_name: str, start: bytes, *, size: int) -> TablePreview:
    """Return the first rows of a text file, whose first MAX_BYTES these are."""
    text = start[:MAX_BYTES].decode(errors="replace").removeprefix("\ufeff")
    is_whole = size <= MAX_BYTES
    if not is_whole:
        # The last line is not all there.
        text = text.rpartition("\n")[0]
    if not text.strip():
        return TablePreview(refusal="There are no rows at the start of this file.")
    suffix = file_name.rpartition(".")[2].lower()
    if suffix in {"jsonl", "ndjson"}:
        return _json_lines(text, is_whole=is_whole)
    return _separated(text, "\t" if suffix == "tsv" else "", is_whole=is_whole)


def _separated(text: str, delimiter: str, *, is_whole: bool) -> TablePreview:
    first = text.partition("\n")[0]
    delimiter = delimiter or max(_DELIMITERS, key=first.count)
    # An open quote at the end would reach beyond what was read; its row is left out.
    lines = io.StringIO(text, newline="")
    try:
        rows = list(islice(csv.reader(lines, delimiter=delimiter), MAX_ROWS + 2))
    except csv.Error as error:
        return TablePreview(refusal=f"This file is no table: {error}.")
    if not is_whole and len(rows) > 1 and len(rows) < MAX_ROWS + 2:
        rows.pop()
    header, *body = rows
    return _table(header, body, is_cut=not is_whole)


def _json_lines(text: str, *, is_whole: bool) -> TablePreview:
    lines = [line for line in text.split("\n") if line.strip()]
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(lines[: MAX_ROWS + 1], start=1):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            return TablePreview(refusal=f"Row {number} is no JSON.")
        rows.append(value if isinstance(value, dict) else {"value": value})
    names = list(dict.fromkeys(name for row in rows for name in row))
    body = [
        [cell_text(row[name], MAX_CELL_CHARACTERS) if name in row else "" for name in names]
        for row in rows
    ]
    return _table(names, body, is_cut=not is_whole)


def _table(header: Sequence[str], body: Sequence[Sequence[str]], *, is_cut: bool) -> TablePreview:
    width = max([len(header), *map(len, body[:MAX_ROWS])])
    shown = min(width, MAX_COLUMNS)
    rows = tuple(_padded(row, shown) for row in body[:MAX_ROWS])
    return TablePreview(
        columns=tuple(TableColumn(name=name) for name in _padded(header, shown)),
        rows=rows,
        row_count=None if is_cut or len(body) > MAX_ROWS else len(body),
        is_cut=is_cut or len(body) > MAX_ROWS or width > shown,
    )


def draw_rows(
    columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[Any]], *, is_cut: bool
) -> TablePreview:
    """Return rows of values as they are shown; a column is its name and its type."""
    most = columns[:MAX_COLUMNS]
    return TablePreview(
        columns=tuple(TableColumn(name=_cell(name), type=type_) for name, type_ in most),
        rows=tuple(
            tuple(_cell(cell_text(value, MAX_CELL_CHARACTERS)) for value in row[: len(most)])
            for row in rows
        ),
        is_cut=is_cut or len(columns) > len(most),
    )


def _padded(cells: Sequence[str], width: int) -> tuple[Markup, ...]:
    missing = [""] * max(width - len(cells), 0)
    return tuple(_cell(text) for text in [*cells[:width], *missing])


def _cell(text: str) -> Markup:
    cut = text if len(text) <= MAX_CELL_CHARACTERS else f"{text[:MAX_CELL_CHARACTERS]}…"
    return escape_line(make_visible(cut))


def preview_parquet(read: ByteReader, *, size: int) -> TablePreview:
    """Return the columns, the number of rows and the first of them.

    It takes a process, because some damaged files end the one that reads them.
    """
    if refusal := _parquet_refusal(read, size):
        return TablePreview(refusal=refusal)
    limits = (size, MAX_ROWS, MAX_COLUMNS, MAX_CELL_CHARACTERS, MAX_GROUP_BYTES)
    with subprocess.Popen(  # noqa: S603 - our own program with numbers
        [sys.executable, "-P", parquet_program.__file__, *map(str, limits)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        # Nothing of the hub's own environment.
        env={"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    ) as child:
        end = threading.Timer(parquet_program.MAX_SECONDS, child.kill)
        end.start()
        try:
            return _converse(child, read, size)
        except (OSError, ValueError, KeyError, TypeError):
            return TablePreview(refusal=_DAMAGED_PARQUET)
        finally:
            end.cancel()
            child.kill()


def _parquet_refusal(read: ByteReader, size: int) -> str:
    if size < _SHORTEST_PARQUET:
        return _DAMAGED_PARQUET
    end = read(size - 8, size)
    footer = int.from_bytes(end[:4], "little")
    if end[4:] != _PARQUET_MAGIC or footer > size - _SHORTEST_PARQUET:
        return _DAMAGED_PARQUET
    return "The list of columns is too large to be shown." if footer > MAX_FOOTER_BYTES else ""


def _converse(child: "subprocess.Popen[bytes]", read: ByteReader, size: int) -> TablePreview:
    """Give the program the bytes that it asks for until it answers."""
    if child.stdin is None or child.stdout is None:
        raise OSError
    bytes_left = MAX_FOOTER_BYTES + 2 * MAX_GROUP_BYTES
    while True:
        message = json.loads(child.stdout.readline(_MAX_MESSAGE))
        if "start" not in message:
            return _parquet_table(message)
        start, end = int(message["start"]), int(message["end"])
        bytes_left -= end - start
        if not 0 <= start <= end <= size or bytes_left < 0:
            raise ValueError
        child.stdin.write(read(start, end))
        child.stdin.flush()


def _parquet_table(message: dict[str, Any]) -> TablePreview:
    if "refusal" in message:
        return TablePreview(refusal=message["refusal"])
    columns, rows, count = message["columns"], message["rows"], message["row_count"]
    return TablePreview(
        columns=tuple(TableColumn(name=_cell(name), type=kind) for name, kind in columns),
        rows=tuple(_padded(row, len(columns)) for row in rows),
        row_count=count,
        is_cut=len(rows) < count or len(columns) < message["column_count"],
    )
