"""Administration in a real Chromium: an announcement reaches everybody, and a parked task runs again."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from browsers import chromium_browser, needs_chromium
from processes import Place, Server, run_hublet, serving

pytestmark = needs_chromium

PASSWORD = "correct horse battery"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(folder=tmp_path_factory.mktemp("administration"))


@pytest.fixture(scope="module")
def server(place: Place) -> Iterator[Server]:
    with serving(place) as server:
        words = ("user", "add", "root", "--password", PASSWORD, "--admin")
        made = run_hublet(*words, *place.flags, folder=place.folder)
        assert made.returncode == 0, made.stderr
        yield server


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with chromium_browser() as browser:
        yield browser


@pytest.fixture(params=["script", "no script", "phone"])
def browser(
    chromium: Browser, server: Server, request: pytest.FixtureRequest
) -> Iterator[BrowserContext]:
    width = 390 if request.param == "phone" else 1360
    context = chromium.new_context(
        base_url=server.address,
        viewport={"width": width, "height": 900},
        java_script_enabled=request.param != "no script",
    )
    yield context
    context.close()


def sign_in(page: Page, path: str) -> None:
    page.goto(f"/login?next={path}")
    page.get_by_label("Name or e-mail").fill("root")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()


def test_an_announcement_reaches_everybody_until_it_is_withdrawn(
    browser: BrowserContext, chromium: Browser, server: Server
) -> None:
    page = browser.new_page()
    sign_in(page, "/admin/switches")
    page.get_by_label("Text").fill("The hub moves on Friday.")
    page.get_by_label("Tone").select_option("A warning")
    page.get_by_role("button", name="Announce").click()
    expect(page.locator(".announcement")).to_have_text("The hub moves on Friday.")

    stranger = chromium.new_context(base_url=server.address)
    other = stranger.new_page()
    other.goto("/login")
    # In a landmark, as all that stands on a page.
    above = other.get_by_role("region", name="Announcements")
    expect(above).to_have_text("The hub moves on Friday.")

    page.get_by_role("button", name="Withdraw").click()
    expect(page.get_by_role("status")).to_have_text("The announcement is withdrawn.")
    expect(page.locator(".announcement")).to_have_count(0)
    other.goto("/models")
    expect(other.get_by_role("heading", level=1)).to_be_visible()
    expect(other.locator(".announcement")).to_have_count(0)
    stranger.close()


def test_a_parked_task_is_tried_again_and_done(browser: BrowserContext, place: Place) -> None:
    with closing(sqlite3.connect(place.data_dir / "hub.db", timeout=60)) as database, database:
        database.execute(
            "INSERT INTO tasks VALUES (?, 'oauth.prune-apps', 1, '{}', 0, 0, 12, NULL, ?, 1, NULL)",
            ("parked-by-a-test", "OSError: the disk is full"),
        )
    page = browser.new_page()
    sign_in(page, "/admin/tasks")
    expect(page.get_by_text("OSError: the disk is full")).to_be_visible()

    page.get_by_role("button", name="Try again").click()

    expect(page.get_by_role("status")).to_have_text("The task is tried again.")
    expect(page.get_by_text("OSError: the disk is full")).to_have_count(0)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
