"""The page of a thread: its timeline, its forms, and what each person may do there."""

import re
from datetime import timedelta

import httpx2
import pytest

from community.discussions import PATH, a_discussion, disable_discussions, history_of
from hublet.accounts.records import Role
from hublet.core import clock
from hublet.core.database import Database
from hublet.web.threads import timeline
from people import Headers, an_organization, sign_in
from repositories import a_repo
from web.parsed_pages import HTML, Element, parse
from web.thread_scenes import (
    PAGES,
    a_thread,
    enter,
    events_of,
    open_page,
    problem_of,
    send,
    texts_of,
    token_of,
)


@pytest.fixture
async def repo_id(client: httpx2.AsyncClient, ada: Headers) -> str:
    return await a_repo(client, ada, "ada/engine")


@pytest.fixture
async def bob(database: Database) -> Headers:
    return await sign_in(database, "bob")


@pytest.fixture
async def thread(client: httpx2.AsyncClient, repo_id: str, bob: Headers) -> str:
    """The page of a thread that bob opened in ada's repository."""
    return await a_thread(client, bob, description="It *should*, @ada.\nSee #1.")


async def first_comment(client: httpx2.AsyncClient) -> str:
    details = (await client.get(f"{PATH}/1")).json()
    comment_id: str = details["events"][0]["id"]
    return comment_id


def forms_of(page: Element) -> set[str]:
    """Return what the forms of a thread's page do, by the end of their addresses."""
    actions = [
        each.attributes.get("action", "") for each in page.one("main", id="content").all("form")
    ]
    of_threads = [each for each in actions if "/discussions/1/" in each]
    return {re.sub(r".*/discussions/1/(comment/\w{24}/)?", "", each) for each in of_threads}


async def test_a_thread_shows_what_happened_in_order(
    client: httpx2.AsyncClient, thread: str, ada: Headers
) -> None:
    await client.post(f"{PATH}/1/comment", headers=ada, json={"comment": "It does."})
    await client.post(f"{PATH}/1/title", headers=ada, json={"title": "Another <title>"})
    await client.post(f"{PATH}/1/pin", headers=ada, json={"pinned": True})
    await client.post(f"{PATH}/1/status", headers=ada, json={"status": "closed"})
    await client.post(f"{PATH}/1/status", headers=ada, json={"status": "open"})

    page = await open_page(client, thread)

    assert page.one("h1").text == "Another <title> #1"
    assert texts_of(page) == ["It should, @ada. See #1.", "It does."]
    said = [re.sub(r" just now$", "", text) for text in events_of(page)]
    assert said == [
        "ada changed the title from Does it run? to Another <title>",
        "ada pinned this",
        "ada closed this",
        "ada opened this again",
    ]
    side = page.one("aside", id="thread-side")
    assert [each.text for each in side.all("li")] == ["bob", "ada"]


async def test_comments_have_the_anchors_that_mails_and_clients_print(
    client: httpx2.AsyncClient, thread: str
) -> None:
    comment_id = await first_comment(client)

    page = await open_page(client, thread)

    article = page.one("article", id=comment_id)
    links = [each.attributes["href"] for each in article.one("div", class_="md").all("a")]
    assert links == ["/ada", f"{PAGES}/1"]


RIGHTS = {
    None: set[str](),
    "carol": {"comment", "react", "ignore"},
    "bob": {"comment", "react", "ignore", "hide", "title"},
    "wanda": {"comment", "react", "ignore", "hide", "title", "pin", "delete"},
    "ada": {"comment", "react", "ignore", "hide", "title", "pin", "delete"},
}


@pytest.mark.parametrize("name", RIGHTS, ids=["stranger", "reader", "author", "writer", "owner"])
async def test_each_person_finds_the_forms_of_what_they_may_do(
    client: httpx2.AsyncClient, database: Database, ada: Headers, bob: Headers, name: str | None
) -> None:
    members = {"ada": Role.admin, "wanda": Role.write}
    await an_organization(database, "works", members=members)
    await a_repo(client, ada, "works/engine")
    await a_discussion(client, bob, "/api/models/works/engine/discussions")
    await enter(client, database, name)

    page = await open_page(client, "/works/engine/discussions/1")

    assert forms_of(page) == RIGHTS[name]


