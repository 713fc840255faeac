"""The reference page in a real Chromium: no outside host, no script that the policy stops."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Browser, Page

from browsers import chromium_browser, needs_chromium
from processes import Place, Server, serving

pytestmark = needs_chromium


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(Place(folder=tmp_path_factory.mktemp("docs"))) as server:
        yield server


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium_browser() as browser:
        yield browser


@dataclass(frozen=True, slots=True)
class Seen:
    """What a visit asked for, and what the browser complained about."""

    addresses: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


def visit(page: Page, address: str) -> Seen:
    seen = Seen()
    page.on("request", lambda request: seen.addresses.append(request.url))
    page.on("console", lambda message: seen.complaints.append(message.text))
    page.on("pageerror", lambda error: seen.complaints.append(str(error)))
    page.goto(address)
    page.wait_for_load_state("networkidle")
    return seen


def test_the_page_asks_no_other_host_and_breaks_no_policy(server: Server, browser: Browser) -> None:
    page = browser.new_page()

    seen = visit(page, f"{server.address}/docs")

    assert page.title() == "Hublet API"
    assert seen.complaints == []
    assert [a for a in seen.addresses if not a.startswith(server.address)] == []
    page.close()


def test_typing_narrows_the_list_and_escape_brings_it_back(
    server: Server, browser: Browser
) -> None:
    page = browser.new_page()
    visit(page, f"{server.address}/docs")
    links = page.locator("nav li a:visible")
    all_of_them = links.count()

    page.keyboard.press("/")
    page.keyboard.type("credentials/revoke")
    narrowed = links.all_inner_texts()
    page.keyboard.press("Escape")

    assert [text.split("\n")[-1].strip() for text in narrowed] == ["Revoke credentials"]
    assert links.count() == all_of_them > 20
    page.close()


def test_without_scripts_everything_is_there(server: Server, browser: Browser) -> None:
    page = browser.new_page(java_script_enabled=False)

    visit(page, f"{server.address}/docs")

    assert page.get_by_text("/api/whoami-v2").first.is_visible()
    assert not page.locator("#search-box").is_visible()
    page.close()


@pytest.mark.parametrize("path", ["/docs", "/"])
def test_a_phone_needs_no_sideways_scrolling(server: Server, browser: Browser, path: str) -> None:
    page = browser.new_page(viewport={"width": 360, "height": 740})

    visit(page, f"{server.address}{path}")

    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.close()
