"""Papers, posts and blogs as a browser sees them: reading, commenting, publishing, and who may."""

import re
from xml.etree import ElementTree as ET

import httpx2
import pytest

from community.public_threads import KINDS, PAPER, a_comment, a_thread
from hublet.accounts.records import Role
from hublet.core.database import Database
from people import Headers, a_user, an_organization, sign_in
from repositories import a_push, a_repo
from web.parsed_pages import HTML, Element, parse
from web.thread_scenes import enter, open_page, problem_of, send, texts_of, token_of
from workers import drain

HOSTILE = """<script>alert(1)</script> <img src=x onerror=alert(2)>

[x](javascript:alert(3)) **bold**"""


@pytest.fixture
async def bob(database: Database) -> Headers:
    return await sign_in(database, "bob")


async def a_page(
    client: httpx2.AsyncClient, who: Headers, kind: str, *, text: str = "Look at this."
) -> str:
    """Publish something of this kind; return the path of its page."""
    return (await a_thread(client, who, kind, text=text)).removeprefix("/api")


def forms_of(page: Element) -> set[str]:
    """Return what the forms of a page do, by the last words of their addresses."""
    main = page.one("main", id="content")
    return {each.attributes["action"].rpartition("/")[2] for each in main.all("form")}


def menu_of(page: Element) -> list[str]:
    """Return what can be done with the only comment of a page."""
    menu = page.one("article", class_="cm").one("span", class_="ends").one("details")
    return [each.text for each in (*menu.all("a"), *menu.all("button"))]


def links_of(page: Element) -> dict[str, str]:
    return {each.text: each.attributes.get("href", "") for each in page.all("a")}


@pytest.mark.parametrize("kind", KINDS)
async def test_a_page_shows_the_text_and_its_comments(
    client: httpx2.AsyncClient, ada: Headers, bob: Headers, kind: str
) -> None:
    path = await a_page(client, ada, kind, text="It is **new**.\n\n## How\n\nSee.")
    comment = await a_comment(client, bob, f"/api{path}", "I *agree*, @ada.")

    page = await open_page(client, path)

    assert page.one("h1").text == (PAPER["title"] if kind == "paper" else f"A {kind} to talk about")
    assert texts_of(page)[0].startswith("It is new.")
    assert texts_of(page)[1:] == ["I agree, @ada."]
    assert page.one("article", id=comment).text.startswith("bob")
    assert forms_of(page) <= {"search", ""}
    assert links_of(page)["sign in"] == f"/login?next={path}"


@pytest.mark.parametrize("kind", KINDS)
async def test_what_strangers_write_is_rendered_as_everywhere(
    client: httpx2.AsyncClient, ada: Headers, kind: str
) -> None:
    path = await a_page(client, ada, kind, text=HOSTILE)
    await a_comment(client, ada, f"/api{path}", HOSTILE)

    response = await client.get(path, headers=HTML)

    body = response.text.partition("<main")[2]
    assert body.count("<strong>bold</strong>") == 2
    assert "<script" not in body
    assert "<img" not in body
    assert "javascript:" not in body


@pytest.mark.parametrize("kind", KINDS)
async def test_people_comment_answer_edit_and_hide(
    client: httpx2.AsyncClient, database: Database, ada: Headers, bob: Headers, kind: str
) -> None:
    path = await a_page(client, ada, kind)
    await enter(client, database, "bob")

    written = await send(client, "comment", thread=path, comment="First.\r\nSecond.")
    first = written.headers["location"].rpartition("#")[2]
    answered = await send(client, "comment", thread=path, comment="And yet.", reply_to=first)
    second = answered.headers["location"].rpartition("#")[2]
    edited = await send(client, f"comment/{first}/edit", thread=path, content="Third.")
    hidden = await send(client, f"comment/{second}/hide", thread=path)

    assert [written.status_code, answered.status_code] == [303, 303]
    assert [edited.headers["location"], hidden.headers["location"]] == [
        f"{path}#{first}",
        f"{path}#{second}",
    ]
    comments = (await client.get(f"/api{path}/comments")).json()
    assert [each["data"]["latest"]["raw"] for each in comments] == [
        "Third.",
        "This comment has been hidden.",
    ]
    assert comments[1]["data"]["parentCommentId"] == first
    page = await open_page(client, path)
    assert page.one("article", id=second).text.startswith("bob answered bob")


