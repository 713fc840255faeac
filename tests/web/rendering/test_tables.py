"""Previews of tables."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from hublet.web.rendering import tables
from hublet.web.rendering.tables import TablePreview, preview_parquet, preview_table


def preview(name: str, text: str | bytes, *, size: int | None = None) -> TablePreview:
    data = text.encode() if isinstance(text, str) else text
    return preview_table(name, data[: tables.MAX_BYTES], size=size or len(data))


def names_of(table: TablePreview) -> list[str]:
    return [column.name for column in table.columns]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "x,y\n1,2\n"),
        ("a.csv", "x;y\r\n1;2\r\n"),
        ("a.tsv", "x\ty\n1\t2"),
        ("a.csv", '"x","y"\n"1","2"\n'),
        ("a.jsonl", '{"x": 1, "y": 2}\n'),
        ("a.ndjson", '{"x": 1}\n{"y": 2}\n'),
        ("a.csv", b"\xef\xbb\xbfx,y\n1,2"),
    ],
)
def test_the_first_rows_are_shown(name: str, text: str | bytes) -> None:
    table = preview(name, text)
    assert (names_of(table), table.is_cut, table.refusal) == (["x", "y"], False, "")
    assert table.row_count == len(table.rows)
    assert table.rows[0][0] == "1"


def test_quotes_may_hold_separators_and_lines() -> None:
    table = preview("a.csv", 'x,y\n"1,\n2",3\n')
    assert table.rows == (("1,\n2", "3"),)


def test_rows_of_other_lengths_are_filled() -> None:
    table = preview("a.csv", "x,y\n1\n1,2,3\n")
    assert names_of(table) == ["x", "y", ""]
    assert table.rows == (("1", "", ""), ("1", "2", "3"))


def test_cells_are_escaped_and_cut() -> None:
    table = preview("a.csv", f"<b>,y\n\u202e<script>,{'z' * 1_000}\n")
    assert names_of(table)[0] == "&lt;b&gt;"
    assert table.rows[0][0] == '<span class="ctl">U+202E</span>&lt;script&gt;'
    assert table.rows[0][1] == "z" * tables.MAX_CELL_CHARACTERS + "…"


def test_values_of_json_are_written_as_json() -> None:
    values = {"a": None, "b": True, "c": [1, {"d": "é"}], "e": "text", "f": 1.5}
    table = preview("a.jsonl", json.dumps(values))
    assert table.rows == (("", "true", "[1, {&#34;d&#34;: &#34;é&#34;}]", "text", "1.5"),)
    assert names_of(preview("a.jsonl", "1\n[2]\n")) == ["value"]


def test_only_so_many_rows_and_columns_are_shown() -> None:
    table = preview("a.csv", "x\n" + "1\n" * (tables.MAX_ROWS + 1))
    assert (len(table.rows), table.is_cut, table.row_count) == (tables.MAX_ROWS, True, None)
    wide = preview("a.csv", ",".join(["x"] * 500) + "\n")
    assert (len(wide.columns), wide.is_cut) == (tables.MAX_COLUMNS, True)
    assert len(preview("a.jsonl", "{}\n" * 500).rows) == tables.MAX_ROWS


def test_what_was_cut_in_the_middle_is_left_out() -> None:
    row = "1" * 9_999 + ",2\n"
    table = preview("a.csv", "x,y\n" + row * 100)
    assert table.is_cut
    assert {cells[1] for cells in table.rows} == {"2"}
    lines = preview("a.jsonl", '{"x": "%s"}\n' % ("1" * 9_999) * 100)
    assert (lines.refusal, lines.is_cut) == ("", True)


@pytest.mark.parametrize(
    ("name", "text", "refusal"),
    [
        ("a.csv", "", "There are no rows at the start of this file."),
        ("a.csv", "\n\n", "There are no rows at the start of this file."),
        ("a.csv", "x" * 1_000_000, "There are no rows at the start of this file."),
        ("a.csv", 'x\n"' + "1" * 140_000, "This file is no table"),
        ("a.jsonl", '{"x": 1}\nnope\n', "Row 2 is no JSON."),
        ("a.jsonl", "[" * 100_000, "Row 1 is no JSON."),
        ("a.jsonl", "1" * 5_000, "Row 1 is no JSON."),
    ],
)
def test_what_is_no_table_is_refused_with_a_sentence(name: str, text: str, refusal: str) -> None:
    found = preview(name, text)
    assert found.refusal.startswith(refusal)
    assert found.rows == ()


def test_bytes_that_are_no_text_do_no_harm() -> None:
    for name in ("a.csv", "a.tsv", "a.jsonl"):
        preview(name, bytes(range(256)) * 10)


class CountedFile:
    """Reads ranges of bytes, and counts them."""

    def __init__(self, data: bytes) -> None:
        self.data, self.count = data, 0

    def __call__(self, start: int, end: int) -> bytes:
        self.count += end - start
        return self.data[start:end]


def parquet(columns: dict[str, list[Any]], **options: Any) -> bytes:
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet as format_  # noqa: PLC0415 - an extra

    buffer = io.BytesIO()
    format_.write_table(arrow.table(columns), buffer, **options)
    return buffer.getvalue()


def test_parquet_shows_types_the_number_of_rows_and_the_first_of_them() -> None:
    data = parquet({"x": list(range(1_000)), "y": ["<b>"] * 1_000, "z": [b"1234"] * 1_000})
    table = preview_parquet(CountedFile(data), size=len(data))
    assert [(column.name, column.type) for column in table.columns] == [
        ("x", "int64"),
        ("y", "string"),
        ("z", "binary"),
    ]
    assert (table.row_count, len(table.rows), table.is_cut) == (1_000, tables.MAX_ROWS, True)
    assert table.rows[1] == ("1", "&lt;b&gt;", "4 bytes")


def test_of_a_large_group_only_the_columns_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    data = parquet({"x": [str(number) for number in range(50_000)]}, use_dictionary=False)
    monkeypatch.setattr(tables, "MAX_GROUP_BYTES", 10_000)
    read = CountedFile(data)
    table = preview_parquet(read, size=len(data))
    assert (table.rows, table.row_count, table.is_cut) == ((), 50_000, True)
    assert read.count < len(data)


def test_an_empty_parquet_file_has_columns() -> None:
    data = parquet({"x": []})
    table = preview_parquet(CountedFile(data), size=len(data))
    assert (names_of(table), table.rows, table.row_count) == (["x"], (), 0)


def flipped(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 0x55]) + data[position + 1 :]


def test_a_damaged_parquet_file_is_refused_with_a_sentence() -> None:
    data = parquet({"x": [1, 2, 3], "y": ["a", "b", "c"]})
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    # Some of these end the process that reads them.
    damaged = [flipped(data, position) for position in range(footer, len(data) - 8, 97)]
    for broken in [data[:40] + b"\xff" * 40 + data[80:], *damaged]:
        found = preview_parquet(CountedFile(broken), size=len(broken))
        assert found.refusal in {"", "This Parquet file is damaged."}


def test_a_program_that_ends_is_a_damaged_file(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"PAR1" * 9 + bytes(4) + b"PAR1"
    for program in ("import os; os.abort()", "print('[]')", 'print(\'{"start": 0, "end": 99}\')'):
        monkeypatch.setattr(tables.parquet_program, "__file__", "-c" + program)
        found = preview_parquet(CountedFile(data), size=len(data))
        assert found.refusal == "This Parquet file is damaged."


@pytest.mark.parametrize(
    "data",
    [b"", b"PAR1", b"x" * 99, b"x" * 90 + b"\xff\xff\xff\x7fPAR1", b"PAR1" + bytes(8) + b"PAR2"],
)
def test_what_is_no_parquet_file_is_refused_without_a_process(
    data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables.subprocess, "Popen", None)
    found = preview_parquet(CountedFile(data), size=len(data))
    assert found.refusal == "This Parquet file is damaged."


def test_without_the_library_the_page_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"PAR1" * 9 + bytes(4) + b"PAR1"
    monkeypatch.setattr(tables.sys, "path", [])
    monkeypatch.setattr(tables.sys, "executable", _bare_python())
    found = preview_parquet(CountedFile(data), size=len(data))
    assert found.refusal == "Tables of Parquet files need the hub's extra `preview`."


def _bare_python() -> str:
    """The interpreter itself, without the environment that the libraries are in."""
    return str(Path(sys.executable).resolve())
