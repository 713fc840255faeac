"""Pages of repositories in a real Chromium: with script and without, wide and narrow."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, expect

from browsers import chromium_browser, needs_chromium
from processes import Place, Server, serving
from repos.commits import file, header, ndjson

pytestmark = needs_chromium

PASSWORD = "correct horse battery"
# The smallest picture there is.
PICTURE = bytes.fromhex(
    "47494638396101000100800000000000ffffff21f90401000000002c00000000010001000002024401003b"
)
GATED = """---
extra_gated_fields:
  Company: text
  I agree: checkbox
---
# Calculator
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A hub where grace has an account, and the administrator some repositories."""
    with serving(Place(folder=tmp_path_factory.mktemp("pages"))) as server:
        with server.client(server.token) as client:
            client.post("/api/admin/users", json={"name": "grace", "password": PASSWORD})
            for name, readme in (("engine", "# Engine\n\n![A dot](dot.gif)"), ("gated", GATED)):
                client.post("/api/repos/create", json={"name": name})
                lines = ndjson(header(), file("README.md", readme), file("dot.gif", PICTURE))
                done = client.post(f"/api/models/admin/{name}/commit/main", content=lines)
                assert done.status_code == 200, done.text
            client.put("/api/models/admin/gated/settings", json={"gated": "manual"})
        yield server


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with chromium_browser() as browser:
        yield browser


@pytest.fixture(params=["with script", "without script, narrow"])
def browser(
    request: pytest.FixtureRequest, chromium: Browser, server: Server
) -> Iterator[BrowserContext]:
    """A browser that knows nobody; whatever it complains about fails the test."""
    complaints: list[str] = []
    has_script = request.param == "with script"
    size = ViewportSize(width=1360 if has_script else 390, height=844)
    context = chromium.new_context(
        base_url=server.address, java_script_enabled=has_script, viewport=size
    )
    context.on("console", lambda message: complaints.append(message.text))
    yield context
    context.close()
    assert [text for text in complaints if not re.search(r"status of 4\d\d", text)] == []


def sign_in(page: Page) -> None:
    page.get_by_label("Name").fill("grace")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()


def test_a_reader_likes_what_is_on_the_page(browser: BrowserContext) -> None:
    page = browser.new_page()
    page.goto("/admin/engine")
    expect(page.get_by_role("img", name="A dot")).to_be_visible()
    page.locator("#acts").get_by_role("link", name="Like").click()
    sign_in(page)
    expect(page).to_have_url(re.compile("/admin/engine$"))

    page.locator("#acts").get_by_role("button", name="Like").click()
    expect(page.locator("#acts")).to_contain_text("Liked 1")
    page.locator("#acts").get_by_role("button", name="Liked").click()

    expect(page.locator("#acts")).to_contain_text("Like 0")
    expect(page).to_have_url(re.compile("/admin/engine$"))


def test_a_stranger_comes_back_from_the_login_and_asks(browser: BrowserContext) -> None:
    page = browser.new_page()
    page.goto("/admin/gated")
    expect(page.get_by_role("heading", name="Calculator")).to_be_visible()
    page.get_by_role("link", name="Sign in to ask").click()
    sign_in(page)
    expect(page).to_have_url(re.compile("/admin/gated$"))

    page.get_by_label("Company").fill("Navy")
    page.get_by_label("I agree").check()
    page.get_by_role("button", name="Ask for access").click()

    expect(page.locator("#gate")).to_contain_text("admin has not decided yet.")
    page.get_by_role("button", name="Withdraw my request").click()
    expect(page.get_by_label("Company")).to_be_visible()


def test_a_query_is_run_and_what_it_has_wrong_is_said(
    browser: BrowserContext, server: Server
) -> None:
    rows = ndjson(header(), file("train.csv", "word,size\nwheel,3\ncog,5\n"))
    with server.client(server.token) as client:
        client.post("/api/repos/create", json={"name": "words", "type": "dataset"})
        client.post("/api/datasets/admin/words/commit/main", content=rows)
    page = browser.new_page()
    page.goto("/datasets/admin/words/sql-console")
    page.get_by_role("link", name="Sign in to run it").click()
    sign_in(page)
    text = page.get_by_role("textbox", name="Query")
    text.fill("SELECT sum(size) AS total FROM train")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#result td")).to_have_text("8")

    text.fill("SELECT nothing FROM train")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#result [role=alert]")).to_contain_text("nothing")
    page.get_by_role("button", name="Cancel").wait_for(state="hidden")


def test_a_query_that_takes_long_is_cancelled(chromium: Browser, server: Server) -> None:
    with server.client(server.token) as client:
        client.post("/api/repos/create", json={"name": "long", "type": "dataset"})
        rows = ndjson(header(), file("train.csv", "a\n1\n"))
        client.post("/api/datasets/admin/long/commit/main", content=rows)
    context = chromium.new_context(base_url=server.address)
    page = context.new_page()
    page.goto("/login?next=/datasets/admin/long/sql-console")
    sign_in(page)
    text = page.get_by_role("textbox", name="Query")
    text.fill("SELECT count(*) FROM range(100000000) a, range(100000) b")
    text.press("Control+Enter")
    # A query that has not begun cannot be cancelled: it is asked for until it is.
    while not page.locator("#result [role=alert]").count():
        page.get_by_role("button", name="Cancel").click()
        page.wait_for_timeout(200)
    expect(page.locator("#result [role=alert]")).to_have_text("The query was cancelled.")
    context.close()
