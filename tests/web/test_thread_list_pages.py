"""Lists of threads in a browser, and the form that opens one."""

import httpx2
import pytest

from community.discussions import PATH, a_discussion, a_pull_request, commit, disable_discussions
from hublet.core.database import Database
from people import Headers, sign_in
from repositories import a_repo
from web.parsed_pages import HTML, Element, parse
from web.thread_scenes import PAGES, enter, open_page, problem_of, token_of


@pytest.fixture
async def repo_id(client: httpx2.AsyncClient, ada: Headers) -> str:
    return await a_repo(client, ada, "ada/engine")


def titles_in(page: Element) -> list[str]:
    return [each.text for each in page.all("a", class_="title")]


async def test_a_list_shows_open_threads_and_counts_the_closed_ones(
    client: httpx2.AsyncClient, repo_id: str, ada: Headers
) -> None:
    for title in ("First one", "Second one", "Third one"):
        await a_discussion(client, ada, title=title)
    await client.post(f"{PATH}/2/status", headers=ada, json={"status": "closed"})

    page = await open_page(client, PAGES)

    assert titles_in(page) == ["Third one", "First one"]
    tabs = page.one("nav", **{"aria-label": "State"})
    assert [each.text for each in tabs.all("a")] == ["Open 2", "Closed 1"]
    closed = await open_page(client, tabs.all("a")[1].attributes["href"])
    assert titles_in(closed) == ["Second one"]


@pytest.mark.parametrize(
    ("query", "titles"),
    [
        pytest.param("type=pull_request", ["A change"], id="pull requests"),
        pytest.param("type=discussion", ["Bob asks", "Ada asks"], id="discussions"),
        pytest.param("author=BOB", ["A change", "Bob asks"], id="an author in any case"),
        pytest.param("search=ada+as", ["Ada asks"], id="a part of the title"),
        pytest.param(
            "author=&search=&sort=trending", ["A change", "Bob asks", "Ada asks"], id="all"
        ),
        pytest.param("author=nobody", [], id="an author who is not there"),
    ],
)
async def test_the_address_filters(
    client: httpx2.AsyncClient,
    database: Database,
    repo_id: str,
    ada: Headers,
    query: str,
    titles: list[str],
) -> None:
    bob = await sign_in(database, "bob")
    await commit(client, ada, {"a.txt": "a"})
    await a_discussion(client, ada, title="Ada asks")
    await a_discussion(client, bob, title="Bob asks")
    await a_pull_request(client, bob, title="A change")

    assert titles_in(await open_page(client, f"{PAGES}?{query}")) == titles


async def test_filters_stay_when_the_tab_changes(
    client: httpx2.AsyncClient, repo_id: str, ada: Headers
) -> None:
    page = await open_page(client, f"{PAGES}?search=a%26b&sort=reactions&author=ada")

    [_, closed] = page.one("nav", **{"aria-label": "State"}).all("a")
    assert closed.attributes["href"] == (
        f"{PAGES}?status=closed&author=ada&search=a%26b&sort=reactions"
    )


@pytest.mark.parametrize("query", ["sort=best", "status=odd", "p=-1", "search=" + "x" * 201])
async def test_a_wrong_address_is_refused(
    client: httpx2.AsyncClient, repo_id: str, query: str
) -> None:
    await open_page(client, f"{PAGES}?{query}", status=400)


