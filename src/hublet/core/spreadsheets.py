"""CSV for spreadsheets: rows as text in which no value is read as a formula."""

import csv
import io
from collections.abc import Iterable, Sequence

MEDIA_TYPE = "text/csv"
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def write_rows(rows: Iterable[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows([_inert(value) for value in row] for row in rows)
    return text.getvalue()


def _inert(value: str) -> str:
    """Keep spreadsheets from reading a name as a formula."""
    return f"'{value}" if value.startswith(_FORMULA_STARTS) else value