@pytest.mark.parametrize(
    ("verb", "fields", "status"),
    [
        pytest.param("comment", {"comment": "Hello"}, 303, id="comment"),
        pytest.param("title", {"title": "Mine now"}, 403, id="rename"),
        pytest.param("status", {"status": "close"}, 403, id="close"),
        pytest.param("pin", {"pinned": "true"}, 403, id="pin"),
        pytest.param("merge", {}, 403, id="merge"),
        pytest.param("delete", {}, 403, id="delete"),
        pytest.param("delete-ref", {}, 403, id="delete the ref"),
        pytest.param("comment/{}/hide", {}, 403, id="hide"),
        pytest.param("comment/{}/edit", {"content": "Mine"}, 403, id="edit"),
        pytest.param("comment/{}/react", {"add": "heart"}, 303, id="react"),
        pytest.param("ignore", {"ignore": "true"}, 303, id="mute"),
    ],
)
async def test_a_reader_may_take_part_and_change_nothing_of_others(
    client: httpx2.AsyncClient,
    database: Database,
    thread: str,
    verb: str,
    fields: dict[str, str],
    status: int,
) -> None:
    before = await history_of(client, f"{PATH}/1")
    path = verb.format(await first_comment(client))
    await enter(client, database, "carol")

    response = await send(client, path, **fields)

    assert response.status_code == status, response.text
    if status == 403:
        assert await history_of(client, f"{PATH}/1") == before


async def test_a_comment_is_sent_by_a_form_and_leads_to_itself(
    client: httpx2.AsyncClient, database: Database, thread: str
) -> None:
    await enter(client, database, "ada")

    response = await send(client, "comment", comment="One\r\n\r\nTwo")

    [_, (_, text)] = await history_of(client, f"{PATH}/1")
    assert text == "One\n\nTwo"
    new = (await client.get(f"{PATH}/1")).json()["events"][1]["id"]
    assert (response.status_code, response.headers["location"]) == (303, f"{thread}#{new}")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("  ", "comment: must say something, blanks alone do not count.", id="blank"),
        pytest.param("x" * 65_537, "comment must have at most 65536 characters.", id="too long"),
    ],
)
async def test_a_refused_comment_is_shown_again(
    client: httpx2.AsyncClient, database: Database, thread: str, text: str, problem: str
) -> None:
    await enter(client, database, "ada")

    response = await send(client, "comment", comment=text)

    assert response.status_code == 422
    page = parse(response)
    assert problem_of(page) == problem
    assert page.one("textarea", id="comment-text").text == text.strip()
    assert len(await history_of(client, f"{PATH}/1")) == 1


async def test_a_thread_is_closed_with_the_last_word(
    client: httpx2.AsyncClient, database: Database, thread: str
) -> None:
    await enter(client, database, "bob")

    await send(client, "comment", comment="Solved.", then="close")
    again = await send(client, "comment", comment="And again.", then="close")

    assert [kind for kind, _ in await history_of(client, f"{PATH}/1")] == [
        "comment",
        "comment",
        "status-change",
    ]
    assert again.status_code == 422
    page = parse(again)
    assert problem_of(page) == "This discussion is closed already."
    assert page.one("textarea", id="comment-text").text == "And again."
    assert page.one("button", name="then").attributes["value"] == "open"


async def test_an_edited_comment_says_so_and_shows_what_it_said(
    client: httpx2.AsyncClient, database: Database, thread: str
) -> None:
    await enter(client, database, "bob")
    comment_id = await first_comment(client)
    form = await open_page(client, f"{thread}?edit={comment_id}")
    assert form.one("textarea", id="edit-text").text == "It *should*, @ada. See #1."

    response = await send(client, f"comment/{comment_id}/edit", content="It does.")

    assert response.headers["location"] == f"{thread}#{comment_id}"
    page = await open_page(client, thread)
    assert texts_of(page) == ["It does."]
    assert "It *should*" in page.one("details", class_="former").text


