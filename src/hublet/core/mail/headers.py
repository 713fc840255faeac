"""Mail header encoder for what people wrote (RFC 5322, RFC 2047).

Text that a mail program could take for anything but itself becomes encoded words; Python's own
header objects would decode what looks like one and write its line breaks. It needs nothing but
the standard library, so that tests can run it on any Python.
"""

import base64
import re

# Longer subjects help nobody, and each character may take twelve bytes in a header.
_MAX_LINE = 250
# An encoded word of so many bytes fits into a line of 76, after the longest name of a header.
_MAX_WORD_BYTES = 39

_PRINTABLE = re.compile(r"[ -~]*")
# Atoms with single blanks between them need no quotes.
_PHRASE = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~ -]*")
_ADDRESS = re.compile(r"[^\s\x00-\x20\x7f-\U0010ffff\"(),:;<>@\[\\\]]+@[A-Za-z0-9.:\[\]-]+")
_WORD_START = "=?"


def one_line(text: str) -> str:
    """Return the text fit for a header: one line, printable, not too long."""
    visible = "".join(each if each.isprintable() else " " for each in text)
    line = " ".join(visible.split())
    return line if len(line) <= _MAX_LINE else line[: _MAX_LINE - 1].rstrip() + "…"


def header(name: str, value: str) -> bytes:
    """Return the line of a header whose value is ours, in one piece; raise ValueError."""
    if not _PRINTABLE.fullmatch(value):
        raise ValueError(f"The mail header {name} must be one line of printable ASCII.")
    return f"{name}: {value}\r\n".encode("ascii")


def text_header(name: str, text: str) -> bytes:
    """Return the lines of a header that shows text of people."""
    line = one_line(text)
    is_plain = _PRINTABLE.fullmatch(line) is not None and _WORD_START not in line
    value = line if is_plain else _encoded_words(line)
    return f"{name}: {value}\r\n".encode("ascii")


def address_header(name: str, display_name: str, address: str) -> bytes:
    """Return the lines of a header with one address, named by people; raise ValueError."""
    if not _ADDRESS.fullmatch(address):
        raise ValueError(f"The mail header {name} must be an address.")
    line = one_line(display_name)
    if not line:
        return f"{name}: {address}\r\n".encode("ascii")
    is_plain = _PHRASE.fullmatch(line) is not None and _WORD_START not in line
    phrase = line if is_plain else _encoded_words(line)
    return f"{name}: {phrase}\r\n <{address}>\r\n".encode("ascii")


def _encoded_words(line: str) -> str:
    words = (base64.b64encode(part).decode("ascii") for part in _parts(line))
    return "\r\n ".join(f"=?utf-8?b?{word}?=" for word in words)


def _parts(line: str) -> list[bytes]:
    """Return the text in parts of whole characters."""
    parts = [b""]
    for character in line:
        encoded = character.encode()
        if len(parts[-1]) + len(encoded) > _MAX_WORD_BYTES:
            parts.append(b"")
        parts[-1] += encoded
    return parts
