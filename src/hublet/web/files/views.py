"""Views of folders and files: what their templates print."""

from collections.abc import Mapping, Sequence
from datetime import date
from itertools import groupby

from markupsafe import Markup

from hublet.core.dataclasses import dataclass
from hublet.repos.browse.records import ListedEntry
from hublet.repos.git.blame import Blame
from hublet.repos.git.history import CommitInfo
from hublet.repos.git.objects import user_of
from hublet.web.files.links import FileLinks

_ICONS = (
    (("png", "jpg", "jpeg", "gif", "webp", "svg", "bmp", "avif"), "image"),
    (("safetensors", "gguf", "bin", "pt", "pth", "onnx", "h5"), "package"),
    (("csv", "tsv", "parquet", "arrow"), "table"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitLine:
    """A commit in a line: who, what, when."""

    sha: str
    title: str
    # What follows the title.
    message: str
    author: str
    # The user of this hub who wrote it, if there is one.
    user: str | None
    commit: CommitInfo

    @property
    def short(self) -> str:
        return self.sha[:7]


def commit_line(commit: CommitInfo) -> CommitLine:
    return CommitLine(
        sha=commit.id,
        title=commit.title.strip() or "No message",
        message=commit.message,
        author=commit.author_name.strip() or "Unknown",
        user=user_of(commit.author_email),
        commit=commit,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRow:
    """A file or folder in a list."""

    name: str
    icon: str
    href: str
    # None for a folder.
    size: int | None
    download: str | None
    # `LFS` or `xet` for what is not in git itself.
    mark: str | None
    commit: CommitLine | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeView:
    """What `files/tree.html` takes as `tree`."""

    rows: Sequence[FileRow]
    above: str | None
    # Whether the last commits have to be asked for.
    is_waiting: bool
    latest: CommitLine | None
    next_page: str | None
    readme_name: str | None
    readme: Markup | None
    # Whether nothing but what a new repository begins with is here.
    is_new: bool


def rows_of(
    entries: Sequence[ListedEntry], links: FileLinks, commits: Mapping[str, CommitInfo]
) -> list[FileRow]:
    """Return the rows of a folder: its folders first, each kind by name."""
    ordered = sorted(entries, key=lambda each: each.entry.type != "directory")
    return [_row(each, links, commits.get(each.entry.path)) for each in ordered]


def _row(listed: ListedEntry, links: FileLinks, commit: CommitInfo | None) -> FileRow:
    entry = listed.entry
    name = entry.path.rpartition("/")[2]
    is_folder = entry.type == "directory"
    return FileRow(
        name=name,
        icon="folder" if is_folder else icon_of(name),
        href=links.tree(entry.path) if is_folder else links.blob(entry.path),
        size=None if is_folder else entry.size,
        download=None if is_folder else links.download(entry.path),
        mark=None if entry.lfs is None else "xet" if listed.xet_hash else "LFS",
        commit=None if commit is None else commit_line(commit),
    )


def icon_of(name: str) -> str:
    suffix = name.rpartition(".")[2].lower()
    return next((icon for suffixes, icon in _ICONS if suffix in suffixes), "file")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileView:
    """What `files/file.html` takes as `file`."""

    name: str
    size: int
    # The digest of what is kept outside of git.
    sha256: str | None
    is_link: bool
    latest: CommitLine | None
    # Whether the last commit has to be asked for.
    is_waiting: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitDay:
    """The commits of one day."""

    day: date
    commits: Sequence[CommitLine]


def days_of(commits: Sequence[CommitInfo]) -> list[CommitDay]:
    """Group commits that follow each other by their day, in UTC."""
    grouped = groupby(map(commit_line, commits), key=lambda line: line.commit.date.date())
    return [CommitDay(day=day, commits=tuple(lines)) for day, lines in grouped]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlameRow:
    """A line of a file, and before the first of several the commit that they come from."""

    number: int
    code: Markup
    commit: CommitLine | None


def blame_rows(blame: Blame, lines: Sequence[Markup]) -> list[BlameRow]:
    commits = {hunk.start: commit_line(hunk.commit) for hunk in blame.hunks}
    return [
        BlameRow(number=number, code=line, commit=commits.get(number))
        for number, line in enumerate(lines, 1)
    ]
