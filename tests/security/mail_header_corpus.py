"""Corpus of hostile texts for mail headers, and a check of each; a program of its own.

`python mail_header_corpus.py HEADERS` checks the encoder in that file with the Python that runs it
and prints what went wrong. It needs the standard library alone.
"""

import importlib.util
import sys
from collections.abc import Iterator
from email import message_from_bytes, policy
from email.header import decode_header, make_header
from types import ModuleType

_INJECTED = ("Reply-To: eve@example.com", "Bcc: eve@example.com", "\r\nbody", "X-Evil: 1")
_BREAKS = (
    "\n", "\r", "\r\n", "\n ", "\r\n\t", "\x00", "\x0b", "\x0c", "\x1b", "\x1c", "\x1d", "\x1e",
    "\x7f", "\x85", "\x9b", "\u2028", "\u2029", "\u202e", "\ud800",
)  # fmt: skip
_ENCODED_BREAKS = ("=0A", "=0D=0A", "=0d=0a=20", "=00", "=E2=80=A8")
_CHARSETS = ("utf-8", "UTF-8", "us-ascii", "iso-8859-1", "utf-16", "utf-7", "unknown-8bit", "x*en")
_ODD = (
    "=?", "?=", "=??=", "=?utf-8?", "=?utf-8?q??=", "=?utf-8?b?!?=", "=?utf-8?x?a?=", "=?=?=?=",
    "=?utf-8?q?a", '"', '\\"', '" <eve@example.com>', "<eve@example.com>", "a <b", "eve@example.com,",
    "Eve <eve@example.com>, Ada", "(comment)", "group: eve@example.com;", ",", ";", ":", "@", "\\",
    "\\\\", "'", "`", "[x]", "a\tb", " a ", "=", "==", "=20", "_", "?", ".", "..", "é", "Grüße",
    "🚀" * 60, "é" * 300, "x" * 300, "x " * 200, "a=?b", "\u200d", "\ufeff", "e\u0301", "日本語",
)  # fmt: skip


def corpus() -> list[str]:
    return list(dict.fromkeys(_texts()))


def _texts() -> Iterator[str]:
    for line_break in _BREAKS:
        for injected in _INJECTED:
            yield f"Hello{line_break}{injected}"
    for charset in _CHARSETS:
        for line_break in _ENCODED_BREAKS:
            yield f"=?{charset}?q?Hello{line_break}Reply-To:_eve@example.com?="
            yield f"a =?{charset}?Q?{line_break}?= b"
        # `Hello\nBcc: eve@example.com` in base64, alone and in two words.
        yield f"=?{charset}?b?SGVsbG8KQmNjOiBldmVAZXhhbXBsZS5jb20=?="
        yield f"=?{charset}?B?SGVsbG8K?= =?{charset}?B?QmNjOiBldmVAZXhhbXBsZS5jb20=?="
        yield f'"=?{charset}?q?=22?=" <eve@example.com>'
    for odd in _ODD:
        yield odd
        yield f"a{odd}b\r\nBcc: eve@example.com"


def problems(headers: ModuleType, text: str) -> list[str]:
    """Return what a mail program would make of the text beside showing it."""
    content = (
        headers.address_header("From", text, "hub@hub.test")
        + headers.address_header("To", text, "ada@example.com")
        + headers.text_header("Subject", text)
        + b"\r\nThe body.\r\n"
    )
    return [*_raw_problems(content), *_parsed_problems(headers, text, content)]


def _raw_problems(content: bytes) -> Iterator[str]:
    head = content.partition(b"\r\n\r\n")[0]
    lines = head.split(b"\r\n")
    if not all(32 <= byte < 127 for line in lines for byte in line):
        yield "A line is not printable ASCII."
    if any(len(line) > 300 for line in lines):
        yield "A line is too long."
    if [line[:1] for line in lines].count(b" ") + 3 != len(lines):
        yield "A line is neither a header of ours nor the rest of one."


def _parsed_problems(headers: ModuleType, text: str, content: bytes) -> Iterator[str]:
    line = headers.one_line(text)
    new = message_from_bytes(content, policy=policy.default)
    old = message_from_bytes(content, policy=policy.compat32)
    for message in (new, old):
        if message.keys() != ["From", "To", "Subject"]:
            yield f"There are other headers: {message.keys()}."
        if message.get_payload() != "The body.\r\n":
            yield "There is another body."
    if str(new["Subject"]) != line or str(make_header(decode_header(old["Subject"]))) != line:
        yield f"The subject is {str(new['Subject'])!r}."
    for name, address in (("From", "hub@hub.test"), ("To", "ada@example.com")):
        # Python shows a blank between the encoded words of a name, against RFC 2047.
        shown = [
            (each.display_name.replace(" ", ""), each.addr_spec) for each in new[name].addresses
        ]
        if shown != [(line.replace(" ", ""), address)]:
            yield f"{name} is {shown}."


def main() -> None:
    specification = importlib.util.spec_from_file_location("headers", sys.argv[1])
    assert specification is not None
    assert specification.loader is not None
    headers = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(headers)
    found = [f"{text!r}: {problem}" for text in corpus() for problem in problems(headers, text)]
    sys.stdout.write(("\n".join(found) or f"{len(corpus())} texts are harmless") + "\n")


if __name__ == "__main__":
    main()
