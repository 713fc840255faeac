"""HTTP for the forms that change files: edit, create, delete, upload."""

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Annotated, Any

from fastapi import Query, Response
from markupsafe import Markup

from hublet.core.errors import Conflict, HubError, InvalidRequest, NotAllowed, TooLarge
from hublet.core.http.exchange import allow_streaming
from hublet.core.pages import PageRouter
from hublet.login.auth import FormFields
from hublet.repos.auth import ROOT_REPO, body_of
from hublet.repos.browse import revisions
from hublet.repos.browse.auth import IN_REVISION
from hublet.repos.browse.records import Revision
from hublet.repos.commits import edits
from hublet.repos.commits.edits import LARGEST_TEXT, Edit, content_of
from hublet.repos.commits.operations import AddFile, CommitResult, DeleteFile, Operation
from hublet.repos.commits.targets import CommitAddress
from hublet.repos.errors import EntryNotFound, InvalidCommitPath, PathChanged
from hublet.repos.git import history
from hublet.repos.names import MAX_PATH_BYTES
from hublet.storage.object_store import open_store
from hublet.web.files.auth import FilesVisit, RequestedEdit, open_files
from hublet.web.files.edit_forms import (
    COMMIT,
    PROPOSE,
    EditedText,
    EditForm,
    find_text,
    form_of,
    header_of,
    is_markdown,
    load_text,
    upload_title,
    with_line_ends_of,
)
from hublet.web.files.folders import place_of
from hublet.web.files.views import CommitLine, commit_line
from hublet.web.pages import go_on, render
from hublet.web.repo_head import PURPOSE
from hublet.web.uploads import UploadForm, read_upload

router = PageRouter()

# Texts and files may be longer than other forms; `read_upload` has limits of its own.
allow_streaming("POST", r"/((datasets|spaces|kernels)/)?[^/]+/[^/]+/(edit|new|upload)/.+")

# What a person can mend, or has to read beside what was typed.
_REFUSALS = (InvalidRequest, Conflict, NotAllowed, TooLarge, InvalidCommitPath)
_KEEP_STATUS = (Conflict, NotAllowed, TooLarge)

_Path = Annotated[str, Query(max_length=MAX_PATH_BYTES)]


@router.get(ROOT_REPO + "/edit" + IN_REVISION)
async def get_edit_page(files: RequestedEdit) -> Response:
    file = await load_text(files)
    return await _show_editor(files, _edit_form(files), file)


@router.post(ROOT_REPO + "/edit" + IN_REVISION)
async def save_file(files: RequestedEdit) -> Response:
    """Commit a changed text; with another path, the file moves there."""
    async with _read_form(files) as form:
        fields = form.fields
    file = await find_text(files)
    if "preview" in fields:
        return await _show_editor(files, replace(_edit_form(files), typed=fields), file)
    path = fields.get("path", "").strip()
    title = f"Update {path}" if path == files.path else f"Rename {files.path} to {path}"
    try:
        edit = _edit_of(files, fields, file, path=path, title=title)
        result = await _commit(files, fields, edit)
    except PathChanged as error:
        return await _show_conflict(files, fields, error)
    except _REFUSALS as error:
        shown = _refused(_edit_form(files), fields, error)
        return await _show_editor(files, shown, file, status=_status_of(error))
    return _finish(files, result, files.links.blob(path))


def _edit_form(files: FilesVisit) -> EditForm:
    links = files.links
    return form_of(
        files,
        links.edit(files.path),
        back=links.blob(files.path),
        title=f"Update {files.path}",
    )


def _edit_of(
    files: FilesVisit,
    fields: Mapping[str, str],
    file: EditedText | None,
    *,
    path: str,
    title: str,
) -> Edit:
    # Empty after the file was deleted while somebody typed: it is created anew.
    seen = fields.get("oid") or None
    typed = fields.get("text", "")
    text = with_line_ends_of(typed, file.text if file else "")
    if file is not None and file.oid == seen and (text, path) == (file.text, files.path):
        raise InvalidRequest("Nothing was changed: neither the text nor the path.")
    added = _add(files, path, text)
    expected = {files.path: seen}
    operations: list[Operation] = [added]
    if path != files.path:
        expected[path] = None
        if seen is not None:
            moved = replace(added, moved_from=files.path)
            operations = [moved, DeleteFile(path=files.path)]
    return Edit(header=header_of(fields, title), operations=operations, expected=expected)


