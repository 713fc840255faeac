"""An inbox in a browser, for tests: threads to hear of, the page, and its buttons."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import httpx2

from hublet.core.database import Database
from hublet.core.ids import new_object_id
from hublet.notifications.inbox import service
from hublet.notifications.records import InboxItem, Involvement
from people import Headers
from web.parsed_pages import HTML, Element, parse

INBOX = "/notifications"


async def hear_of(
    client: httpx2.AsyncClient,
    database: Database,
    headers: Headers,
    threads: Mapping[str, Sequence[str]],
    *,
    user_id: str,
    status: str = "open",
    involvement: Involvement = Involvement.watched,
) -> dict[str, str]:
    """Let a user hear of new discussions, by their repositories; return their ids by title."""
    found = {}
    for repo, titles in threads.items():
        info = await client.get(f"/api/models/{repo}", headers=headers)
        if info.status_code != 200:
            body = {"name": repo.partition("/")[2]}
            await client.post("/api/repos/create", headers=headers, json=body)
            info = await client.get(f"/api/models/{repo}", headers=headers)
        repo_id = info.json()["_id"]
        for title in titles:
            found[title] = new_object_id()
            async with database.transaction() as conn:
                await conn.execute(
                    """
                    INSERT INTO threads (id, kind, title, repo_id, number, is_pull_request, status,
                        created_at, updated_at)
                    SELECT $1, 'discussion', $2, $3, coalesce(max(number), 0) + 1, TRUE, $4, 1, 1
                    FROM threads WHERE repo_id = $3
                    """,
                    found[title], title, repo_id, status,
                )  # fmt: skip
                item = InboxItem(
                    thread_id=found[title], type="model", place_id=repo_id, event_id=None
                )
                await service.deliver(conn, item, {user_id: involvement})
    return found


async def open_inbox(client: httpx2.AsyncClient, path: str = INBOX) -> Element:
    response = await client.get(path, headers=HTML)
    assert response.status_code == 200, response.text
    return parse(response)


def titles_on(page: Element) -> dict[str, list[str]]:
    """Return the titles of the rows by the names of their groups."""
    return {
        group.attributes["aria-label"]: [
            re.sub(r" #\d+$", "", each.text) for each in group.all("a", class_="title")
        ]
        for group in page.all("section", class_="inbox-group")
    }


def tabs_on(page: Element) -> list[str]:
    return [each.text for each in page.one("div", id="inbox-tabs").all("a")]


async def press(
    client: httpx2.AsyncClient,
    page: Element,
    button: str,
    *,
    ticked: Sequence[str] = (),
    **headers: str,
) -> httpx2.Response:
    """Press a button of the list, named by what it does, as in `done page`."""
    form = page.one("form", id="inbox-form")
    assert form.all("button", value=button), [each.attributes for each in form.all("button")]
    fields: dict[str, Any] = {"do": button, "id": list(ticked)}
    for each in form.all("input", type="hidden"):
        fields.setdefault(each.attributes["name"], []).append(each.attributes["value"])
    return await client.post(form.attributes["action"], data=fields, headers=HTML | headers)


async def undo(client: httpx2.AsyncClient, page: Element) -> httpx2.Response:
    form = page.one("form", class_="undo")
    fields = {
        each.attributes["name"]: each.attributes["value"]
        for each in form.all("input", type="hidden")
    }
    return await client.post(form.attributes["action"], data=fields, headers=HTML)
