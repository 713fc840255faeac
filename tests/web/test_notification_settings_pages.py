"""The settings of notifications in a browser: preferences, addresses, what is watched and muted."""

import httpx2
import pytest

from hublet.core.database import Database
from hublet.notifications.preferences.switches import PreferenceKey
from login.login_pages import a_person, log_in, notices_in
from people import Headers, an_organization, sign_in
from repositories import a_repo
from statements import Statements
from web.parsed_pages import HTML, parse

PATH = "/settings/notifications"
WATCHED, MUTED = f"{PATH}/watched", f"{PATH}/muted"


@pytest.fixture
async def ada(client: httpx2.AsyncClient, database: Database) -> Headers:
    """Ada, signed in with a browser."""
    await a_person(database, "ada", email="ada@example.com")
    await log_in(client, "ada")
    return await sign_in(database, "ada")


async def send(
    client: httpx2.AsyncClient, action: str, page: str = PATH, **fields: str
) -> httpx2.Response:
    """Send the form of a page; all of them have the same token."""
    form = parse(await client.get(page, headers=HTML)).all("form", method="post", action=action)[0]
    [token] = [each.attributes["value"] for each in form.all("input", name="form_token")]
    return await client.post(action, data={"form_token": token} | fields, headers=HTML)


async def chosen(client: httpx2.AsyncClient, ada: Headers) -> dict[str, bool]:
    answer = (await client.get("/api/settings/notifications", headers=ada)).json()
    found: dict[str, bool] = answer["notifications"]
    return found


async def test_every_switch_stands_in_words_and_is_saved(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    before = await chosen(client, ada)
    page = parse(await client.get(PATH, headers=HTML))
    form = page.one("form", class_="preferences")
    boxes = {each.attributes["name"]: each for each in form.all("input", type="checkbox")}
    assert set(PreferenceKey) <= boxes.keys()
    assert {name: "checked" in boxes[name].attributes for name in PreferenceKey} == before

    flipped = {name: "on" for name, on in before.items() if not on}
    saved = await send(
        client,
        PATH,
        **flipped,
        prepaidAmount="20 USD",
        product_updates_after="2026-11-15T12:30",
    )
    assert saved.status_code == 303
    after = await chosen(client, ada)
    assert after.pop("product_updates_after") == "2026-11-15T12:30:00.000Z"
    assert after == {name: not on for name, on in before.items()}

    refused = await send(client, PATH, launch_prepaid_credits="on", prepaidAmount=" ")
    assert refused.status_code == 422
    assert "prepaidAmount" in notices_in(refused)[0]
    assert await chosen(client, ada) == after | {
        "product_updates_after": "2026-11-15T12:30:00.000Z"
    }


async def test_the_page_says_where_mails_go(client: httpx2.AsyncClient, ada: Headers) -> None:
    await client.post("/api/settings/emails", headers=ada, json={"email": "a@navy.example"})
    page = await client.get(PATH, headers=HTML)
    assert "Mails go to ada@example.com" in page.text
    assert "a@navy.example" in page.text
    assert 'href="/settings/account"' in page.text


async def test_what_is_watched_is_added_by_name_searched_and_removed(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    await a_repo(client, bob, "bob/engine")
    await a_repo(client, bob, "bob/hidden", private=True)
    await an_organization(database, "navy")
    for name in ("bob/engine", "bob", "navy"):
        assert (await send(client, WATCHED, WATCHED, name=f" {name}/ ")).status_code == 303
    for name in ("bob/hidden", "nobody", "datasets/bob/engine", "a/b/c/d"):
        refused = await send(client, WATCHED, WATCHED, name=name)
        assert refused.status_code == 422
        assert f'value="{name}"' in refused.text
        assert f"repository {name}, or you cannot see it" in notices_in(refused)[0]

    page = parse(await client.get(WATCHED, headers=HTML))
    assert [each.text for each in page.one("main").all("h2")] == [
        "Repositories",
        "People",
        "Organizations",
    ]
    found = parse(await client.get(f"{WATCHED}?q=ENG", headers=HTML))
    assert [each.text for each in found.all("a", class_="name")] == ["bob/engine"]
    none = await client.get(f"{WATCHED}?q=wheel", headers=HTML)
    assert "None of 3 match." in none.text

    form = found.one("form", action=f"{WATCHED}/remove")
    fields = {each.attributes["name"]: each.attributes["value"] for each in form.all("input")}
    await client.post(f"{WATCHED}/remove", data=fields)
    watched = (await client.get("/api/settings/watch", headers=ada)).json()["watched"]
    assert [each["name"] for each in watched] == ["bob", "navy"]


async def test_what_is_muted_is_listed_with_its_page_and_heard_of_again(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")
    words = {"title": "Does it run?", "description": "On one card?"}
    await client.post("/api/models/ada/engine/discussions", headers=ada, json=words)
    await client.post("/ada/engine/discussions/1/mute", headers=ada)
    thread = (await client.get("/api/models/ada/engine/discussions/1", headers=ada)).json()
    body = {"add": [{"type": "thread", "id": thread["id"]}]}
    await client.patch("/api/settings/mute", headers=ada, json=body)
    assert (await send(client, MUTED, MUTED, name="ada")).status_code == 422
    assert (await send(client, MUTED, MUTED, name="ada/engine")).status_code == 303

    page = parse(await client.get(MUTED, headers=HTML))
    links = {each.text: each.attributes["href"] for each in page.all("a", class_="name")}
    assert links == {
        "ada/engine": "/ada/engine",
        "Does it run?": "/ada/engine/discussions/1",
    }
    for form in page.all("form", action=f"{MUTED}/remove"):
        fields = {each.attributes["name"]: each.attributes["value"] for each in form.all("input")}
        await client.post(f"{MUTED}/remove", data=fields)
    assert (await client.get("/api/settings/mute", headers=ada)).json() == {"muted": []}


@pytest.mark.usefixtures("ada")
async def test_its_pages_take_few_statements(
    client: httpx2.AsyncClient, statements: Statements
) -> None:
    counted = []
    for path in (PATH, WATCHED, MUTED):
        statements.begin()
        await client.get(path, headers=HTML)
        counted.append(len(statements.noted))
    # One of them finds the session, and one counts what is unread.
    assert counted == [4, 3, 3]
