"""Program that reads the start of a Parquet file, in a process of its own.

A damaged file can end the process that reads it, and no exception tells. The program asks for ranges
of bytes by lines of JSON on its output, gets the bytes on its input, and answers with one line. It
imports nothing of the hub.
"""

import io
import json
import resource
import sys
from importlib.util import find_spec
from itertools import islice
from typing import Any

MAX_SECONDS = 20
_MAX_MEMORY = 4 << 30
_MAX_FOOTER_STRINGS = 16 << 20
_MAX_FOOTER_ITEMS = 1_000_000


def cell_text(value: Any, most: int) -> str:
    """Return a value of a table as people read it."""
    if value is None:
        return ""
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    if isinstance(value, dict | list | bool):
        text = json.dumps(value, ensure_ascii=False, default=lambda inner: cell_text(inner, most))
    else:
        text = str(value)
    # One more, so that somebody sees that it is too long.
    return text[: most + 1]


class RangeFile(io.RawIOBase):
    """File whose bytes the parent reads."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size, self._position = size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(start + offset, 0)
        return self._position

    def read(self, count: int | None = -1, /) -> bytes:
        end = self._size if count is None or count < 0 else self._position + count
        end = min(end, self._size)
        if end <= self._position:
            return b""
        _write({"start": self._position, "end": end})
        data = sys.stdin.buffer.read(end - self._position)
        self._position += len(data)
        return data


def _write(message: dict[str, Any]) -> None:
    sys.stdout.write(f"{json.dumps(message)}\n")
    sys.stdout.flush()


def _preview(size: int, rows: int, columns: int, most: int, largest_group: int) -> dict[str, Any]:
    from pyarrow.parquet import ParquetFile  # noqa: PLC0415 - absent without the extra

    file = ParquetFile(
        RangeFile(size),
        thrift_string_size_limit=_MAX_FOOTER_STRINGS,
        thrift_container_size_limit=_MAX_FOOTER_ITEMS,
    )
    fields = list(file.schema_arrow)
    names = [field.name for field in fields[:columns]]
    found: list[list[str]] = []
    if file.metadata.num_row_groups and _group_bytes(file) <= largest_group:
        batches = file.iter_batches(
            batch_size=rows, row_groups=[0], columns=names, use_threads=False
        )
        for batch in islice(batches, 1):
            cells = [[cell_text(value, most) for value in part.to_pylist()] for part in batch]
            found = [list(row) for row in zip(*cells, strict=True)]
    return {
        "columns": [[field.name, str(field.type)[:100]] for field in fields[:columns]],
        "rows": found,
        "row_count": file.metadata.num_rows,
        "column_count": len(fields),
    }


def _group_bytes(file: Any) -> int:
    group = file.metadata.row_group(0)
    packed = sum(group.column(number).total_compressed_size for number in range(group.num_columns))
    return int(max(group.total_byte_size, packed))


def main() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_SECONDS, MAX_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY, _MAX_MEMORY))
    if find_spec("pyarrow") is None:
        _write({"refusal": "Tables of Parquet files need the hub's extra `preview`."})
        return
    size, rows, columns, most, largest_group = map(int, sys.argv[1:])
    _write(_preview(size, rows, columns, most, largest_group))


if __name__ == "__main__":
    main()
