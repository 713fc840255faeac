"""Program that answers one order over files with DuckDB, in a locked-down process of its own.

It imports nothing of the hub. `launch` becomes another user, enters bubblewrap and executes this file
again; `answer` limits itself, locks DuckDB (decision 0084) and writes frames to its output: one letter,
four bytes of length, and so many bytes.
"""

import datetime as dt
import json
import os
import resource
import signal
import sys
import threading
import time
import types
from collections.abc import Callable
from typing import Any

if __package__:
    from hublet.sql import statistics_program
    from hublet.sql.statistics_program import quote_name, quote_text
else:
    # Executed as a program, beside this module alone.
    sys.path.append(sys.argv[0].rpartition("/")[0])
    import statistics_program  # type: ignore[no-redef, import-not-found]
    from statistics_program import quote_name, quote_text  # type: ignore[no-redef]

# Frames: the columns, rows, a JSON document, bytes of a file, the end, and an error.
COLUMNS, ROWS, DOCUMENT, BYTES, END, ERROR = b"C", b"R", b"J", b"B", b"E", b"X"

_ROWS_PER_FETCH = 500
_FRAME_BYTES = 1 << 16
_LONGEST_MESSAGE = 2000
_OPEN_FILES = 1024
# What Python, DuckDB and strings that its own limit does not count take beside that limit.
_MEMORY_BESIDE = 1536 << 20


def launch() -> None:
    """Become the user of this query, enter the sandbox, and execute the program in it."""
    order = json.loads(sys.argv[2])
    sys.path.append(order["runtime"])
    from shim.child import (  # type: ignore[import-not-found]  # noqa: PLC0415
        drop_privileges,
        enter_mount_namespace,
        memory_file,
        stage_mounts,
    )
    from shim.system import call  # type: ignore[import-not-found]  # noqa: PLC0415

    parent = os.getppid()
    if order["stage"]:
        enter_mount_namespace(is_root=True)
        stage_mounts(order["stage"])
    if order["user"]:
        drop_privileges(order["user"])
    # The kernel ends this process with the hub, which may have ended before this call.
    call("prctl", 1, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
    argv = order["argv"]
    if order["options"]:
        words = ["--args", memory_file("\0".join(order["options"]).encode() + b"\0")]
        if order["filter"]:
            words += ["--seccomp", memory_file(bytes.fromhex(order["filter"]))]
        argv = [order["bubblewrap"], *words, "--", *argv]
    os.execve(argv[0], argv, {})  # noqa: S606 - bubblewrap, or this very interpreter


def answer() -> None:
    order = json.loads(sys.stdin.buffer.read())
    _limit_resources(order)
    sys.path += order["packages"]
    _add_time_zones()
    os.environ["ARROW_DEFAULT_MEMORY_POOL"] = "system"
    try:
        import duckdb  # noqa: PLC0415 - absent without the extra

        if order["task"] == "parquet" or order["format"] == "arrow":
            # All before another user takes over, who may not be able to read it.
            from pyarrow import ipc, parquet  # noqa: F401, PLC0415
        if order["user"] is not None:
            _restrict(order["user"])
        _run(duckdb, order)
    except MemoryError:
        _refuse("memory", "The query needs more memory than it may have.")
    except ImportError as error:
        _refuse("missing", str(error.name))
    sys.stdout.flush()
    # The end of an interpreter with DuckDB takes longer than many a query.
    os._exit(0)


def _limit_resources(order: dict[str, Any]) -> None:
    seconds = int(order["deadline"] - time.monotonic()) + 3
    memory = order["memory"] + _MEMORY_BESIDE
    for name, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, min(_OPEN_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1])),
        (resource.RLIMIT_CPU, max(seconds, 1)),
        (resource.RLIMIT_AS, memory),
    ):
        resource.setrlimit(name, (most, most))


class _Utc(dt.tzinfo):
    def utcoffset(self, _: dt.datetime | None) -> dt.timedelta:
        return dt.timedelta()

    def dst(self, _: dt.datetime | None) -> dt.timedelta:
        return dt.timedelta()

    def tzname(self, _: dt.datetime | None) -> str:
        return "UTC"

    def localize(self, moment: dt.datetime) -> dt.datetime:
        return moment.replace(tzinfo=dt.UTC)


def _add_time_zones() -> None:
    """Give DuckDB the one zone that it is set to: it imports pytz for times with a zone."""
    zones = types.ModuleType("pytz")
    zones.__dict__.update(timezone=lambda _: _Utc(), utc=_Utc())
    sys.modules["pytz"] = zones