async def test_an_empty_list_says_what_belongs_here(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    assert "Nobody asked yet." in (await open_page(client, PAGES)).text

    await enter(client, database, "ada")
    page = await open_page(client, PAGES)
    assert {each.attributes["href"] for each in page.all("a", class_="main")} == {f"{PAGES}/new"}


async def test_long_lists_have_pages(
    client: httpx2.AsyncClient, database: Database, repo_id: str, ada: Headers
) -> None:
    for number in range(51):
        await a_discussion(client, ada, title=f"Question {number}")

    first = await open_page(client, PAGES)

    assert len(titles_in(first)) == 50
    second = await open_page(client, first.one("a", rel="next").attributes["href"])
    assert titles_in(second) == ["Question 0"]
    assert second.one("a", rel="prev").attributes["href"] == PAGES


async def test_a_discussion_is_opened_by_a_form(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    await enter(client, database, "bob")
    token = await token_of(client, f"{PAGES}/new")
    typed = {"form_token": token, "title": "Does it run?", "description": "a\r\nb"}

    response = await client.post(f"{PAGES}/new", data=typed, headers=HTML)

    assert (response.status_code, response.headers["location"]) == (303, f"{PAGES}/1")
    [event] = (await client.get(f"{PATH}/1")).json()["events"]
    assert event["data"]["latest"]["raw"] == "a\nb"


async def test_a_draft_pull_request_says_where_to_push(
    client: httpx2.AsyncClient, database: Database, repo_id: str, ada: Headers
) -> None:
    await commit(client, ada, {"a.txt": "a"})
    await enter(client, database, "bob")
    token = await token_of(client, f"{PAGES}/new")
    typed = {"form_token": token, "title": "A change", "description": "", "draft": "1"}

    assert (await client.post(f"{PAGES}/new", data=typed)).status_code == 303

    page = await open_page(client, f"{PAGES}/1")
    assert "git push origin HEAD:refs/pr/1" in page.one("section", id="merge-box").text
    assert page.one("div", id="thread-state").all("span", class_="badge")[0].text == "Draft"


async def test_what_was_typed_is_shown_again_with_the_rule(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    await enter(client, database, "bob")
    token = await token_of(client, f"{PAGES}/new")
    typed = {"form_token": token, "title": "ab", "description": "My <b>long</b> text"}

    response = await client.post(f"{PAGES}/new", data=typed, headers=HTML)

    assert response.status_code == 422
    page = parse(response)
    assert problem_of(page) == "title must have at least 3 character(s)."
    assert page.one("input", name="title").attributes["value"] == "ab"
    assert page.one("textarea").text == "My <b>long</b> text"


async def test_a_preview_needs_no_script(
    client: httpx2.AsyncClient, database: Database, repo_id: str
) -> None:
    await enter(client, database, "bob")
    token = await token_of(client, f"{PAGES}/new")
    typed = {"form_token": token, "title": "Hello", "description": "*soft*", "preview": "1"}

    page = parse(await client.post(f"{PAGES}/new", data=typed, headers=HTML))

    assert page.one("div", class_="drawn").one("em").text == "soft"
    assert page.one("textarea").text == "*soft*"
    assert (await client.get(PATH)).json()["count"] == 0


async def test_where_discussions_are_disabled_nothing_can_be_opened(
    client: httpx2.AsyncClient, database: Database, repo_id: str, ada: Headers
) -> None:
    await a_discussion(client, ada, title="Before that")
    await disable_discussions(database, repo_id)
    await enter(client, database, "ada")

    page = await open_page(client, PAGES)

    assert titles_in(page) == ["Before that"]
    assert page.all("a", class_="main") == []
    await open_page(client, f"{PAGES}/new", status=403)


@pytest.mark.parametrize("path", ["", "/new", "/1", "/1/commits", "/1/events"])
async def test_private_and_absent_look_the_same(
    client: httpx2.AsyncClient, database: Database, ada: Headers, path: str
) -> None:
    await a_repo(client, ada, "ada/secret", private=True)
    await a_discussion(client, ada, "/api/models/ada/secret/discussions")
    await enter(client, database, "bob")

    hidden, absent = [
        await client.get(f"/ada/{name}/discussions{path}", headers=HTML)
        for name in ("secret", "absent")
    ]

    assert hidden.status_code == absent.status_code == 404
    assert parse(hidden).one("main", id="content").text == parse(absent).one("main").text


@pytest.mark.parametrize("kind", ["dataset", "space", "kernel", "bucket", "container"])
async def test_every_type_has_threads_at_its_own_address(
    client: httpx2.AsyncClient, ada: Headers, kind: str
) -> None:
    await a_repo(client, ada, "ada/engine", type=kind)
    await a_discussion(client, ada, f"/api/{kind}s/ada/engine/discussions", title="Here it is")
    pages = f"/{kind}s/ada/engine/discussions"

    assert titles_in(await open_page(client, pages)) == ["Here it is"]
    assert "Here it is" in (await open_page(client, f"{pages}/1")).one("h1").text


async def test_a_repository_that_moved_leads_to_its_threads(
    client: httpx2.AsyncClient, repo_id: str, ada: Headers
) -> None:
    await a_discussion(client, ada)
    moved = {"fromRepo": "ada/engine", "toRepo": "ada/motor", "type": "model"}
    assert (await client.post("/api/repos/move", headers=ada, json=moved)).status_code == 200

    response = await client.get(f"{PAGES}/1", headers=HTML)

    assert (response.status_code, response.headers["location"]) == (
        307,
        "/ada/motor/discussions/1",
    )