async def test_a_refused_edit_keeps_what_was_typed(
    client: httpx2.AsyncClient, database: Database, thread: str
) -> None:
    await enter(client, database, "bob")
    comment_id = await first_comment(client)

    response = await send(client, f"comment/{comment_id}/edit", content=" ")

    assert response.status_code == 422
    assert problem_of(parse(response)).startswith("content: must say something")


async def test_a_hidden_comment_keeps_nothing_of_its_text(
    client: httpx2.AsyncClient, database: Database, thread: str, bob: Headers
) -> None:
    comment_id = await first_comment(client)
    await client.post(
        f"{PATH}/1/comment/{comment_id}/edit", headers=bob, json={"content": "The secret word"}
    )
    await enter(client, database, "ada")

    await send(client, f"comment/{comment_id}/hide")

    response = await client.get(thread, headers=HTML)
    assert "This comment was hidden by ada." in parse(response).one("article").text
    assert "secret" not in response.text
    assert "should" not in response.text


async def test_a_quotation_is_ready_to_be_answered(
    client: httpx2.AsyncClient, database: Database, thread: str
) -> None:
    await enter(client, database, "ada")

    response = await client.get(f"{thread}?quote={await first_comment(client)}", headers=HTML)

    assert "&gt; It *should*, @ada.\n&gt; See #1.\n\n</textarea>" in response.text


async def test_reactions_are_given_and_taken_back(
    client: httpx2.AsyncClient, database: Database, thread: str
) -> None:
    await enter(client, database, "ada")
    comment_id = await first_comment(client)

    await send(client, f"comment/{comment_id}/react", add="heart")
    given = (await open_page(client, thread)).one("button", **{"aria-pressed": "true"})
    await send(client, f"comment/{comment_id}/react", remove="heart")
    unknown = await send(client, f"comment/{comment_id}/react", add="skull")

    assert (given.attributes["name"], given.attributes["value"]) == ("remove", "heart")
    assert (await open_page(client, thread)).all("button", **{"aria-pressed": "true"}) == []
    assert unknown.status_code == 422


async def test_a_thread_is_muted_and_heard_of_again(
    client: httpx2.AsyncClient, database: Database, thread: str
) -> None:
    await enter(client, database, "carol")

    await send(client, "ignore", ignore="true")
    muted = (await open_page(client, thread)).one("button", name="ignore")
    await send(client, "ignore", ignore="false")

    assert muted.attributes["value"] == "false"
    assert (await open_page(client, thread)).one("button", name="ignore").attributes[
        "value"
    ] == "true"


async def test_a_thread_is_deleted_for_good(
    client: httpx2.AsyncClient, database: Database, thread: str
) -> None:
    await enter(client, database, "ada")

    response = await send(client, "delete")

    assert (response.status_code, response.headers["location"]) == (303, PAGES)
    assert "The discussion #1 is deleted." in (await client.get(PAGES, headers=HTML)).text
    assert (await client.get(thread, headers=HTML)).status_code == 404


async def test_deletion_needs_a_recent_login(
    client: httpx2.AsyncClient, database: Database, thread: str
) -> None:
    await enter(client, database, "ada")
    token = await token_of(client)
    clock.move(timedelta(minutes=20))

    for verb in ("delete", "delete-ref"):
        response = await client.post(f"{thread}/{verb}", data={"form_token": token})
        assert response.headers["location"].startswith("/login?next=")
    assert (await client.get(thread, headers=HTML)).status_code == 200


async def test_a_new_title_that_is_none_is_refused_where_it_was_typed(
    client: httpx2.AsyncClient, database: Database, thread: str
) -> None:
    await enter(client, database, "bob")

    response = await send(client, "title", title="x\ny" * 100)

    assert response.status_code == 422
    page = parse(response)
    assert page.one("input", id="new-title").attributes["value"].startswith("x")
    assert problem_of(page).startswith("title")


