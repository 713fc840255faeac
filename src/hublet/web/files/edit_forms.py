"""Forms that change files: what they show and what was typed, and the line ends of texts."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import field

from hublet.core.dataclasses import dataclass
from hublet.core.pages import plural
from hublet.repos.browse import downloads
from hublet.repos.commits.edits import LARGEST_TEXT, EditWays
from hublet.repos.commits.operations import CommitHeader
from hublet.repos.errors import ContentMissing, EntryNotFound
from hublet.repos.git.trees import GitEntry
from hublet.web.files.auth import FilesVisit
from hublet.web.files.views import CommitLine

_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")
_MARKDOWN = (".md", ".markdown")

COMMIT, PROPOSE = "commit", "propose"


@dataclass(frozen=True, slots=True, kw_only=True)
class EditForm:
    """What the forms of `files/edit.html`, `delete.html` and `upload.html` have in common."""

    action: str
    token: str
    ways: EditWays
    branch: str
    # Where to go without doing anything.
    back: str
    # The title of a commit to which nobody gives one.
    title: str
    typed: Mapping[str, str] = field(default_factory=dict)
    problem: str | None = None
    # The commit that came in between, where there is one.
    newer: CommitLine | None = None

    def value(self, name: str, otherwise: str = "") -> str:
        return self.typed.get(name, otherwise)

    @property
    def way(self) -> str:
        """The chosen way; the first that there is, unless another was chosen before."""
        wanted = self.typed.get("way", COMMIT)
        if wanted == COMMIT and self.ways.may_commit:
            return COMMIT
        return PROPOSE if self.ways.may_propose else COMMIT


def form_of(files: FilesVisit, action: str, *, back: str, title: str) -> EditForm:
    return EditForm(
        action=action,
        token=files.head.form_token,
        ways=files.ways,
        branch=files.name,
        back=back,
        title=title,
    )


def header_of(fields: Mapping[str, str], title: str) -> CommitHeader:
    """Return the message of a commit as it was typed; a blank title means the usual one."""
    summary = " ".join(fields.get("title", "").split())
    description = fields.get("description", "").replace("\r\n", "\n").strip()
    return CommitHeader(summary=summary or title, description=description)


@dataclass(frozen=True, slots=True, kw_only=True)
class EditedText:
    """The text of a file as it is now; one that cannot be edited has the reason instead."""

    # The id of git's object; of a file in LFS, that of the pointer.
    oid: str
    text: str = ""
    refusal: str = ""


async def load_text(files: FilesVisit) -> EditedText:
    """Load a file to edit; raise EntryNotFound where there is none."""
    file = await downloads.get_raw_file(files.revision, files.path)
    entry = file.entry
    if refusal := _refusal_of(entry):
        return EditedText(oid=entry.oid, refusal=refusal)
    try:
        read = await downloads.open_file(files.visit.database, files.revision, file)
        text = bytes(read(0, entry.size)).decode()
    except ContentMissing as error:
        return EditedText(oid=entry.oid, refusal=error.message)
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        return EditedText(oid=entry.oid, refusal="This file is no text in UTF-8.")
    return EditedText(oid=entry.oid, text=text)


def _refusal_of(entry: GitEntry) -> str:
    if entry.is_link:
        return "This is a symbolic link; it is changed with git."
    if entry.size > LARGEST_TEXT:
        return "This file has more than 1 MB, too much for a form."
    return ""


async def find_text(files: FilesVisit) -> EditedText | None:
    try:
        return await load_text(files)
    except EntryNotFound:
        return None


def is_markdown(path: str) -> bool:
    return path.lower().endswith(_MARKDOWN)


def with_line_ends_of(typed: str, original: str) -> str:
    """Return a text of a form with the line ends of the file that it was made from.

    Browsers send all of them as CR LF. Lines at the beginning and the end that were not changed keep
    their own, all others get the one that the file has most often.
    """
    lines, before = _split(typed), _split(original)
    if not before:
        before = [("", "")]
    usual = _most_frequent_end(before)
    head = _count_same(lines, before)
    tail = _count_same(lines[head:][::-1], before[head:][::-1])
    kept_from = len(lines) - tail
    shift = len(before) - len(lines)
    ends = [
        before[n][1]
        if n < head
        else before[n + shift][1]
        if n >= kept_from
        else (usual if end else "")
        for n, (_, end) in enumerate(lines)
    ]
    return "".join(text + end for (text, _), end in zip(lines, ends, strict=True))


def _split(text: str) -> list[tuple[str, str]]:
    """Return the lines of a text with their ends; what follows the last end is a line without one."""
    lines, at = [], 0
    while match := _LINE.match(text, at):
        lines.append((match[1], match[2]))
        at = match.end()
        if not match[2]:
            break
    return lines


def _most_frequent_end(lines: Sequence[tuple[str, str]]) -> str:
    ends = [end for _, end in lines if end]
    return max(("\n", "\r\n", "\r"), key=ends.count)


def _count_same(lines: Sequence[tuple[str, str]], others: Sequence[tuple[str, str]]) -> int:
    """Count the lines at the beginning that are the same, ended or not, whatever the end."""
    count = 0
    for (text, end), (other, other_end) in zip(lines, others, strict=False):
        if text != other or bool(end) != bool(other_end):
            break
        count += 1
    return count


def upload_title(paths: Sequence[str]) -> str:
    return f"Upload {paths[0]}" if len(paths) == 1 else f"Upload {plural(len(paths), 'file')}"
