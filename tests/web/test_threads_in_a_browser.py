"""Conflicts, comments and posts in a real Chromium: with script and without, and at 390 pixels."""

import base64
import json
import re
from collections.abc import Iterator

import httpx2
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from browsers import chromium_browser, needs_chromium
from processes import Place, Server, run_hublet, serving

pytestmark = needs_chromium

PASSWORD = "correct horse battery"
BASE = "one\ntwo\nthree\n"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(folder=tmp_path_factory.mktemp("threads"))


@pytest.fixture(scope="module")
def server(place: Place) -> Iterator[Server]:
    with serving(place) as server:
        yield server


@pytest.fixture(scope="module")
def people(server: Server, place: Place) -> dict[str, httpx2.Client]:
    """Clients of ada and charles, who also have passwords."""
    clients = {}
    for name in ("ada", "charles"):
        for words in (("user", "add", name, "--password", PASSWORD), ("token", "create", name)):
            made = run_hublet(*words, *place.flags, folder=place.folder)
            assert made.returncode == 0, made.stderr
        [token] = re.findall(r"hf_\w+", made.stdout)
        clients[name] = server.client(token)
    return clients


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with chromium_browser() as browser:
        yield browser


@pytest.fixture(params=["script", "no script", "phone"])
def browser(
    chromium: Browser, server: Server, request: pytest.FixtureRequest
) -> Iterator[BrowserContext]:
    """A browser of each kind; whatever it complains about fails the test."""
    complaints: list[str] = []
    width = 390 if request.param == "phone" else 1360
    context = chromium.new_context(
        base_url=server.address,
        viewport={"width": width, "height": 900},
        java_script_enabled=request.param != "no script",
    )
    context.on("console", lambda message: complaints.append(message.text))
    context.on("weberror", lambda error: complaints.append(str(error.error)))
    yield context
    context.close()
    assert [text for text in complaints if not re.search(r"status of 4\d\d", text)] == []


@pytest.fixture
def has_script(request: pytest.FixtureRequest) -> bool:
    return "no script" not in request.node.name


def post_commit(
    client: httpx2.Client, repo: str, to: str, content: str, **query: str
) -> dict[str, str]:
    file = {"path": "notes.txt", "content": base64.b64encode(content.encode()).decode()}
    lines = [
        {"key": "header", "value": {"summary": "Change the notes"}},
        {"key": "file", "value": {**file, "encoding": "base64"}},
    ]
    response = client.post(
        f"/api/models/{repo}/commit/{to.replace('/', '%2F')}",
        headers={"Content-Type": "application/x-ndjson"},
        params=query,
        content="".join(json.dumps(line) + "\n" for line in lines),
    )
    assert response.status_code == 200, response.text
    answer: dict[str, str] = response.json()
    return answer


@pytest.fixture
def repo(people: dict[str, httpx2.Client], request: pytest.FixtureRequest) -> str:
    """A repository of ada's where a pull request of charles conflicts with main."""
    name = "engine-" + re.sub(r"\W+", "-", request.node.name)[-40:].strip("-")
    made = people["ada"].post("/api/repos/create", json={"name": name})
    assert made.status_code == 200, made.text
    repo = f"ada/{name}"
    post_commit(people["ada"], repo, "main", BASE)
    post_commit(people["charles"], repo, "main", "one\nTWO\nthree\n", create_pr="1")
    post_commit(people["ada"], repo, "main", "one\n2\nthree\n")
    return repo


def open_as(browser: BrowserContext, name: str, path: str) -> Page:
    """Open a page as a person who has to sign in on the way."""
    page = browser.new_page()
    page.goto(f"/login?next={path}")
    page.get_by_label("Name or e-mail address").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.wait_for_url(f"**{path}")
    return page


def assert_fits(page: Page) -> None:
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth") is True


def test_a_conflict_is_solved_in_the_browser(
    browser: BrowserContext, repo: str, *, has_script: bool
) -> None:
    page = open_as(browser, "charles", f"/{repo}/discussions/1")
    page.get_by_role("link", name="Solve it here").click()
    field = page.get_by_role("textbox").last
    expect(field).to_have_value(re.compile("<<<<<<< base"))
    page.get_by_role("button", name=re.compile("Save and merge")).click()
    expect(page.get_by_role("alert")).to_contain_text("there is still a line")
    page.get_by_role("textbox").last.fill("one\nboth\nthree\n")
    if has_script:
        assert_fits(page)
    page.get_by_role("button", name=re.compile("Save and merge")).click()

    expect(page.locator("#merge-box")).to_contain_text("No conflicts with main")
    expect(page.locator("#merge-box")).to_contain_text("can merge it")


def test_a_comment_is_written_with_help(
    browser: BrowserContext, repo: str, *, has_script: bool
) -> None:
    page = open_as(browser, "ada", f"/{repo}/discussions/1")
    field = page.get_by_label("Your comment")
    field.fill("**bold** ")
    if has_script:
        field.press_sequentially("@char")
        page.locator(".names button", has_text="charles").click()
        expect(field).to_have_value("**bold** @charles ")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#comment .drawn strong")).to_have_text("bold")
    if has_script:
        page.get_by_role("button", name="Write").click()
    page.get_by_role("button", name="Comment", exact=True).click()
    expect(page.locator("article").last.locator("strong")).to_have_text("bold")
    expect(page.get_by_label("Your comment")).to_have_value("")

    first = page.locator("article").first
    first.get_by_text("React to the comment of charles").locator("..").click()
    first.get_by_role("button", name="heart").click()
    expect(first.get_by_role("button", name="heart, 1")).to_have_attribute("aria-pressed", "true")


def test_a_post_is_published_and_talked_about(
    browser: BrowserContext, people: dict[str, httpx2.Client], *, has_script: bool
) -> None:
    page = open_as(browser, "ada", "/posts/new")
    page.get_by_label("What is new?").fill("We **trained** a model.\n\nWhat do you think?")
    page.get_by_role("button", name="Publish").click()
    expect(page.locator("article strong")).to_have_text("trained")
    path = page.url.partition("/posts/")[2]
    api = f"/api/posts/{path}"
    said = people["charles"].post(f"{api}/comment", json={"comment": "Does it scale?"})

    if not has_script:
        page.reload()
    comment = page.locator(f"[id='{said.json()['newMessage']['id']}']")
    expect(comment).to_contain_text("Does it scale?")
    comment.get_by_text("What to do with the comment of charles").locator("..").click()
    comment.get_by_role("link", name="Answer it").click()
    expect(page.locator("#comment")).to_contain_text("You answer what charles wrote.")
    page.get_by_label("Your comment").fill("It does.")
    page.get_by_role("button", name="Comment", exact=True).click()
    expect(page.locator("article").last).to_contain_text("ada answered charles")
    # What is written next answers nobody.
    expect(page.locator("#comment")).not_to_contain_text("You answer")
    page.get_by_label("Your comment").fill("And it is quick.")
    page.get_by_role("button", name="Comment", exact=True).click()
    expect(page.locator("article").last).to_contain_text("And it is quick.")
    expect(page.locator("article").last).not_to_contain_text("answered")
    if has_script:
        assert_fits(page)
