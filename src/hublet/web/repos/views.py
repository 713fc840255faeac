"""Views of repository pages: records in, one frozen dataclass per page out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

from markupsafe import Markup

from hublet.community.discussions.records import DiscussionRecord
from hublet.core.dataclasses import dataclass
from hublet.core.pages import plural
from hublet.jobs.records import JobRecord
from hublet.repos.browse import taxonomy
from hublet.repos.browse.overview import MOST_COUNTED, RepoOverview
from hublet.repos.files.records import File, FileOrFolder, Folder
from hublet.repos.gate_form import GateForm
from hublet.repos.records import GateRequest, Repo, RepoType
from hublet.web.code_cache import NumberedLines
from hublet.web.rendering.plots import spark_paths
from hublet.web.repos.snippets import Snippet, first_steps_of, readme_command, usage_of

# Further tags are behind a button.
CHIPS_SHOWN = 14
# A new repository has a file with the attributes of git, which nobody wrote.
_FILES_OF_A_NEW_ONE = 1

# Fields of a card that become tags with this prefix, and the icon of their chips.
_PREFIX_ICONS = {
    "base_model": "box",
    "dataset": "database",
    "language": "languages",
    "license": "scale",
    "size_categories": "hard-drive",
    "source_datasets": "database",
    "task_categories": "message-square",
    "task_ids": "message-square",
}
_OTHER_PREFIXES = {"annotations_creators", "language_creators", "multilinguality"}
_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/svg+xml")
# Of a larger picture a browser may choke.
_LARGEST_PICTURE = 20_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """A tag, which leads to the list of all repositories that have it."""

    text: str
    icon: str
    href: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenItem:
    """A thread or a job that goes on, beside the card."""

    icon: str
    text: str
    href: str
    # The number of a thread, the stage of a job.
    number: int | None = None
    stage: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DownloadPlot:
    """Downloads of the last days: their sum, and the paths of `ui.spark`."""

    days: int
    count: int
    line: str
    area: str


def download_plot(by_day: Sequence[int]) -> DownloadPlot:
    line, area = spark_paths(by_day)
    return DownloadPlot(days=len(by_day), count=sum(by_day), line=line, area=area)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateBox:
    """The gate of a repository, as who looks meets it."""

    form: GateForm
    # What this person asked before; None: nothing.
    request: GateRequest | None
    # How many wait for a decision; only who decides is told.
    waiting: int
    # The conditions that the owner wrote.
    prompt: Markup | None = None
    # What was typed into the form, and what is wrong with it, by the id of the field.
    typed: Mapping[str, str] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightCount:
    """How many parameters a model has, as the headers of its safetensors files say."""

    parameters: int
    # By type, the most first.
    by_dtype: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CardSurroundings:
    """What stands around the README.md: all that the database knows."""

    open_items: Sequence[OpenItem]
    downloads: DownloadPlot | None
    gate: GateBox | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CardPage:
    # None: there is none, or nothing in it but metadata.
    readme: Markup | None
    chips: Sequence[Chip]
    more_chips: Sequence[Chip]
    usage: Sequence[Snippet]
    # Only for an empty repository.
    first_steps: Sequence[Snippet]
    add_readme: Snippet
    overview: RepoOverview | None
    files_text: str
    around: CardSurroundings
    weights: WeightCount | None


def card_page(
    repo: Repo,
    *,
    base_url: str,
    readme: Markup | None,
    overview: RepoOverview | None,
    around: CardSurroundings,
    weights: WeightCount | None = None,
) -> CardPage:
    chips = list(chips_of(repo))
    is_empty = readme is None and (overview is None or overview.files <= _FILES_OF_A_NEW_ONE)
    return CardPage(
        readme=readme or None,
        chips=chips[:CHIPS_SHOWN],
        more_chips=chips[CHIPS_SHOWN:],
        usage=usage_of(repo, base_url),
        first_steps=first_steps_of(repo, base_url) if is_empty else (),
        add_readme=readme_command(repo, base_url),
        overview=overview,
        files_text=_files_text(overview),
        around=around,
        weights=weights,
    )


def _files_text(overview: RepoOverview | None) -> str:
    if overview is None:
        return "no files"
    if overview.is_cut:
        return f"more than {MOST_COUNTED:,} files"
    return plural(overview.files, "file")


def chips_of(repo: Repo) -> Iterator[Chip]:
    """Yield the tags of a repository in the order of its card."""
    list_path = f"/{repo.type.plural}"
    for tag in repo.tags:
        text, icon = _label_of(tag, repo)
        field = "pipeline_tag" if tag == _task_of(repo) else "filter"
        yield Chip(text=text, icon=icon, href=f"{list_path}?{urlencode({field: tag})}")


def _task_of(repo: Repo) -> Any:
    is_model = repo.type is RepoType.model
    return (repo.card or {}).get("pipeline_tag") if is_model else None


def _label_of(tag: str, repo: Repo) -> tuple[str, str]:
    prefix, colon, value = tag.partition(":")
    if not colon or (prefix not in _PREFIX_ICONS and prefix not in _OTHER_PREFIXES):
        return _plain_label(tag, repo)
    labels = {"language": taxonomy.languages().get(value, value)}
    if prefix == "task_categories" and value in taxonomy.tasks():
        labels[prefix] = taxonomy.tasks()[value].label
    return labels.get(prefix, value), _PREFIX_ICONS.get(prefix, "tag")


def _plain_label(tag: str, repo: Repo) -> tuple[str, str]:
    languages = (repo.card or {}).get("language") or ()
    if tag in ([languages] if isinstance(languages, str) else languages):
        return taxonomy.languages().get(tag, tag), "languages"
    if tag in taxonomy.tasks():
        return taxonomy.tasks()[tag].label, "message-square"
    if tag in taxonomy.libraries():
        return taxonomy.libraries()[tag], "layers"
    return tag, "tag"


def open_items(
    path: str, threads: Sequence[DiscussionRecord], jobs: Sequence[JobRecord], *, owner: str
) -> list[OpenItem]:
    return [
        *(
            OpenItem(
                icon="git-pull-request" if each.thread.is_pull_request else "message-square",
                text=each.thread.title,
                href=f"{path}/discussions/{each.number}",
                number=each.number,
            )
            for each in threads
        ),
        *(
            OpenItem(
                icon="play",
                text=job.labels.get("name") or f"Job {job.id[:8]}",
                href=f"/jobs/{owner}/{job.id}",
                stage=job.stage.lower(),
            )
            for job in jobs
        ),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketRow:
    name: str
    href: str
    # None: a folder.
    size: int | None = None
    uploaded_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketFolderPage:
    crumbs: Sequence[tuple[str, str | None]]
    rows: Sequence[BucketRow]
    # The address of the next page; None behind the last one.
    older: str | None
    # Where files are uploaded into this folder.
    upload: str
    usage: Sequence[Snippet]
    # Only for an empty repository.
    first_steps: Sequence[Snippet]
    files_text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketFilePage:
    crumbs: Sequence[tuple[str, str | None]]
    file: File
    download: str
    is_picture: bool
    # None for what is no text.
    text: NumberedLines | None


def folder_page(
    repo: Repo,
    repo_path: str,
    path: str,
    entries: Sequence[FileOrFolder],
    *,
    rows: int,
    base_url: str,
) -> BucketFolderPage:
    shown, more = entries[:rows], entries[rows:]
    return BucketFolderPage(
        crumbs=_crumbs(repo, repo_path, path),
        rows=[_bucket_row(repo_path, entry) for entry in shown],
        older=f"?{urlencode({'after': _bucket_position(shown[-1])})}" if more else None,
        upload=f"{repo_path}/upload/{quote(path)}" if path else f"{repo_path}/upload",
        usage=usage_of(repo, base_url),
        first_steps=() if repo.total_files else first_steps_of(repo, base_url),
        files_text=plural(repo.total_files, "file"),
    )


def files_path(repo: Repo, repo_path: str) -> str:
    """Return the address of all files; that of a container itself shows its tags."""
    return f"{repo_path}/tree" if repo.type is RepoType.container else repo_path


def is_picture(file: File) -> bool:
    media_type = (file.media_type or "").partition(";")[0].strip().lower()
    return media_type in _PICTURES and file.size <= _LARGEST_PICTURE


def file_page(repo: Repo, repo_path: str, file: File, text: NumberedLines | None) -> BucketFilePage:
    return BucketFilePage(
        crumbs=_crumbs(repo, repo_path, file.path),
        file=file,
        download=f"{repo_path}/resolve/{quote(file.path)}",
        is_picture=is_picture(file),
        text=text,
    )


def _bucket_row(repo_path: str, entry: FileOrFolder) -> BucketRow:
    name = entry.path.rpartition("/")[2]
    href = f"{repo_path}/tree/{quote(entry.path)}"
    if isinstance(entry, Folder):
        return BucketRow(name=name, href=href)
    return BucketRow(name=name, href=href, size=entry.size, uploaded_at=entry.uploaded_at)


def _bucket_position(entry: FileOrFolder) -> str:
    return f"{entry.path}/" if isinstance(entry, Folder) else entry.path


def _crumbs(repo: Repo, repo_path: str, path: str) -> list[tuple[str, str | None]]:
    """Return the parts of a path, each but the last with its address."""
    if not path:
        return [(repo.name, None)]
    *above, last = path.split("/")
    folders = ["/".join(above[: number + 1]) for number in range(len(above))]
    return [
        (repo.name, files_path(repo, repo_path)),
        *(
            (part, f"{repo_path}/tree/{quote(folder)}")
            for part, folder in zip(above, folders, strict=True)
        ),
        (last, None),
    ]
