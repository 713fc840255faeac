"""HTTP for the files of buckets and containers in the browser: folders, and single files."""

import asyncio
from typing import Annotated

from fastapi import Query, Response

from hublet.core.pages import PageRouter
from hublet.repos.auth import BUCKET_PAGE, FilesRepo
from hublet.repos.browse.downloads import TEXT, safe_media_type
from hublet.repos.errors import FileNotFound
from hublet.repos.files import service as files
from hublet.repos.files.records import File
from hublet.repos.names import MAX_PATH_BYTES
from hublet.repos.records import Repo, RepoAddress, Right
from hublet.storage.contents import ContentSource
from hublet.web.auth import PageVisit, Visit
from hublet.web.code_cache import CodeCache, NumberedLines
from hublet.web.pages import render
from hublet.web.repo_head import RepoTab, get_head
from hublet.web.repos.views import file_page, folder_page, is_picture

router = PageRouter()

_CONTAINER_PAGE = BUCKET_PAGE.replace("buckets", "containers")
_ROWS = 200

_After = Annotated[str, Query(max_length=MAX_PATH_BYTES)]


@router.get(BUCKET_PAGE)
@router.get(_CONTAINER_PAGE)
@router.get(f"{BUCKET_PAGE}/tree")
@router.get(f"{_CONTAINER_PAGE}/tree")
async def get_files_page(visit: Visit, address: FilesRepo, after: _After = "") -> Response:
    return await _show(visit, address, "", after=after)


@router.get(f"{BUCKET_PAGE}/tree/{{path:path}}")
@router.get(f"{_CONTAINER_PAGE}/tree/{{path:path}}")
async def get_file_or_folder_page(
    visit: Visit, address: FilesRepo, path: str, after: _After = ""
) -> Response:
    """Show a folder, or a file: the public client has one address for both."""
    return await _show(visit, address, path.strip("/"), after=after)


async def _show(visit: PageVisit, address: RepoAddress, path: str, *, after: str) -> Response:
    async with visit.database.read() as conn:
        head = await get_head(conn, visit, address, tab=RepoTab.files, right=Right.read)
        file = await files.find(conn, head.repo, path)
        content = None if file is None else await files.open_content(conn, head.repo, file)
        prefix = f"{path}/" if path else ""
        entries = await files.list_tree(
            conn, head.repo, prefix=prefix, after=after, limit=_ROWS + 1, recursive=False
        )
    if file is not None and content is not None:
        text = await _read_text(visit, head.repo, file, content)
        page = file_page(head.repo, head.path, file, text)
        return await render(visit, "repos/file.html", frame=head.frame, head=head, page=page)
    if path and not entries:
        raise FileNotFound(path, full_name=head.repo.full_name)
    folder = folder_page(
        head.repo, head.path, path, entries, rows=_ROWS, base_url=visit.hub.settings.base_url
    )
    return await render(visit, "repos/folder.html", frame=head.frame, head=head, page=folder)


async def _read_text(
    visit: PageVisit, repo: Repo, file: File, content: ContentSource
) -> NumberedLines | None:
    if is_picture(file) or safe_media_type(file.path) != TEXT:
        return None

    def read(start: int, end: int) -> bytes:
        return b"".join(content.pieces(start, end))

    cache = CodeCache.of(visit.settings, repo.id)
    return await asyncio.to_thread(
        cache.number_lines, read, file.size, file.path, with_colours=True
    )