def _restrict(user: int) -> None:
    """Become another user, if this one is root, and end with the hub: there is no sandbox around."""
    import ctypes  # noqa: PLC0415 - only needed here

    parent = os.getppid()
    if user:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    libc = ctypes.CDLL(None)
    # PR_SET_PDEATHSIG; PR_SET_NO_NEW_PRIVS.
    if libc.prctl(1, signal.SIGKILL, 0, 0, 0) or libc.prctl(38, 1, 0, 0, 0):
        os._exit(1)
    if os.getppid() != parent or parent == 1:
        os._exit(1)


def _run(duckdb: Any, order: dict[str, Any]) -> None:
    connection = duckdb.connect()
    seconds = max(order["deadline"] - time.monotonic(), 0.01)
    timer = threading.Timer(seconds, connection.interrupt)
    timer.daemon = True
    timer.start()
    task: Callable[[Any, dict[str, Any]], None] = {
        "query": _query,
        "schema": _describe,
        "statistics": _statistics,
        "parquet": _convert,
    }[order["task"]]
    try:
        _lock(connection, order)
        _create_views(connection, order["views"])
        task(connection, order)
    except duckdb.InterruptException:
        _refuse("deadline", "The query was stopped: it took longer than it may.")
    except duckdb.OutOfMemoryException:
        _refuse("memory", "The query needs more memory than it may have.")
    except (duckdb.Error, UnicodeError, ValueError, OverflowError) as error:
        text = str(error)
        _refuse("memory" if "bad_alloc" in text else "invalid", text[:_LONGEST_MESSAGE])


def _lock(connection: Any, order: dict[str, Any]) -> None:
    paths = [path for view in order["views"] for path in view["paths"]]
    for statement in (
        "SET threads = 1",
        f"SET memory_limit = '{int(order['memory'])}B'",
        "SET TimeZone = 'UTC'",
        "SET autoinstall_known_extensions = false",
        "SET autoload_known_extensions = false",
        "SET allow_community_extensions = false",
        "SET allow_persistent_secrets = false",
        "SET python_enable_replacements = false",
        "SET temp_directory = ''",
        f"SET allowed_paths = [{', '.join(map(quote_text, paths))}]",
        "SET enable_external_access = false",
        "SET lock_configuration = true",
    ):
        connection.execute(statement)


# Compressions are named: a descriptor has no name that would tell.
_COMPRESSIONS = {"": "none", "gz": "gzip", "zst": "zstd"}
_READERS = {
    "parquet": "read_parquet({}, union_by_name = true)",
    "csv": "read_csv({}, union_by_name = true, compression = '{}')",
    "tsv": "read_csv({}, union_by_name = true, compression = '{}', delim = '\t')",
    "json": "read_json({}, union_by_name = true, compression = '{}')",
    "jsonl": "read_json({}, union_by_name = true, compression = '{}', format = 'newline_delimited')",
}


def _create_views(connection: Any, views: list[dict[str, Any]]) -> None:
    for view in views:
        kind, _, compression = view["format"].partition(".")
        paths = f"[{', '.join(map(quote_text, view['paths']))}]"
        source = _READERS[kind].format(paths, _COMPRESSIONS[compression])
        connection.execute(f"CREATE VIEW {quote_name(view['name'])} AS SELECT * FROM {source}")  # noqa: S608


def _only_select(connection: Any, sql: str) -> Any:
    """Return the statement, which must be the only one and change nothing."""
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        raise ValueError(f"sql must be exactly one statement, not {len(statements)}.")
    kind = statements[0].type.name
    if kind not in {"SELECT", "EXPLAIN"}:
        raise ValueError(f"sql must be a SELECT: {kind} statements are not run here.")
    return statements[0]


def _query(connection: Any, order: dict[str, Any]) -> None:
    statement = _only_select(connection, order["sql"])
    if order["format"] == "arrow":
        _send_arrow(connection.sql(statement), order)
        return
    cursor = connection.execute(statement)
    _send_columns(cursor.description)
    _send_rows(cursor, order)


def _send_columns(description: Any) -> None:
    _send(COLUMNS, _json([{"name": each[0], "type": str(each[1])} for each in description]))