def _add(files: FilesVisit, path: str, text: str) -> AddFile:
    if not path:
        raise InvalidRequest("The path must not be empty.")
    if len(text.encode()) > LARGEST_TEXT:
        raise TooLarge("The text must have at most 1 MB; upload a longer one as a file.")
    return AddFile(path=path, content=content_of(open_store(files.visit.hub.settings), text))


async def _show_conflict(files: FilesVisit, fields: Mapping[str, str], error: HubError) -> Response:
    """Show the form again on top of what somebody else made of the file meanwhile."""
    files = await open_files(files.visit, files.address, files.name, files.path)
    file = await find_text(files)
    newer = await asyncio.to_thread(_last_commit, files.revision, files.path)
    form = replace(_refused(_edit_form(files), fields, error), newer=newer)
    return await _show_editor(files, form, file, status=error.status)


def _last_commit(revision: Revision, path: str) -> CommitLine | None:
    found = history.last_commits(revision.folder, revision.commit, [path])
    return commit_line(found[path]) if path in found else None


@router.get(ROOT_REPO + "/new" + IN_REVISION)
async def get_new_page(files: RequestedEdit, path: _Path = "") -> Response:
    start = f"{files.path}/{path}" if files.path else path
    return await _show_editor(files, replace(_new_form(files), typed={"path": start}), None)


@router.post(ROOT_REPO + "/new" + IN_REVISION)
async def create_file(files: RequestedEdit) -> Response:
    async with _read_form(files) as form:
        fields = form.fields
    if "preview" in fields:
        return await _show_editor(files, replace(_new_form(files), typed=fields), None)
    path = fields.get("path", "").strip()
    try:
        text = with_line_ends_of(fields.get("text", ""), "")
        edit = Edit(
            header=header_of(fields, f"Create {path}"),
            operations=[_add(files, path, text)],
            expected={path: None},
        )
        result = await _commit(files, fields, edit)
    except _REFUSALS as error:
        shown = _refused(_new_form(files), fields, error)
        return await _show_editor(files, shown, None, status=_status_of(error))
    return _finish(files, result, files.links.blob(path))


def _new_form(files: FilesVisit) -> EditForm:
    links = files.links
    return form_of(
        files, links.new(files.path), back=links.tree(files.path), title="Create the file"
    )


@router.get(ROOT_REPO + "/delete" + IN_REVISION)
async def get_delete_page(files: RequestedEdit) -> Response:
    return await _show_delete(files, _delete_form(files))


@router.post(ROOT_REPO + "/delete" + IN_REVISION)
async def delete_file(files: RequestedEdit, fields: FormFields) -> Response:
    """Delete a file, or a folder with everything in it."""
    files.visit.check(fields, f"{PURPOSE} {files.head.repo.id}")
    edit = Edit(
        header=header_of(fields, f"Delete {files.path}"),
        operations=[DeleteFile(path=files.path)],
        expected={files.path: fields.get("oid", "")},
    )
    try:
        result = await _commit(files, fields, edit)
    except _REFUSALS as error:
        files = await open_files(files.visit, files.address, files.name, files.path)
        shown = _refused(_delete_form(files), fields, error)
        return await _show_delete(files, shown, status=_status_of(error))
    return _finish(files, result, await _folder_left(files, result))


def _delete_form(files: FilesVisit) -> EditForm:
    links = files.links
    return form_of(
        files,
        links.delete(files.path),
        back=links.blob(files.path),
        title=f"Delete {files.path}",
    )


async def _show_delete(files: FilesVisit, form: EditForm, *, status: int = 200) -> Response:
    entries = await revisions.find_entries(files.revision, [files.path])
    if not entries and form.problem is None:
        raise EntryNotFound(files.path)
    entry = entries[0] if entries else None
    return await _render(files, "files/delete.html", form, status=status, entry=entry)


async def _folder_left(files: FilesVisit, result: CommitResult) -> str:
    """Return the address of the nearest folder that is still there."""
    after = replace(files.revision, commit=result.oid)
    folder = files.path.rpartition("/")[0]
    while folder and not await revisions.find_entries(after, [folder]):
        folder = folder.rpartition("/")[0]
    return files.links.tree(folder)


@router.get(ROOT_REPO + "/upload" + IN_REVISION)
async def get_upload_page(files: RequestedEdit) -> Response:
    return await _show_upload(files, replace(_upload_form(files), typed={"folder": files.path}))