async def test_where_discussions_are_disabled_a_thread_can_only_be_read(
    client: httpx2.AsyncClient, database: Database, repo_id: str, thread: str
) -> None:
    await enter(client, database, "bob")
    token = await token_of(client)
    await disable_discussions(database, repo_id)

    response = await client.post(
        f"{thread}/comment", data={"form_token": token, "comment": "Hello"}, headers=HTML
    )

    assert response.status_code == 403
    page = parse(response)
    assert problem_of(page) == "Discussions are disabled in ada/engine."
    assert "comment" not in forms_of(page)


async def test_a_long_thread_shows_its_beginning_and_its_end(
    client: httpx2.AsyncClient,
    thread: str,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(timeline, "MAX_ENTRIES", 2)
    for number in range(4):
        await client.post(f"{PATH}/1/comment", headers=ada, json={"comment": f"Number {number}"})

    page = await open_page(client, thread)

    assert texts_of(page) == ["It should, @ada. See #1.", "Number 2", "Number 3"]
    [link] = page.one("li", id="cut").all("a")
    assert page.one("li", id="cut").text.startswith("2 entries")
    assert len(texts_of(await open_page(client, link.attributes["href"]))) == 5


async def test_a_script_gets_only_what_changes(
    client: httpx2.AsyncClient, database: Database, thread: str
) -> None:
    await enter(client, database, "ada")
    data = {"form_token": await token_of(client), "comment": "From a script"}

    sent = await client.post(f"{thread}/comment", data=data, headers={"Fragment": "live"})
    asked = await client.get(thread, headers={"Fragment": "live"})

    for response in (sent, asked):
        assert response.status_code == 200
        assert "Fragment" in response.headers["vary"]
        part = parse(response)
        assert texts_of(part)[-1] == "From a script"
        assert part.all("textarea") == part.all("html") == []


async def test_a_page_that_did_not_change_is_not_sent_again(
    client: httpx2.AsyncClient, thread: str, ada: Headers
) -> None:
    etag = (await client.get(thread, headers=HTML)).headers["etag"]

    same = await client.get(thread, headers=HTML | {"If-None-Match": etag})
    await client.post(f"{PATH}/1/comment", headers=ada, json={"comment": "More."})
    other = await client.get(thread, headers=HTML | {"If-None-Match": etag})

    assert (same.status_code, other.status_code) == (304, 200)


async def test_a_thread_that_is_not_there_is_not_found(
    client: httpx2.AsyncClient, repo_id: str
) -> None:
    await open_page(client, f"{PAGES}/9", status=404)


async def test_names_are_suggested_to_people_with_an_account(
    client: httpx2.AsyncClient, database: Database, thread: str
) -> None:
    await sign_in(database, "bobby")
    await sign_in(database, "boadicea")

    stranger = await client.get(f"{PAGES}/mentions?q=bo")
    await enter(client, database, "ada")
    names = await client.get(f"{PAGES}/mentions?q=BO")
    wild = await client.get(f"{PAGES}/mentions?q=%25")

    assert stranger.status_code == 303
    # Who takes part comes first.
    assert [each.text for each in parse(names).all("button")] == ["bob", "boadicea", "bobby"]
    assert wild.text == ""


async def test_a_file_is_attached_with_the_session(
    client: httpx2.AsyncClient, database: Database, thread: str
) -> None:
    await enter(client, database, "ada")
    headers = {"Form-Token": await token_of(client), "Content-Type": "image/png"}

    added = await client.post(f"{PAGES}/attachments", content=b"\x89PNG", headers=headers)
    refused = await client.post(
        f"{PAGES}/attachments",
        content=b"<svg/>",
        headers=headers | {"Content-Type": "image/svg+xml"},
    )

    assert added.status_code == 200
    found = await client.get(added.text.removeprefix("http://hub.test"))
    assert (found.content, found.headers["content-type"]) == (b"\x89PNG", "image/png")
    assert refused.status_code == 400


async def test_a_preview_is_a_part_of_a_page(
    client: httpx2.AsyncClient, database: Database, thread: str
) -> None:
    await enter(client, database, "ada")

    response = await client.post(
        f"{PAGES}/preview",
        data={"text": "**bold** <script>alert(1)</script>"},
        headers={"Form-Token": await token_of(client)},
    )

    part = parse(response)
    assert part.one("strong").text == "bold"
    assert part.all("script") == []
