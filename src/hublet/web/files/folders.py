"""Content of a folder's page: its rows, their last commits, its README."""

import asyncio
from collections.abc import Sequence

import msgspec
from markupsafe import Markup

from hublet.core.file_cache import FileCache, cache_in
from hublet.core.hub import Switch
from hublet.core.paging import write_cursor
from hublet.repos.browse import revisions
from hublet.repos.browse.records import ListedEntry, StoredFile
from hublet.repos.browse.revisions import write_tree_cursor
from hublet.repos.git import history, trees
from hublet.repos.git.history import CommitInfo
from hublet.repos.git.trees import GitEntry
from hublet.web.auth import PageVisit
from hublet.web.files.auth import FilesVisit
from hublet.web.files.views import CommitLine, FileView, TreeView, commit_line, rows_of
from hublet.web.picture_sizes import PictureSource
from hublet.web.readme_cache import render_readme
from hublet.web.rendering.links import MarkdownPlace, place_in_repo

ROWS_ON_A_PAGE = 200
MAX_README_BYTES = 1 << 20

# With these alone a repository begins.
_FIRST_FILES = {".gitattributes", "README.md"}
_Commits = dict[str, CommitInfo]


def cache_of(visit: PageVisit) -> FileCache:
    return cache_in(visit.hub.settings.database.data_dir)


async def load_tree(files: FilesVisit, *, cursor: str, with_commits: bool) -> TreeView:
    """Load a page of a folder; last commits that are not in the cache only if they are wanted."""
    files, after = files.at_cursor(cursor)
    visit, revision = files.visit, files.revision
    entries = await revisions.list_entries(
        revision, files.path, recursive=False, after=after, limit=ROWS_ON_A_PAGE + 1
    )
    on_page, has_more = entries[:ROWS_ON_A_PAGE], len(entries) > ROWS_ON_A_PAGE
    listed = await revisions.describe_entries(visit.database, revision, on_page, with_commits=False)
    paths = [entry.path for entry in on_page]
    commits = await asyncio.to_thread(find_last_commits, files, after, paths, wanted=with_commits)
    readme = None if after else _find_readme(on_page)
    return TreeView(
        rows=rows_of(listed, files.links, commits or {}),
        above=files.links.tree(files.path.rpartition("/")[0]) if files.path else None,
        is_waiting=commits is None,
        latest=await _latest(files),
        next_page=_page_after(files, on_page[-1].path) if has_more else None,
        readme_name=readme.path.rpartition("/")[2] if readme else None,
        readme=await _render_readme(files, readme) if readme else None,
        is_new=not files.path and _is_new(listed),
    )


def _page_after(files: FilesVisit, last: str) -> str:
    cursor = write_cursor(write_tree_cursor(files.revision.commit, last))
    return f"{files.links.tree(files.path)}?cursor={cursor}"


def _is_new(listed: Sequence[ListedEntry]) -> bool:
    return {each.entry.path for each in listed} <= _FIRST_FILES


def find_last_commits(
    files: FilesVisit, after: str, paths: Sequence[str], *, wanted: bool
) -> _Commits | None:
    """Return the last commits of a file, or of the rows of a folder's page.

    None if they would take long and nobody waits. They never change for a commit, so they are kept
    by its id.
    """
    revision, cache = files.revision, cache_of(files.visit)
    key = f"last commits {revision.commit} {len(paths)} {files.path} {after}"
    if (found := cache.find(revision.repo.id, key)) is not None:
        return msgspec.json.decode(found, type=_Commits)
    if not wanted:
        return None
    commits = history.last_commits(revision.folder, revision.commit, paths)
    cache.put(revision.repo.id, key, msgspec.json.encode(commits))
    return commits


async def _latest(files: FilesVisit) -> CommitLine:
    [latest] = await revisions.list_commits(files.revision, skip=0, limit=1)
    return commit_line(latest)


def _find_readme(entries: Sequence[GitEntry]) -> GitEntry | None:
    """Return the README.md of a folder, if it is in git and of a size that people read."""
    for entry in entries:
        name = entry.path.rpartition("/")[2].lower()
        if name == "readme.md" and entry.type == "file" and entry.lfs is None:
            return entry if entry.size <= MAX_README_BYTES else None
    return None


async def _render_readme(files: FilesVisit, readme: GitEntry) -> Markup | None:
    # The gate of a gated repository guards its content, and this is content.
    return await render_markdown(files, readme) if files.head.may_read else None


async def render_markdown(files: FilesVisit, entry: GitEntry) -> Markup:
    """Render a Markdown file of the repository."""

    async def read() -> str:
        data = await asyncio.to_thread(trees.read_blob, files.revision.folder, entry.oid)
        return data.decode(errors="replace")

    pictures = PictureSource(database=files.visit.database, revision=files.revision)
    return await render_readme(place_of(files, entry.path), entry.oid, read, pictures)


def place_of(files: FilesVisit, path: str) -> MarkdownPlace:
    """Return where a file stands, for its relative links."""
    visit = files.visit
    return place_in_repo(
        files.head.path,
        revision=files.name,
        folder=path.rpartition("/")[0],
        hub=visit.settings.base_url,
        remote_images=visit.hub.is_on(Switch.remote_images),
    )


async def load_file_view(files: FilesVisit, file: StoredFile, *, with_commit: bool) -> FileView:
    """Load what the head of a file's page says; its last commit as those of a folder."""
    entry = file.entry
    commits = await asyncio.to_thread(
        find_last_commits, files, "", [entry.path], wanted=with_commit
    )
    commit = (commits or {}).get(entry.path)
    return FileView(
        name=entry.path.rpartition("/")[2],
        size=entry.size,
        sha256=None if entry.lfs is None else entry.lfs.sha256,
        is_link=entry.is_link,
        latest=None if commit is None else commit_line(commit),
        is_waiting=commits is None,
    )