@router.post(ROOT_REPO + "/upload" + IN_REVISION)
async def upload_files(files: RequestedEdit) -> Response:
    """Commit files that were chosen or dropped; those of the same path are replaced."""
    fields: Mapping[str, str] = {"folder": files.path}
    try:
        async with _read_form(files) as form:
            fields = form.fields
            paths = _paths_of(form)
            edit = Edit(
                header=header_of(fields, upload_title(paths)),
                operations=[
                    AddFile(path=path, content=each.content)
                    for path, each in zip(paths, form.files, strict=True)
                ],
            )
            result = await _commit(files, fields, edit)
    except _REFUSALS as error:
        shown = _refused(_upload_form(files), fields, error)
        return await _show_upload(files, shown, status=_status_of(error))
    folder = fields.get("folder", "").strip().strip("/")
    only = files.links.blob(paths[0]) if len(paths) == 1 else files.links.tree(folder)
    return _finish(files, result, only)


def _paths_of(form: UploadForm) -> list[str]:
    if not form.files:
        raise InvalidRequest("Choose at least one file.")
    folder = form.fields.get("folder", "").strip().strip("/")
    return [f"{folder}/{each.name}" if folder else each.name for each in form.files]


def _upload_form(files: FilesVisit) -> EditForm:
    links = files.links
    return form_of(
        files, links.upload(files.path), back=links.tree(files.path), title="Upload files"
    )


async def _show_upload(files: FilesVisit, form: EditForm, *, status: int = 200) -> Response:
    largest = files.visit.hub.settings.limits.file_bytes
    return await _render(files, "files/upload.html", form, status=status, largest=largest)


def _read_form(files: FilesVisit) -> AbstractAsyncContextManager[UploadForm]:
    """Read the form of a page; its token is checked before a file is taken."""
    visit = files.visit
    purpose = f"{PURPOSE} {files.head.repo.id}"
    return read_upload(
        body_of(visit.request),
        visit.request.headers.get("content-type", ""),
        store=open_store(visit.hub.settings),
        largest=visit.hub.settings.limits.file_bytes,
        check=lambda fields: visit.check(fields, purpose),
    )


async def _commit(files: FilesVisit, fields: Mapping[str, str], edit: Edit) -> CommitResult:
    way = fields.get("way", COMMIT)
    if way not in {COMMIT, PROPOSE}:
        raise InvalidRequest(f"way must be {COMMIT} or {PROPOSE}.")
    address = CommitAddress(repo=files.address, revision=files.name, create_pr=way == PROPOSE)
    return await edits.commit_edit(files.visit.database, files.visit.person, address, edit)


def _refused(form: EditForm, fields: Mapping[str, str], error: HubError) -> EditForm:
    return replace(form, typed=fields, problem=error.message)


def _status_of(error: HubError) -> int:
    return error.status if isinstance(error, _KEEP_STATUS) else 422


def _finish(files: FilesVisit, result: CommitResult, path: str) -> Response:
    """Go to what was changed, or to the pull request."""
    if result.pull_request_url:
        number = result.pull_request_url.rpartition("/")[2]
        path = f"{files.head.path}/discussions/{number}"
        toast = f"Pull request #{number} is open."
    elif result.is_new:
        toast = f"Commit {result.oid[:7]} is in {files.name}."
    else:
        toast = f"Nothing changed: {files.name} has all of it already."
    return go_on(files.visit, path, toast=toast)


async def _show_editor(
    files: FilesVisit, form: EditForm, file: EditedText | None, *, status: int = 200
) -> Response:
    path = form.value("path", files.path)
    text = form.value("text", file.text if file else "")
    preview = await _draw(files, path, text) if "preview" in form.typed else None
    return await _render(
        files,
        "files/edit.html",
        form,
        status=status,
        file=file,
        path=path,
        text=text,
        is_markdown=is_markdown(path),
        preview=preview,
    )


async def _draw(files: FilesVisit, path: str, text: str) -> Markup:
    from hublet.web.rendering import markdown  # noqa: PLC0415 - by the first page that needs it

    if not is_markdown(path):
        return Markup('<p class="quiet">Only Markdown has a preview: name the file .md.</p>')
    return await asyncio.to_thread(
        markdown.render, text.replace("\r\n", "\n"), place_of(files, path)
    )


async def _render(
    files: FilesVisit, template: str, form: EditForm, *, status: int, **values: Any
) -> Response:
    head = files.head
    return await render(
        files.visit,
        template,
        frame=head.frame,
        status=status,
        head=head,
        files=files,
        form=form,
        **values,
    )
