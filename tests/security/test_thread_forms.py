"""Attacks on the pages of threads: forms of other sites, stolen tokens, texts that want to run."""

import httpx2
import pytest

from community.discussions import PATH, history_of
from hublet.core.database import Database
from people import Headers, sign_in
from repositories import a_repo
from security.markdown_corpus import SCRIPTS
from web.parsed_pages import HTML, parse
from web.thread_scenes import PAGES, a_thread, enter, open_page, token_of

VERBS = [
    "comment",
    "comment/{}/edit",
    "comment/{}/hide",
    "comment/{}/react",
    "title",
    "status",
    "pin",
    "ignore",
    "merge",
    "conflicts",
]
FIELDS = {
    "comment": "Forged",
    "content": "Forged",
    "title": "Forged",
    "add": "heart",
    "status": "close",
    "pinned": "true",
    "ignore": "true",
}


@pytest.fixture
async def thread(client: httpx2.AsyncClient, ada: Headers) -> str:
    await a_repo(client, ada, "ada/engine")
    return await a_thread(client, ada)


async def path_of(client: httpx2.AsyncClient, thread: str, verb: str) -> str:
    comment = (await client.get(f"{PATH}/1")).json()["events"][0]["id"]
    return f"{thread}/{verb.format(comment)}"


@pytest.mark.parametrize("verb", VERBS)
async def test_a_form_without_its_token_or_from_elsewhere_changes_nothing(
    client: httpx2.AsyncClient, database: Database, thread: str, verb: str
) -> None:
    await enter(client, database, "ada")
    token, path = await token_of(client), await path_of(client, thread, verb)
    before = (await client.get(f"{PATH}/1")).json()

    without = await client.post(path, data=FIELDS, headers=HTML)
    elsewhere = await client.post(
        path, data=FIELDS | {"form_token": token}, headers=HTML | {"Sec-Fetch-Site": "cross-site"}
    )
    client.cookies.clear()
    signed_out = await client.post(path, data=FIELDS | {"form_token": token}, headers=HTML)

    assert (without.status_code, elsewhere.status_code, signed_out.status_code) == (403, 403, 303)
    assert signed_out.headers["location"].startswith("/login")
    assert (await client.get(f"{PATH}/1")).json() == before


async def test_the_token_of_one_repository_opens_no_other(
    client: httpx2.AsyncClient, database: Database, thread: str, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/other")
    await enter(client, database, "ada")
    token = await token_of(client, "/ada/other/discussions/new")

    response = await client.post(
        f"{thread}/comment", data={"form_token": token, "comment": "Forged"}, headers=HTML
    )

    assert response.status_code == 403
    assert len(await history_of(client, f"{PATH}/1")) == 1


@pytest.mark.parametrize("path", ["preview", "attachments"])
async def test_what_a_script_sends_needs_the_token_of_its_page(
    client: httpx2.AsyncClient, database: Database, thread: str, path: str
) -> None:
    await enter(client, database, "ada")

    response = await client.post(
        f"{PAGES}/{path}", content=b"text=hello", headers={"Form-Token": "00" * 64}
    )

    assert response.status_code == 403


async def test_hostile_texts_stay_texts_wherever_a_thread_shows_them(
    client: httpx2.AsyncClient, database: Database, thread: str
) -> None:
    bob = await sign_in(database, "bob")
    for title in ('"><script>alert(1)</script>', "</title><img src=x onerror=alert(1)>"):
        await a_thread(client, bob, title=title, description=title)
    for text in SCRIPTS[:40]:
        await client.post(f"{PATH}/1/comment", headers=bob, json={"comment": text})
    await enter(client, database, "ada")

    for path in (PAGES, f"{PAGES}/1", f"{PAGES}/2", f"{PAGES}/3", f"{PAGES}?search=%3Cscript%3E"):
        page = await open_page(client, path)
        scripts = {each.attributes.get("src", "").partition("?")[0] for each in page.all("script")}
        assert scripts <= {"/static/hublet.js", "/static/threads.js"}
        assert [each for tag in ("iframe", "object", "style") for each in page.all(tag)] == []


async def test_a_hostile_search_is_shown_as_it_was_typed(
    client: httpx2.AsyncClient, thread: str
) -> None:
    response = await client.get(PAGES, params={"search": '"><b>x'}, headers=HTML)

    assert parse(response).one("input", id="search").attributes["value"] == '"><b>x'
    assert '"><b>x' not in response.text
