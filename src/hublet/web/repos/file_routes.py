"""HTTP for the files of buckets and containers in the browser: folders, files, upload, deletion."""

import asyncio
from typing import Annotated
from urllib.parse import quote

from fastapi import Query, Response

from hublet.core.errors import Conflict, HubError, InvalidRequest, NotAllowed, TooLarge
from hublet.core.http.exchange import allow_streaming
from hublet.core.pages import PageRouter, plural
from hublet.login.auth import FormFields
from hublet.repos import service as repos
from hublet.repos.auth import BUCKET_PAGE, FilesRepo, body_of
from hublet.repos.browse.downloads import TEXT, safe_media_type
from hublet.repos.errors import FileNotFound
from hublet.repos.files import service as files
from hublet.repos.files import uploads
from hublet.repos.files.records import File, FileRemoval, Upload
from hublet.repos.names import MAX_PATH_BYTES, check_path
from hublet.repos.records import Repo, RepoAddress, Right
from hublet.storage.contents import ContentSource
from hublet.storage.object_store import open_store
from hublet.web.auth import PageVisit, SignedInVisit, Visit
from hublet.web.code_cache import CodeCache, NumberedLines
from hublet.web.pages import go_on, go_to, render
from hublet.web.repo_head import PURPOSE, RepoHead, RepoTab, get_head, path_of
from hublet.web.repos.views import file_page, files_path, folder_page, is_picture
from hublet.web.uploads import UploadedFile, pieces_of, read_upload

router = PageRouter()

_CONTAINER_PAGE = BUCKET_PAGE.replace("buckets", "containers")
_ROWS = 200

allow_streaming("POST", "/(buckets|containers)/[^/]+/[^/]+/upload(/.*)?")

_After = Annotated[str, Query(max_length=MAX_PATH_BYTES)]


@router.get(BUCKET_PAGE)
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


@router.get(f"{BUCKET_PAGE}/upload")
@router.get(f"{_CONTAINER_PAGE}/upload")
@router.get(f"{BUCKET_PAGE}/upload/{{path:path}}")
@router.get(f"{_CONTAINER_PAGE}/upload/{{path:path}}")
async def get_upload_page(visit: SignedInVisit, address: FilesRepo, path: str = "") -> Response:
    return await _show_upload(visit, await _writable(visit, address), path.strip("/"))


@router.post(f"{BUCKET_PAGE}/upload")
@router.post(f"{_CONTAINER_PAGE}/upload")
async def upload_files(visit: SignedInVisit, address: FilesRepo) -> Response:
    """Put files that were chosen or dropped into a folder; those of the same path are replaced."""
    head = await _writable(visit, address)
    settings = visit.hub.settings
    folder = ""
    try:
        async with read_upload(
            body_of(visit.request),
            visit.request.headers.get("content-type", ""),
            store=open_store(settings),
            largest=settings.limits.file_bytes,
            check=lambda fields: visit.check(fields, f"{PURPOSE} {head.repo.id}"),
        ) as form:
            folder = form.fields.get("folder", "").strip().strip("/")
            await _put_files(visit, address, folder, form.files)
            count = len(form.files)
    except (InvalidRequest, Conflict, NotAllowed, TooLarge) as error:
        return await _show_upload(visit, head, folder, problem=error)
    toast = f"{plural(count, 'file')} {'is' if count == 1 else 'are'} there."
    return go_on(visit, _folder_path(head, folder), toast=toast)


async def _put_files(
    visit: PageVisit, address: RepoAddress, folder: str, chosen: list[UploadedFile]
) -> None:
    if not chosen:
        raise InvalidRequest("Choose at least one file.")
    paths = [f"{folder}/{each.name}" if folder else each.name for each in chosen]
    for path in paths:
        check_path(path)
    for path, each in zip(paths, chosen, strict=True):
        media_type = uploads.guess_media_type(path)
        upload = Upload(path=path, media_type=media_type, size=each.content.size)
        await uploads.put_file(
            visit.database, visit.person, address, upload, pieces_of(each.content)
        )


async def _show_upload(
    visit: PageVisit, head: RepoHead, folder: str, *, problem: HubError | None = None
) -> Response:
    status = 200 if problem is None else 422 if problem.status == 400 else problem.status  # noqa: PLR2004 - HTTP
    return await render(
        visit,
        "repos/upload.html",
        frame=head.frame,
        status=status,
        head=head,
        folder=folder,
        back=_folder_path(head, folder),
        largest=visit.hub.settings.limits.file_bytes,
        problem=None if problem is None else problem.message,
    )


@router.get(f"{BUCKET_PAGE}/delete/{{path:path}}")
@router.get(f"{_CONTAINER_PAGE}/delete/{{path:path}}")
async def get_delete_page(visit: SignedInVisit, address: FilesRepo, path: str) -> Response:
    head = await _writable(visit, address)
    async with visit.database.read() as conn:
        file = await files.get(conn, head.repo, path)
    return await render(visit, "repos/delete.html", frame=head.frame, head=head, file=file)


@router.post(f"{BUCKET_PAGE}/delete/{{path:path}}")
@router.post(f"{_CONTAINER_PAGE}/delete/{{path:path}}")
async def delete_file(
    visit: SignedInVisit, address: FilesRepo, path: str, form: FormFields
) -> Response:
    async with visit.database.transaction() as conn:
        repo = await repos.get(conn, visit.person, address, Right.write)
        visit.check(form, f"{PURPOSE} {repo.id}")
        file = await files.get(conn, repo, path)
        await files.change_files(conn, visit.person, repo, [FileRemoval(path=file.path)])
    return go_to(visit, files_path(repo, path_of(repo)), toast=f"{file.path} is deleted.")


async def _writable(visit: PageVisit, address: RepoAddress) -> RepoHead:
    async with visit.database.read() as conn:
        return await get_head(conn, visit, address, tab=RepoTab.files, right=Right.write)


def _folder_path(head: RepoHead, folder: str) -> str:
    root = files_path(head.repo, head.path)
    return f"{head.path}/tree/{quote(folder)}" if folder else root
