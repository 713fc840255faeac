"""Parser of mentions, `@name`, and of references to threads, `#12`; not inside code or addresses.

Every step takes time linear in the text, so that no text can keep the hub busy.
"""

import re
from collections.abc import Iterator
from itertools import islice

# A limit on the notifications that one text can cause.
MAX_MENTIONS = 50
# And on the timelines in which it leaves an entry.
MAX_REFERENCES = 20

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_TICKS = re.compile("`+")
_HTML_CODE = re.compile(r"</?(?:code|pre)\b[^<>]{0,200}>", re.IGNORECASE)

MENTION = re.compile(
    # Not in the middle of a word, an e-mail address, a path, or behind a backslash.
    r"(?<![\w.+\-/@\\#=&])@"
    r"(?P<name>[A-Za-z0-9](?:-?[A-Za-z0-9]){1,41})"
    # Not `@scope/package`, `@example.com`, `@user@host`, nor the start of a longer word.
    r"(?![\w@]|-\w|[./]\w)"
)


# `#12` in the same repository, `ada/engine#12` or `datasets/ada/numbers#12` in another one.
REFERENCE = re.compile(
    r"(?<![\w&;/#\-])"
    r"(?P<repo>(?:(?:datasets|spaces|kernels|buckets|containers)/)?"
    r"[A-Za-z0-9][\w.\-]{0,95}/[A-Za-z0-9][\w.\-]{0,95})?"
    r"#(?P<number>[1-9][0-9]{0,8})(?![\w\-])"
)


def referenced_threads(text: str) -> dict[str, list[int]]:
    """Return the numbers of the threads that a text names, by repository; "" is its own one."""
    found: dict[str, list[int]] = {}
    for match in islice(REFERENCE.finditer(_prose_of(text)), MAX_REFERENCES):
        found.setdefault(match["repo"] or "", []).append(int(match["number"]))
    return found


def mentioned_names(text: str) -> list[str]:
    """Return each name that is mentioned, once, in the order of appearance, in lower case."""
    prose = _prose_of(text)
    names = dict.fromkeys(match["name"].lower() for match in MENTION.finditer(prose))
    return list(names)[:MAX_MENTIONS]


def _prose_of(text: str) -> str:
    """Return a text without its code."""
    return _strip_html_code(_strip_code_spans("\n".join(_prose_lines(text))))


def _prose_lines(text: str) -> Iterator[str]:
    """Skip fenced blocks (an unclosed one to the end of the text) and indented blocks."""
    fence, indented, after_blank = "", False, True
    for line in text.splitlines():
        match = _FENCE.match(line)
        if fence:
            closes = match and match[1].startswith(fence) and not match[2].strip()
            fence = "" if closes else fence
            continue
        if match and not (match[1][0] == "`" and "`" in match[2]):
            fence = match[1]
            continue
        indented = line.startswith(("    ", "\t")) and (after_blank or indented)
        after_blank = not line.strip()
        # An empty line still separates the text before the block from the text after it.
        yield "" if indented else line


def _strip_code_spans(text: str) -> str:
    """Remove code spans, which end with exactly as many backticks as they begin with."""
    runs = list(_TICKS.finditer(text))
    later: dict[int, list[int]] = {}
    for index in range(len(runs) - 1, -1, -1):
        later.setdefault(len(runs[index][0]), []).append(index)
    parts, position, index = [], 0, 0
    while index < len(runs):
        same = later[len(runs[index][0])]
        while same and same[-1] <= index:
            same.pop()
        if same:
            parts.append(text[position : runs[index].start()])
            index = same.pop()
            position = runs[index].end()
        index += 1
    return "`".join([*parts, text[position:]])


def _strip_html_code(text: str) -> str:
    parts, position, depth = [], 0, 0
    for tag in _HTML_CODE.finditer(text):
        if depth == 0:
            parts.append(text[position : tag.start()])
        depth = max(depth - 1, 0) if tag[0].startswith("</") else depth + 1
        position = tag.end()
    return " ".join([*parts, text[position:] if depth == 0 else ""])
