"""Log lines of a test's hub for people: time, level, event and fields, as many as can be read."""

import json
from typing import Any

# In the report of a test that failed; `hub.log` has all of it.
MAX_LINES = 100
MAX_LINE_CHARACTERS = 400
_HEAD = ("timestamp", "level", "logger", "event", "exception")


def readable_log(log: str) -> str:
    """Return the last lines of a log, each as `time level event key=value …`."""
    lines = log.splitlines()
    left_out = len(lines) - MAX_LINES
    readable = [_readable_line(line) for line in lines[-MAX_LINES:]]
    if left_out > 0:
        readable.insert(0, f"({left_out} earlier lines are left out; hub.log has them)")
    return "\n".join(readable)


def _readable_line(line: str) -> str:
    try:
        record = json.loads(line)
    except ValueError:
        return _cut(line)
    if not isinstance(record, dict) or "event" not in record:
        return _cut(line)
    # A traceback is worth its lines.
    exception = record.get("exception")
    return _cut(_fields(record)) + (f"\n{exception}" if exception else "")


def _fields(record: dict[str, Any]) -> str:
    # Of the time without the day: a test does not last longer.
    time = str(record.get("timestamp", "")).partition("T")[2].removesuffix("Z")[:12]
    pairs = (f"{key}={_value(record[key])}" for key in record if key not in _HEAD)
    return " ".join([time, str(record.get("level", "")), str(record["event"]), *pairs])


def _value(value: object) -> str:
    """Return a word as it is, and anything else as JSON."""
    if isinstance(value, str) and value.isprintable() and value and " " not in value:
        return value
    return json.dumps(value, ensure_ascii=False)


def _cut(line: str) -> str:
    if len(line) <= MAX_LINE_CHARACTERS:
        return line
    return f"{line[:MAX_LINE_CHARACTERS]}…"
