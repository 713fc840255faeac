"""Lines of a log become events. The same line is the same bytes in every answer."""

from functools import lru_cache
from json.encoder import encode_basestring_ascii

from hublet.core.clock import wire

_SECOND = 1_000_000
# Until the year 2286.
_LONGEST_STAMP = 16


def events_of(lines: bytes) -> str:
    """Return one server-sent event for each line; the last newline ends a line, it begins none."""
    found = lines.split(b"\n")
    if not found[-1]:
        found.pop()
    return "".join(map(_event, found))


def _event(line: bytes) -> str:
    stamp, _, text = line.partition(b" ")
    # Only ASCII: there are more ends of a line in Unicode than in JSON, and the public client
    # takes each of them as the end of an event.
    data = encode_basestring_ascii(text.decode(errors="replace"))
    return f'data: {{"data":{data},"timestamp":"{_time(stamp)}"}}\n\n'


def _time(stamp: bytes) -> str:
    """Write a time to the microsecond: the client finds its place again by text and time."""
    # A machine that lost power may leave a broken line; it must not hide those after it.
    moment = int(stamp) if stamp.isdigit() and len(stamp) <= _LONGEST_STAMP else 0
    second, fraction = divmod(moment, _SECOND)
    return f"{_until_second(second)}.{fraction:06d}Z"


@lru_cache(maxsize=64)
def _until_second(second: int) -> str:
    return wire(second * _SECOND).removesuffix(".000Z")
