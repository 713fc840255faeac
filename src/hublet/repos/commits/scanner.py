"""NDJSON scanner: cuts a body into lines without holding the content of a file in memory.

Of each line everything is buffered except one string, `value.content`: that goes to the sink in
pieces while it arrives, and the line gets an empty string instead. So a line may have gigabytes.
"""

import json
import re
from typing import Protocol

# The longest line, without the content of its file.
LONGEST_LINE = 1 << 16

_OUTSIDE = re.compile(rb'["\n:{}\[\]]')
_INSIDE = re.compile(rb'["\\\n]')
_MARKS = (b'"', b"\\", b"\n")
_NEAR = 256
_WINDOW = 1 << 16
_DEPTH = {b"{": 1, b"[": 1, b"}": -1, b"]": -1}
_VALUE, _CONTENT = b"value", b"content"
# The members of `value` are this deep.
_MEMBERS = 2


class LineTooLong(Exception):
    pass


class BrokenString(Exception):
    """A string that does not end in its line, or that has an escape JSON does not know."""


class ScannerSink(Protocol):
    """Receives the lines, and the content strings in them."""

    def begin_content(self) -> None: ...
    def take_content(self, text: bytes) -> None: ...
    def end_content(self) -> None: ...
    def end_line(self, line: bytes) -> None: ...


class Scanner:
    """State machine with three states: outside of strings, in a string, in the content.

    It tracks strings and depth only; whether a line is valid JSON is for a parser to check.
    """

    def __init__(self, sink: ScannerSink) -> None:
        self._sink = sink
        self._state = self._outside
        # Bytes that wait for more: half an escape sequence.
        self._rest = b""
        self._begin_line()

    def close(self) -> None:
        """Forget everything; its state is a method of its own, so it would wait for a collection."""
        vars(self).clear()

    def _begin_line(self) -> None:
        self._line = bytearray()
        self._depth = 0
        self._keys: dict[int, bytes] = {}
        self._string = b""
        self._begin_of_string = 0
        self._follows_colon = False

    def feed(self, data: bytes) -> None:
        data = self._rest + data
        self._rest = b""
        position = 0
        while position < len(data):
            step = self._state(data, position)
            if step == position:
                self._rest = data[position:]
                return
            position = step

    def finish(self) -> None:
        """End the last line, which needs no line break."""
        if self._rest or self._state != self._outside:
            raise BrokenString
        if self._line.strip():
            self._end_line()

    def _end_line(self) -> None:
        line = bytes(self._line)
        self._begin_line()
        self._sink.end_line(line)

    def _buffer(self, data: bytes) -> None:
        self._line += data
        if len(self._line) > LONGEST_LINE:
            raise LineTooLong

    def _outside(self, data: bytes, position: int) -> int:
        found = _OUTSIDE.search(data, position)
        end = found.end() if found else len(data)
        if found is None or found[0] != b"\n":
            self._buffer(data[position:end])
            if data[position : end - bool(found)].strip():
                # The value is a number or a word, so a string that follows is not the value.
                self._follows_colon = False
        if found is not None:
            self._handle_mark(found[0], data[position : end - 1])
        return end

    def _handle_mark(self, mark: bytes, before: bytes) -> None:
        if mark == b"\n":
            self._buffer(before)
            self._end_line()
        elif mark == b'"':
            self._begin_of_string = len(self._line)
            self._state = self._content if self._is_content() else self._inside
            if self._state == self._content:
                self._sink.begin_content()
        elif mark == b":":
            self._keys[self._depth] = self._string
            self._follows_colon = True
        else:
            self._depth += _DEPTH[mark]
            self._follows_colon = False

    def _is_content(self) -> bool:
        return (
            self._follows_colon
            and self._depth == _MEMBERS
            and self._keys.get(1) == _VALUE
            and self._keys.get(_MEMBERS) == _CONTENT
        )

    def _inside(self, data: bytes, position: int) -> int:
        found = _INSIDE.search(data, position)
        if found is None:
            self._buffer(data[position:])
            return len(data)
        if found[0] == b"\n":
            raise BrokenString
        if found[0] == b"\\":
            if found.end() == len(data):
                # The escaped character has not arrived; only the backslash waits for it.
                self._buffer(data[position : found.start()])
                return found.start()
            self._buffer(data[position : found.end() + 1])
            return found.end() + 1
        self._buffer(data[position : found.end()])
        self._string = bytes(self._line[self._begin_of_string : -1])
        self._follows_colon = False
        self._state = self._outside
        return found.end()

    def _content(self, data: bytes, position: int) -> int:
        end = _next_mark(data, position)
        if end > position:
            self._sink.take_content(data[position:end])
        mark = data[end : end + 1]
        if not mark:
            return end
        if mark == b"\n":
            raise BrokenString
        if mark == b"\\":
            return self._escape(data, end)
        self._buffer(b'"')
        self._follows_colon = False
        self._state = self._outside
        self._sink.end_content()
        return end + 1

    def _escape(self, data: bytes, position: int) -> int:
        """Send one escaped character to the sink; do nothing until all of it has arrived."""
        end = position + (6 if data[position + 1 : position + 2] == b"u" else 2)
        if end > len(data):
            return position
        try:
            character = json.loads(b'"' + data[position:end] + b'"')
        except ValueError:
            raise BrokenString from None
        self._sink.take_content(character.encode(errors="replace"))
        return end


def _next_mark(data: bytes, position: int) -> int:
    """Return where a string may end or an escape begins, or the length of the data.

    The expression is fast for a mark that is near and slow over a large content; there `find` is
    fifty times as fast, in windows, so that no data makes it slow.
    """
    near = _INSIDE.search(data, position, position + _NEAR)
    if near is not None:
        return near.start()
    for start in range(position + _NEAR, len(data), _WINDOW):
        end = nearest = min(start + _WINDOW, len(data))
        for mark in _MARKS:
            found = data.find(mark, start, nearest)
            nearest = nearest if found == -1 else found
        if nearest < end:
            return nearest
    return len(data)
