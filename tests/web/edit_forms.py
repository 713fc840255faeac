"""Forms that change files, filled in and sent as a browser without script does."""

from collections.abc import Sequence
from typing import Any

import httpx2

from hublet.core.database import Database
from hublet.repos.git import bare_repos, trees
from hublet.repos.records import MAIN
from hublet.repos.refs import store as refs
from web.parsed_pages import HTML, Element, parse


async def open_form(client: httpx2.AsyncClient, path: str) -> Element:
    """Return the page of a form."""
    response = await client.get(path, headers=HTML)
    assert response.status_code == 200, (response.status_code, response.text[:2000])
    return parse(response)


def fields_of(form: Element) -> dict[str, str]:
    """Return what a browser sends of the inputs of a form that nobody touched."""
    return {
        each.attributes["name"]: each.attributes.get("value", "")
        for each in form.all("input")
        if each.attributes.get("type") != "file"
        if each.attributes.get("type") != "radio" or "checked" in each.attributes
    }


async def send(
    client: httpx2.AsyncClient,
    page: str | Element,
    fields: dict[str, str] | None = None,
    *,
    files: Sequence[tuple[str, bytes]] = (),
    **headers: str,
) -> httpx2.Response:
    """Send the form of a page, with what is typed into it by name."""
    root = await open_form(client, page) if isinstance(page, str) else page
    [form] = root.all("form", class_="edit-file")
    values, action = fields_of(form) | (fields or {}), form.attributes["action"]
    if form.attributes.get("enctype") != "multipart/form-data":
        return await client.post(action, data=values, headers=HTML | headers)
    parts: list[tuple[str, Any]] = [(name, (None, value)) for name, value in values.items()]
    parts += [("file", (name, content, "application/octet-stream")) for name, content in files]
    return await client.post(action, files=parts, headers=HTML | headers)


async def read_all(database: Database, repo_id: str, ref: str = MAIN) -> dict[str, bytes]:
    """Return what git holds in a ref, by path."""
    folder = bare_repos.folder_of(database.hub.settings.database.data_dir, repo_id)
    async with database.read() as conn:
        commit = await refs.find(conn, repo_id, ref)
    assert commit is not None
    entries = trees.list_tree(folder, commit, recursive=True)
    return {each.path: trees.read_blob(folder, each.oid) for each in entries if each.type == "file"}
