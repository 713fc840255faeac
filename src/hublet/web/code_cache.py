"""Cache of coloured lines: on the disk, by the text, the name of its file and the renderer's version."""

from collections.abc import Iterable, Sequence
from hashlib import sha256

from markupsafe import Markup

from hublet.core.config import Settings
from hublet.core.dataclasses import dataclass
from hublet.core.file_cache import FileCache, cache_in
from hublet.repos.git.diffs import DiffSide
from hublet.web.rendering import ByteReader, code

# A page shows so much of a text; the rest is behind the link to the file itself.
MAX_TEXT_BYTES = 1 << 20
MAX_LINES = 10_000
# What is no text has a zero soon.
_LOOKED_AT = 8000
# Less than this is coloured as fast as it is read.
_MIN_CHARACTERS = 1_000

_ROW = '<tr id="L{0}"><td class="ln"><a href="#L{0}">{0}</a></td><td class="code">{1}</td></tr>'


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedLines:
    """The beginning of a text as the rows of a table, a line each with its number."""

    rows: Markup
    count: int
    is_coloured: bool
    # What is left out, as a sentence.
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeCache:
    """Coloured lines of one repository: of its files, blames and diffs. Everything here blocks."""

    entries: FileCache
    repo_id: str

    @classmethod
    def of(cls, settings: Settings, repo_id: str) -> "CodeCache":
        return cls(entries=cache_in(settings.database.data_dir), repo_id=repo_id)

    def find(self, text: str, file_name: str) -> str | None:
        """Return what `render` does if it is known, or soon done."""
        return self._render(text, file_name, waits=False)

    def render(self, text: str, file_name: str) -> str:
        """Return the coloured lines as HTML, a line feed behind each."""
        return self._render(text, file_name, waits=True) or ""

    def _render(self, text: str, file_name: str, *, waits: bool) -> str | None:
        if len(text) < _MIN_CHARACTERS:
            return _joined(code.highlight(text, file_name))
        key = _key(text, file_name)
        if (known := self.entries.find(self.repo_id, key)) is not None:
            return known.decode()
        if not waits and code.takes_long(text, file_name):
            return None
        html = _joined(code.highlight(text, file_name))
        self.entries.put(self.repo_id, key, html.encode())
        return html

    def number_lines(
        self, read: ByteReader, size: int, path: str, *, with_colours: bool
    ) -> NumberedLines | None:
        """Return the lines of a text; None for what is no text.

        Colours that are not kept and take long come only if they are wanted.
        """
        data = read(0, min(size, MAX_TEXT_BYTES))
        if b"\0" in data[:_LOOKED_AT]:
            return None
        # A character may be cut at the end.
        text = data.decode(errors="replace")
        coloured = (self.render if with_colours else self.find)(text, path)
        lines = code.plain_lines(text) if coloured is None else split_lines(coloured)
        rows = [_ROW.format(number, line) for number, line in enumerate(lines[:MAX_LINES], 1)]
        return NumberedLines(
            rows=Markup("".join(rows)),  # noqa: S704 - rows of our own
            count=len(rows),
            is_coloured=coloured is not None,
            note=_left_out(size, len(lines)),
        )

    def highlight(self, text: str, file_name: str) -> Sequence[Markup]:
        return [Markup(line) for line in split_lines(self.render(text, file_name))]  # noqa: S704 - our own

    def highlight_side(self, side: DiffSide) -> Sequence[Markup]:
        return self.highlight(side.text or "", side.path)


def _left_out(size: int, line_count: int) -> str:
    if size > MAX_TEXT_BYTES:
        return "Only the first megabyte is shown."
    return f"Only the first {MAX_LINES:,} lines are shown." if line_count > MAX_LINES else ""


def _joined(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def split_lines(html: str) -> list[str]:
    return html.split("\n")[:-1]


def _key(text: str, file_name: str) -> str:
    digest = sha256(text.encode(errors="surrogatepass")).hexdigest()
    return f"lines {code.VERSION} {digest} {file_name.rpartition('/')[2]}"
