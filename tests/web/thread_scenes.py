"""Threads in front of a browser, as far as HTTP goes: who looks, what the page says, its forms."""

import httpx2

from community.discussions import PATH, a_discussion, commit, post_commit
from hublet.core.database import Database
from hublet.login import sessions
from hublet.login.records import Visitor
from people import Headers, a_user
from web.parsed_pages import HTML, Element, parse

PAGES = "/ada/engine/discussions"


async def enter(client: httpx2.AsyncClient, database: Database, name: str | None) -> None:
    """Let the browser be this person's, or nobody's."""
    client.cookies.clear()
    if name is None:
        return
    user = await a_user(database, name)
    async with database.transaction() as conn:
        _, value = await sessions.begin(conn, user, Visitor(address="127.0.0.1", agent=None))
    client.cookies.set("hublet_session", value)


async def open_page(client: httpx2.AsyncClient, path: str, status: int = 200) -> Element:
    response = await client.get(path, headers=HTML)
    assert response.status_code == status, response.text
    return parse(response)


async def token_of(client: httpx2.AsyncClient, path: str = f"{PAGES}/1") -> str:
    """Return the token of the forms of a thread's page."""
    page = await open_page(client, path)
    return page.all("input", name="form_token")[-1].attributes["value"]


async def send(
    client: httpx2.AsyncClient, verb: str, *, thread: str = f"{PAGES}/1", **fields: str
) -> httpx2.Response:
    """Send a form of the thread's own page."""
    data = {"form_token": await token_of(client, thread)} | fields
    return await client.post(f"{thread}/{verb}", data=data, headers=HTML)


def texts_of(page: Element) -> list[str]:
    """Return the comments of a page, as they are rendered."""
    return [
        each.text for each in page.all("div", class_="md") if "body" in each.attributes["class"]
    ]


def events_of(page: Element) -> list[str]:
    return [each.text for each in page.all("li", class_="ev")]


def problem_of(page: Element) -> str:
    return page.one("p", class_="notice").text


async def a_thread(client: httpx2.AsyncClient, who: Headers, **body: str) -> str:
    """Open a discussion in ada/engine; return the path of its page."""
    address = await a_discussion(client, who, **body)
    return address.replace(PATH, PAGES)


BASE = "one\ntwo\nthree\nfour\n"


async def a_conflict(client: httpx2.AsyncClient, owner: Headers, author: Headers) -> str:
    """Open a pull request that changed the lines 2 and 3, as main did; return its page."""
    await commit(client, owner, {"notes.txt": BASE})
    opened = await post_commit(
        client, author, {"notes.txt": "one\nTWO\nTHREE\nfour\n"}, summary="Shout", create_pr="1"
    )
    assert opened.status_code == 200, opened.text
    await commit(client, owner, {"notes.txt": "one\n2\n3\nfour\n"})
    return f"{PAGES}/{opened.json()['pullRequestUrl'].rpartition('/')[2]}"