def _send_rows(cursor: Any, order: dict[str, Any]) -> None:
    left, bytes_left, count = order["rows"], order["bytes"], 0
    head, tail = (b'{"row":', b"}\n") if order["format"] == "ndjson" else (b"", b"")
    cut = ""
    parts = list[bytes]()
    while not cut and (rows := cursor.fetchmany(min(_ROWS_PER_FETCH, left - count + 1))):
        for row in rows:
            data = head + _json(row) + tail
            bytes_left -= len(data) + 1
            if count == left or bytes_left < 0:
                cut = "rows" if count == left else "bytes"
                break
            # Rows of one JSON document are parts of a list.
            parts.append(data if head or not count else b",\n" + data)
            count += 1
        if cut or sum(map(len, parts)) >= _FRAME_BYTES:
            _send(ROWS, b"".join(parts))
            parts.clear()
    if parts:
        _send(ROWS, b"".join(parts))
    _send(END, _json({"rows": count, "cut": cut}))


def _send_arrow(relation: Any, order: dict[str, Any]) -> None:
    import pyarrow as pa  # noqa: PLC0415 - absent without the extra `preview`

    reader = relation.to_arrow_reader(_ROWS_PER_FETCH)
    _send_columns(relation.description)
    sink = _FrameFile(ROWS, most=None)
    left, bytes_left, count, cut = order["rows"], order["bytes"], 0, ""
    with pa.ipc.new_stream(sink, reader.schema) as writer:
        for batch in reader:
            bytes_left -= batch.nbytes
            if count + batch.num_rows > left or bytes_left < 0:
                cut = "bytes" if bytes_left < 0 else "rows"
                batch = batch.slice(0, 0 if bytes_left < 0 else left - count)  # noqa: PLW2901
            writer.write_batch(batch)
            count += batch.num_rows
            if cut:
                break
        if cut:
            # Who reads batch by batch finds here that there are more rows.
            nothing = pa.RecordBatch.from_pylist([], schema=reader.schema)
            writer.write_batch(nothing, custom_metadata={"truncated": cut})
    sink.flush()
    _send(END, _json({"rows": count, "cut": cut}))


class _FrameFile:
    """File that only grows, whose bytes are sent as frames."""

    closed = False

    def __init__(self, kind: bytes, *, most: int | None) -> None:
        self._kind, self._most, self._size = kind, most, 0
        self._waiting = bytearray()

    def write(self, data: Any) -> int:
        piece = bytes(data)
        self._size += len(piece)
        if self._most is not None and self._size > self._most:
            raise ValueError("The Parquet file would be larger than it may be.")
        self._waiting += piece
        if len(self._waiting) >= _FRAME_BYTES:
            self.flush()
        return len(piece)

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        if self._waiting:
            _send(self._kind, self._waiting)
            self._waiting.clear()

    def close(self) -> None:
        self.flush()

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False


def _convert(connection: Any, order: dict[str, Any]) -> None:
    """Send the rows of the one view as a Parquet file."""
    from pyarrow import parquet  # type: ignore[import-untyped,unused-ignore]  # noqa: PLC0415

    view = quote_name(order["views"][0]["name"])
    reader = connection.sql(f"SELECT * FROM {view}").to_arrow_reader(50_000)  # noqa: S608
    sink = _FrameFile(BYTES, most=order["bytes"])
    rows = 0
    with parquet.ParquetWriter(sink, reader.schema, compression="zstd") as writer:
        for batch in reader:
            writer.write_batch(batch)
            rows += batch.num_rows
    sink.flush()
    _send(END, _json({"rows": rows, "cut": ""}))


def _statistics(connection: Any, order: dict[str, Any]) -> None:
    found = statistics_program.compute(connection, order["views"][0]["name"])
    _send(DOCUMENT, _json(found))
    _send(END, _json({"rows": found["rows"], "cut": ""}))


def _describe(connection: Any, order: dict[str, Any]) -> None:
    found = {}
    for view in order["views"]:
        cursor = connection.execute(f"SELECT * FROM {quote_name(view['name'])} LIMIT 0")  # noqa: S608
        found[view["name"]] = [
            {"name": each[0], "type": str(each[1])} for each in cursor.description
        ]
    _send(DOCUMENT, _json(found))
    _send(END, _json({"rows": 0, "cut": ""}))


def _json(value: Any) -> bytes:
    import msgspec  # noqa: PLC0415 - found once the path is set

    return msgspec.json.encode(value, enc_hook=str)


def _refuse(kind: str, message: str) -> None:
    _send(ERROR, json.dumps({"kind": kind, "message": message}).encode())


def _send(kind: bytes, data: Any) -> None:
    sys.stdout.buffer.write(kind + len(data).to_bytes(4, "big"))
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    launch() if sys.argv[1] == "launch" else answer()
