"""Log of a job on its page: the end, a range or what a search finds, as lines in chunks."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from datetime import UTC
from functools import lru_cache
from urllib.parse import urlencode

from markupsafe import Markup

from hublet.core.clock import from_micros
from hublet.core.dataclasses import dataclass
from hublet.core.pages import bytes_text
from hublet.jobs.logs.lines import LogLine, LogLines, LogRange, read_new
from hublet.jobs.logs.source import JobLog, size_of
from hublet.jobs.records import JobRecord, Stage
from hublet.web.jobs.job_views import NOTICE
from hublet.web.rendering import ansi

# What a page has at first, and at most: a browser lays out so many without a pause.
SHOWN_LINES = 1000
MOST_LINES = 50_000
_MOST_BYTES = 32 * 1024 * 1024
# Before a line that is linked to.
LINES_BEFORE = 500
_CHUNK_LINES = 200
_SECOND = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LogQuery:
    """What of a log is shown: a range of lines, those with a text, or without either the end."""

    first: int = 0
    count: int = SHOWN_LINES
    text: str = ""

    @property
    def is_of_end(self) -> bool:
        return not self.first and not self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class LogView:
    """Lines as HTML in chunks, and what the box around them says."""

    chunks: tuple[Markup, ...]
    # The numbers of the first and the last line; 0 without any.
    first: int
    last: int
    total: int
    size: str
    query: LogQuery
    # How many lines have the text that is searched for.
    matches: int = 0
    # What the box says without any line.
    empty: str = ""
    # Whether lines that come later are added.
    is_live: bool = False
    earlier: str | None = None
    later: str | None = None
    whole: str | None = None


def show_log(
    lines: LogLines, log: JobLog, job: JobRecord, query: LogQuery, *, path: str
) -> tuple[LogView, Sequence[LogLine]]:
    """Return the part of a log that was asked for, and its last lines. It blocks."""
    end = lines.read_tail(log, count=SHOWN_LINES)
    size = size_of(log)
    if query.text:
        return _show_matches(lines, log, query, path=path, size=size), end.lines
    shown = end
    if query.first:
        shown = lines.read(log, query.first, count=query.count, most_bytes=_MOST_BYTES)
    first, last = bounds_of(shown.lines)
    step = max(SHOWN_LINES, query.count)
    view = LogView(
        chunks=_chunks(shown.lines),
        first=first,
        last=last,
        total=shown.total,
        size=bytes_text(size),
        query=query,
        empty=empty_text(job),
        is_live=query.is_of_end and not job.stage.is_terminal,
        earlier=_range_path(path, max(1, first - step), query) if first > 1 else None,
        later=_range_path(path, last + 1, query) if last < shown.total else None,
        whole=_whole_path(path, shown),
    )
    return view, end.lines


def bounds_of(lines: Sequence[LogLine]) -> tuple[int, int]:
    return (lines[0].number, lines[-1].number) if lines else (0, 0)


def _show_matches(
    lines: LogLines, log: JobLog, query: LogQuery, *, path: str, size: int
) -> LogView:
    found = lines.search(
        log, query.text, first=query.first, most=SHOWN_LINES, visible=ansi.strip_escapes
    )
    first, last = bounds_of(found.lines)
    # Whether some of the matches come after those that are shown.
    is_cut = len(found.lines) == SHOWN_LINES
    return LogView(
        chunks=_chunks(found.lines, href=path),
        first=first,
        last=last,
        total=found.total,
        size=bytes_text(size),
        query=query,
        matches=found.count,
        empty=f"None of {found.total:,} lines has this text.",
        later=_range_path(path, last + 1, query) if is_cut else None,
    )


def _range_path(path: str, first: int, query: LogQuery) -> str:
    fields = {"q": query.text} if query.text else {}
    if query.count != SHOWN_LINES:
        fields["lines"] = str(query.count)
    return f"{path}?{urlencode({**fields, 'from': first})}#log"


def _whole_path(path: str, shown: LogRange) -> str | None:
    """Return the address of all lines, or of as many of the first ones as a page may have."""
    if len(shown.lines) == shown.total:
        return None
    return f"{path}?{urlencode({'from': 1, 'lines': MOST_LINES})}#log"


def render_lines(lines: Sequence[LogLine], *, href: str = "") -> Markup:
    """Render lines, each with its number as its id; with `href`, the number links to its place."""
    # The path of a page has no special characters, and the text of each line was escaped.
    return Markup("".join([_render_line(line, href) for line in lines]))  # noqa: S704


def _render_line(line: LogLine, href: str) -> str:
    html = ansi.render_line(line.text)
    kind = "l sys" if NOTICE.fullmatch(line.text) else "l"
    number, time = line.number, _time_text(line.at // _SECOND)
    start = f'<div class="{kind}" id="L{number}" data-n="{number}" data-t="{time}">'
    if href:
        place = f"{href}?from={max(1, number - LINES_BEFORE)}#L{number}"
        start = f'<div class="{kind} hit" data-t="{time}"><a href="{place}">{number}</a>'
    return f"{start}<span>{html}</span></div>"


@lru_cache(maxsize=4096)
def _time_text(second: int) -> str:
    return from_micros(second * _SECOND).astimezone(UTC).strftime("%H:%M:%S") if second else ""


def _chunks(lines: Sequence[LogLine], *, href: str = "") -> tuple[Markup, ...]:
    """Render lines in chunks, of which a browser lays out only those that are seen."""
    starts = range(0, len(lines), _CHUNK_LINES)
    return tuple(render_lines(lines[start : start + _CHUNK_LINES], href=href) for start in starts)


def empty_text(job: JobRecord) -> str:
    """Return what the box of an empty log says: what the job waits for, or that it was silent."""
    if job.stage is Stage.deleted:
        return "The log was deleted with the job."
    if job.stage.is_terminal:
        return "It printed nothing."
    if job.stage is Stage.scheduling:
        return f"Waiting for the first line: {job.message or 'it has not begun'}."
    return "Waiting for the first line: it runs and has printed nothing yet."


async def plain_log(log: JobLog) -> AsyncGenerator[bytes]:
    """Yield the lines of a log as they were printed, without their times."""
    start = 0
    while (piece := await asyncio.to_thread(read_new, log, start, first=1)).lines:
        start = piece.end
        yield "".join(f"{line.text}\n" for line in piece.lines).encode()