@pytest.mark.parametrize("kind", KINDS)
async def test_a_refused_comment_comes_back_with_the_rule(
    client: httpx2.AsyncClient, database: Database, ada: Headers, kind: str
) -> None:
    path = await a_page(client, ada, kind)
    await enter(client, database, "bob")

    response = await send(client, "comment", thread=path, comment="   ")

    assert response.status_code == 422
    page = parse(response)
    assert problem_of(page) == "comment: must say something, blanks alone do not count."
    assert page.one("textarea", id="comment-text").text == ""


@pytest.mark.parametrize("kind", KINDS)
async def test_a_preview_needs_no_script(
    client: httpx2.AsyncClient, database: Database, ada: Headers, kind: str
) -> None:
    path = await a_page(client, ada, kind)
    await enter(client, database, "bob")

    page = parse(await send(client, "comment", thread=path, comment=f"So {HOSTILE}", preview="1"))

    form = page.one("form", id="comment")
    assert form.one("div", class_="drawn").text.endswith("bold")
    assert form.one("div", class_="drawn").all("script") == []
    assert form.one("textarea").text.startswith("So <script>")
    assert (await client.get(f"/api{path}/comments")).json() == []


async def test_a_link_to_answer_names_the_comment(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    path = await a_page(client, ada, "post")
    comment = await a_comment(client, ada, f"/api{path}")
    await enter(client, database, "bob")

    page = await open_page(client, f"{path}?reply={comment}")

    form = page.one("form", id="comment")
    assert form.one("input", name="reply_to").attributes["value"] == comment
    assert "what ada wrote" in form.text


async def test_a_comment_that_is_gone_cannot_be_answered(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    path = await a_page(client, ada, "post")
    comment = await a_comment(client, ada, f"/api{path}")
    await client.post(f"/api{path}/comment/{comment}/hide", headers=ada)
    await enter(client, database, "bob")

    response = await send(client, "comment", thread=path, comment="Why?", reply_to=comment)

    assert response.status_code == 422
    assert problem_of(parse(response)).startswith("This comment is hidden")


@pytest.mark.parametrize(
    ("name", "kind", "may"),
    [
        pytest.param("bob", "post", {"Edit it", "Hide it for good"}, id="who wrote it"),
        pytest.param("ada", "post", {"Hide it for good"}, id="who owns the post"),
        pytest.param("ada", "blog", {"Hide it for good"}, id="who owns the blog"),
        pytest.param("ada", "paper", set[str](), id="who submitted the paper"),
        pytest.param("carl", "post", set[str](), id="anybody else"),
    ],
)
async def test_a_comment_offers_what_its_reader_may_do(  # noqa: PLR0917
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    bob: Headers,
    name: str,
    kind: str,
    may: set[str],
) -> None:
    path = await a_page(client, ada, kind)
    await a_comment(client, bob, f"/api{path}")
    await enter(client, database, name)

    page = await open_page(client, path)

    assert set(menu_of(page)) == {"Link to it", "Quote it", "Answer it"} | may


async def test_others_cannot_hide_or_edit_by_an_address(
    client: httpx2.AsyncClient, database: Database, ada: Headers, bob: Headers
) -> None:
    path = await a_page(client, ada, "paper")
    comment = await a_comment(client, bob, f"/api{path}")
    await enter(client, database, "carl")

    hidden = await send(client, f"comment/{comment}/hide", thread=path)
    edited = await send(client, f"comment/{comment}/edit", thread=path, content="No.")

    assert [hidden.status_code, edited.status_code] == [403, 403]
    assert texts_of(await open_page(client, path))[1:] == ["I agree."]


@pytest.mark.parametrize("kind", KINDS)
async def test_reactions_and_muting_go_there_and_back(
    client: httpx2.AsyncClient, database: Database, ada: Headers, kind: str
) -> None:
    path = await a_page(client, ada, kind)
    comment = await a_comment(client, ada, f"/api{path}")
    await enter(client, database, "bob")

    await send(client, f"comment/{comment}/react", thread=path, add="heart")
    await send(client, "ignore", thread=path, ignore="true")
    page = await open_page(client, path)
    assert page.one("button", value="heart").attributes["aria-pressed"] == "true"
    assert "You hear nothing of it." in page.one("aside", id="thread-side").text

    await send(client, f"comment/{comment}/react", thread=path, remove="heart")
    await send(client, "ignore", thread=path, ignore="false")
    page = await open_page(client, path)
    assert page.one("button", value="heart").attributes.get("aria-pressed") is None
    assert "You hear of it" in page.one("aside", id="thread-side").text


async def test_an_unknown_emoji_is_refused_by_name(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    path = await a_page(client, ada, "post")
    comment = await a_comment(client, ada, f"/api{path}")
    await enter(client, database, "bob")

    response = await send(client, f"comment/{comment}/react", thread=path, add="bomb")

    assert response.status_code == 422
    assert problem_of(parse(response)).startswith("add must be one of fire, rocket")


@pytest.mark.parametrize("verb", ["comment", "ignore", "delete", "upvote", "edit"])
async def test_a_form_needs_its_token(
    client: httpx2.AsyncClient, database: Database, ada: Headers, verb: str
) -> None:
    path = await a_page(client, ada, "blog")
    await enter(client, database, "ada")

    response = await client.post(f"{path}/{verb}", data={"comment": "No."}, headers=HTML)

    assert response.status_code == 403
    assert (await client.get(f"/api{path}")).status_code == 200


@pytest.mark.parametrize(
    "path",
    ["/papers/2401.99999", "/posts/ada/123456789", "/posts/nobody/1", "/blog/ada/wheels"],
)
async def test_what_is_not_there_is_the_usual_page(
    client: httpx2.AsyncClient, ada: Headers, path: str
) -> None:
    page = await open_page(client, path, status=404)

    assert page.one("h1").text == "Nothing here"
    assert (await client.get(f"{path}/events")).status_code == 404


async def test_a_paper_stays_markdown_at_its_own_address(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    path = await a_page(client, ada, "paper")

    response = await client.get(f"{path}.md", headers=HTML)

    assert response.headers["content-type"].startswith("text/markdown")


async def test_a_vote_for_a_paper_is_given_and_taken_back(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    path = await a_page(client, ada, "paper")
    await enter(client, database, "bob")

    assert (await open_page(client, path)).one("button", name="vote").text == "Upvote 0"
    await send(client, "upvote", thread=path, vote="yes")
    await send(client, "upvote", thread=path, vote="yes")
    assert (await open_page(client, path)).one("button", name="vote").text == "Upvoted 1"
    await enter(client, database, "carl")
    assert (await open_page(client, path)).one("button", name="vote").text == "Upvote 1"
    await enter(client, database, "bob")
    await send(client, "upvote", thread=path, vote="no")
    assert (await open_page(client, path)).one("button", name="vote").text == "Upvote 0"


async def test_a_paper_names_the_repositories_with_its_tag_that_a_reader_may_see(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    path = await a_page(client, ada, "paper")
    for name, private in (("engine", False), ("secret", True)):
        repo = await a_repo(client, ada, f"ada/{name}", private=private)
        await a_push(database, repo, {"README.md": b"x"}, tags=["arxiv:2401.12345"])

    assert links_of(await open_page(client, path)).get("ada/engine") == "/ada/engine"
    assert "ada/secret" not in links_of(await open_page(client, path))
    await enter(client, database, "ada")
    assert links_of(await open_page(client, path)).get("ada/secret") == "/ada/secret"


async def test_the_id_of_the_thread_leads_to_its_paper(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    path = await a_page(client, ada, "paper")
    thread = (await client.get(f"/api{path}")).json()["discussionId"]

    response = await client.get(f"/papers/{thread}", headers=HTML)

    assert response.headers["location"] == path


async def test_what_happened_leads_to_the_pages(
    client: httpx2.AsyncClient, database: Database, ada: Headers, bob: Headers
) -> None:
    paths = {await a_page(client, ada, kind) for kind in KINDS}
    for path in paths:
        await a_comment(client, bob, f"/api{path}")
    await drain(database)
    await enter(client, database, "ada")

    start = await open_page(client, "/")
    happened = [each.attributes["href"] for each in start.one("section", id="happened").all("a")]

    assert len(happened) == 3
    reached = {
        (await client.get(each, headers=HTML, follow_redirects=True)).url for each in happened
    }
    assert {url.path for url in reached} == paths


async def test_a_search_leads_to_the_pages(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    paths = {await a_page(client, ada, kind, text="Weaving by wheels.") for kind in KINDS}
    await drain(database)

    found = (await open_page(client, "/search?q=wheels")).one("ul", class_="found")
    suggested = (await client.get("/search/suggestions?q=talk")).json()

    assert {each.attributes["href"] for each in found.all("a", class_="name")} == paths
    assert {each["path"] for each in suggested} == {path for path in paths if "papers" not in path}


# ---- publishing ----


async def publish(client: httpx2.AsyncClient, folder: str, **fields: str) -> httpx2.Response:
    page = await open_page(client, f"/{folder}/new")
    token = page.one("form", action=f"/{folder}/new").one("input", name="form_token")
    data = {"form_token": token.attributes["value"]} | fields
    return await client.post(f"/{folder}/new", data=data, headers=HTML)


async def test_a_post_is_published_and_deleted_by_its_author(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await enter(client, database, "ada")

    published = await publish(client, "posts", title="", content="# News\r\n\r\nIt works.")
    path = published.headers["location"]
    page = await open_page(client, path)

    assert re.fullmatch(r"/posts/ada/[0-9]{15}", path)
    assert "vh" in page.one("h1", class_="vh").attributes["class"]
    assert texts_of(page) == ["News It works."]
    await enter(client, database, "bob")
    assert "delete" not in forms_of(await open_page(client, path))
    assert (await send(client, "delete", thread=path)).status_code == 403
    await enter(client, database, "ada")
    assert (await send(client, "delete", thread=path)).headers["location"] == "/posts"
    assert (await client.get(path, headers=HTML)).status_code == 404


async def test_a_post_cannot_be_edited(client: httpx2.AsyncClient, database: Database) -> None:
    await enter(client, database, "ada")
    path = (await publish(client, "posts", content="It works.")).headers["location"]

    assert f"{path}/edit" not in links_of(await open_page(client, path)).values()
    assert (await client.get(f"{path}/edit", headers=HTML)).status_code == 403


async def test_a_blog_of_an_organization_is_written_by_its_members(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await an_organization(database, "loom", members={"ada": Role.write, "bob": Role.read})
    await enter(client, database, "ada")

    published = await publish(client, "blog", title="How", content="So.", owner="loom")
    path = published.headers["location"]
    changed = await send(client, "edit", thread=path, title="How and why", content="Because.")

    assert path == "/blog/loom/how"
    assert changed.headers["location"] == path
    page = await open_page(client, path)
    assert (page.one("h1").text, texts_of(page)) == ("How and why", ["Because."])
    assert "ada for loom" in page.one("p", class_="meta").text
    await enter(client, database, "bob")
    assert (await client.get(f"{path}/edit", headers=HTML)).status_code == 403
    assert (await send(client, "edit", thread=path, title="No", content="No.")).status_code == 403
    refused = await publish(client, "blog", title="Mine", content="So.", owner="loom")
    assert refused.status_code == 403
    assert "So." in parse(refused).one("textarea").text


async def test_a_paper_is_submitted_and_only_an_administrator_deletes_it(
    client: httpx2.AsyncClient, database: Database
) -> None:
    await enter(client, database, "ada")
    fields = {
        "id": "2401.12345",
        "title": "Notes on the Engine",
        "authors": "Ada Lovelace\r\n\r\n Luigi Menabrea ",
        "published": "2024-01-20",
        "content": "It weaves.",
    }

    path = (await publish(client, "papers", **fields)).headers["location"]

    assert path == "/papers/2401.12345"
    paper = (await client.get(f"/api{path}")).json()
    assert [each["name"] for each in paper["authors"]] == ["Ada Lovelace", "Luigi Menabrea"]
    assert paper["publishedAt"].startswith("2024-01-20")
    again = await publish(client, "papers", **fields)
    assert problem_of(parse(again)) == "The paper 2401.12345 is here already."
    assert (await send(client, "delete", thread=path)).status_code == 403
    await a_user(database, "root", is_admin=True)
    await enter(client, database, "root")
    assert (await send(client, "delete", thread=path)).headers["location"] == "/papers"


@pytest.mark.parametrize(
    ("folder", "fields", "rule"),
    [
        ("posts", {"content": " "}, "content: must say something"),
        ("posts", {"content": "x", "title": "ab"}, "title"),
        ("blog", {"content": "x", "title": ""}, "title"),
        ("papers", {"id": "NO", "title": "Title", "authors": "A", "content": "x"}, "id"),
        ("papers", {"id": "new", "title": "Title", "authors": "A", "content": "x"}, "reserved"),
        ("papers", {"id": "wheels", "title": "Title", "authors": "", "content": "x"}, "authors"),
        (
            "papers",
            {"id": "wheels", "title": "T 1", "authors": "A", "content": "x", "published": "x"},
            "publishedAt",
        ),
    ],
)
async def test_a_refused_publication_comes_back_with_the_rule(
    client: httpx2.AsyncClient, database: Database, folder: str, fields: dict[str, str], rule: str
) -> None:
    await enter(client, database, "ada")

    response = await publish(client, folder, **fields)

    assert response.status_code == 422
    page = parse(response)
    assert rule in problem_of(page)
    assert page.one("textarea", name="content").text == fields["content"].strip()


async def test_publishing_needs_a_session(client: httpx2.AsyncClient) -> None:
    for folder in ("posts", "blog", "papers"):
        response = await client.get(f"/{folder}/new", headers=HTML)
        assert response.headers["location"].startswith("/login")


# ---- lists ----


@pytest.mark.parametrize(("folder", "kind"), [("posts", "post"), ("blog", "blog")])
async def test_a_list_is_newest_first_and_goes_on(
    client: httpx2.AsyncClient, ada: Headers, bob: Headers, folder: str, kind: str
) -> None:
    empty = await open_page(client, f"/{folder}")
    assert "Nothing here yet." in empty.text
    paths = [await a_page(client, ada, kind) for _ in range(21)]
    other = await a_page(client, bob, kind)

    first = await open_page(client, f"/{folder}")
    second = await open_page(client, first.one("a", rel="next").attributes["href"])
    of_bob = await open_page(client, f"/{folder}?author=bob")

    names = [each.attributes["href"] for each in first.all("a", class_="name")]
    rest = [each.attributes["href"] for each in second.all("a", class_="name")]
    assert [*names, *rest] == [other, *reversed(paths)]
    assert [each.attributes["href"] for each in of_bob.all("a", class_="name")] == [other]


async def test_papers_are_listed_by_day_week_and_month(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    path = await a_page(client, ada, "paper")
    day = (await client.get(f"/api{path}")).json()["submittedOnDailyAt"][:10]

    page = await open_page(client, "/papers")
    choices = page.one("nav", **{"aria-label": "Period"}).all("a")
    periods = {each.text: each.attributes["href"] for each in choices}

    assert list(periods) == ["All", "Day", "Week", "Month"]
    assert periods["Day"] == f"/papers?date={day}"
    for href in periods.values():
        assert path in links_of(await open_page(client, href)).values()
    earlier = (await open_page(client, periods["Day"])).one("a", rel="prev").attributes["href"]
    assert "No papers in this day." in (await open_page(client, earlier)).text
    later = (await open_page(client, earlier)).one("a", rel="next").attributes["href"]
    assert later == periods["Day"]
    assert (await open_page(client, later)).all("a", rel="next") == []


async def test_a_wrong_period_says_the_rule(client: httpx2.AsyncClient) -> None:
    page = await open_page(client, "/papers?week=2026-11", status=400)

    assert "week must be a week such as 2026-W46." in page.text


async def test_a_profile_shows_posts_and_blogs(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    paths = [await a_page(client, ada, kind) for kind in ("post", "blog")]
    await an_organization(database, "loom", members={"ada": Role.write})
    of_loom = await client.post(
        "/api/blog",
        headers=ada,
        json={"title": "How", "content": "So.", "organization": "loom"},
    )
    assert of_loom.status_code == 200

    of_ada = await open_page(client, "/ada")

    assert [each.attributes["href"] for each in of_ada.all("a", class_="name")] == paths
    assert links_of(await open_page(client, "/loom"))["How"] == "/blog/loom/how"


@pytest.mark.parametrize(("folder", "kind"), [("posts", "post"), ("blog", "blog")])
async def test_what_an_owner_publishes_is_a_feed(
    client: httpx2.AsyncClient, ada: Headers, bob: Headers, folder: str, kind: str
) -> None:
    path = await a_page(client, ada, kind, text="It is **new**.")
    await a_page(client, bob, kind)

    response = await client.get(f"/{folder}/ada.atom")

    assert response.headers["content-type"] == "application/atom+xml; charset=utf-8"
    atom = "{http://www.w3.org/2005/Atom}"
    [entry] = ET.fromstring(response.content).iter(f"{atom}entry")
    link = entry.find(f"{atom}link")
    assert link is not None
    assert link.attrib["href"] == f"http://hub.test{path}"
    assert ("<strong>new</strong>" in entry.findtext(f"{atom}content", "")) == (kind == "post")
    again = {"If-None-Match": response.headers["etag"]}
    assert (await client.get(f"/{folder}/ada.atom", headers=again)).status_code == 304
    assert (await client.get(f"/{folder}/nobody.atom")).status_code == 404


# ---- for scripts ----


@pytest.fixture
async def script(client: httpx2.AsyncClient, database: Database, ada: Headers) -> Headers:
    """The headers with which a script of bob's own page asks."""
    path = await a_page(client, ada, "post")
    await enter(client, database, "bob")
    return {"Form-Token": await token_of(client, path), **HTML}


async def test_scripts_get_previews_names_and_bring_files(
    client: httpx2.AsyncClient, script: Headers
) -> None:
    preview = await client.post("/posts/preview", headers=script, data={"text": "**so**"})
    names = await client.get("/posts/mentions?q=ad", headers=script)
    picture = await client.post(
        "/posts/attachments", headers={**script, "Content-Type": "image/png"}, content=b"png"
    )

    assert preview.text == "<p><strong>so</strong></p>\n"
    assert ">ada<" in names.text
    assert picture.text.startswith("http://hub.test/uploads/")


async def test_scripts_need_the_token_of_their_page(
    client: httpx2.AsyncClient, script: Headers
) -> None:
    for path in ("/posts/preview", "/posts/attachments"):
        assert (await client.post(path, headers=HTML)).status_code == 403


async def test_a_form_that_a_script_sends_gets_the_live_part(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    path = await a_page(client, ada, "paper")
    await enter(client, database, "bob")
    data = {"form_token": await token_of(client, path), "comment": "Yes."}

    response = await client.post(f"{path}/comment", data=data, headers={"Fragment": "live", **HTML})

    assert response.status_code == 200
    assert "Fragment" in response.headers["vary"]
    part = parse(response)
    assert [each.text for each in part.one("ol", id="timeline").all("div", class_="md")] == ["Yes."]
    assert part.all("html") == []


async def test_a_page_that_a_browser_has_already_keeps_its_policy(
    client: httpx2.AsyncClient,
) -> None:
    first = await client.get("/papers", headers=HTML)

    again = await client.get("/papers", headers={"If-None-Match": first.headers["etag"], **HTML})

    policy = "content-security-policy"
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers[policy] == first.headers[policy]
    assert "script-src 'self'" in again.headers[policy]


async def test_a_row_shows_plain_words(client: httpx2.AsyncClient, ada: Headers) -> None:
    text = "# We **trained** [it](https://example.com)\n\n- on `snake_case`\n\n```python\nx\n```"
    await client.post("/api/posts", headers=ada, json={"content": text})

    row = (await open_page(client, "/posts")).one("ul", class_="found")

    assert row.one("a", class_="name").text == "We trained it"
    assert row.one("p", class_="excerpt").text == "on snake_case x"
