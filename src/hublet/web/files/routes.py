"""HTTP for the pages of folders and files."""

from urllib.parse import quote

from fastapi import Response

from hublet.core.pages import PageRouter
from hublet.repos.auth import ROOT_REPO
from hublet.repos.browse import downloads, revisions
from hublet.repos.browse.auth import IN_REVISION
from hublet.web.auth import Visit
from hublet.web.files.auth import FilesVisit, RequestedFiles, render_gate
from hublet.web.files.folders import load_file_view, load_tree
from hublet.web.files.previews import load_preview
from hublet.web.pages import render

router = PageRouter()


@router.get(ROOT_REPO + "/tree")
async def go_to_main(visit: Visit) -> Response:
    return Response(status_code=307, headers={"Location": f"{quote(visit.request.url.path)}/main"})


@router.get(ROOT_REPO + "/tree" + IN_REVISION)
async def get_tree_page(
    files: RequestedFiles, cursor: str = "", *, commits: bool = False
) -> Response:
    if (elsewhere := await _other_kind(files, "file")) is not None:
        return elsewhere
    wanted = commits or "fragment" in files.visit.request.headers
    tree = await load_tree(files, cursor=cursor, with_commits=wanted)
    return await render(
        files.visit,
        "files/tree.html",
        frame=files.head.frame,
        head=files.head,
        files=files,
        tree=tree,
        base_url=files.visit.hub.settings.base_url,
    )


@router.get(ROOT_REPO + "/blob" + IN_REVISION)
async def get_file_page(
    files: RequestedFiles, *, code: bool = False, colours: bool = False
) -> Response:
    if (elsewhere := await _other_kind(files, "directory")) is not None:
        return elsewhere
    if not files.head.may_read:
        return await render_gate(files)
    file = await downloads.get_raw_file(files.revision, files.path)
    wanted = files.visit.request.headers.get("fragment")
    with_colours = colours or wanted == "lines"
    preview = None
    if wanted != "latest":
        preview = await load_preview(files, file, as_code=code, with_colours=with_colours)
    return await render(
        files.visit,
        "files/file.html",
        frame=files.head.frame,
        head=files.head,
        files=files,
        file=await load_file_view(files, file, with_commit=wanted == "latest"),
        preview=preview,
        as_code=code,
    )


async def _other_kind(files: FilesVisit, kind: str) -> Response | None:
    """Lead on to the page of a file from that of a folder, and the other way round."""
    if not files.path:
        return None
    entries = await revisions.find_entries(files.revision, [files.path])
    if not entries or entries[0].type != kind:
        return None
    links = files.links
    address = links.blob(files.path) if kind == "file" else links.tree(files.path)
    return Response(status_code=307, headers={"Location": address})
