"""All pages in a real Chromium, light and dark, wide and narrow: nothing is amiss on any of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, Response, Route, expect

from browsers import chromium_browser, needs_chromium
from processes import Place
from web.page_inventory import PAGES, PageCase, SeededHub, seeded_hub

_AXE = Path(__file__).parents[1] / "acceptance/javascript/node_modules/axe-core/axe.min.js"

pytestmark = [
    needs_chromium,
    pytest.mark.skipif(not _AXE.exists(), reason="no axe-core: `make .venv/.clients` brings it"),
]

# What moves after it was shown is noted from the first frame on.
_NOTE_SHIFTS = """
window.shifts = [];
window.shiftObserver = new PerformanceObserver((list) => shifts.push(...list.getEntries()));
window.shiftObserver.observe({ type: "layout-shift", buffered: true });
"""
# An observer is told after the frame, and what was not told yet is taken from it. An age that the
# script writes anew may be a word longer, which moves its neighbours in the line: less than 0.001.
_READ_SHIFTS = """
() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(
  [...shifts.splice(0), ...shiftObserver.takeRecords()].filter(({ value }) => value >= 0.001).flatMap(
    (each) => each.sources.map(
      ({ node }) => `moved: ${(node?.parentElement ?? node)?.outerHTML?.slice(0, 120)}`
    )
  )
)))))
"""
_RUN_AXE = """
async (rules) => (await axe.run(document, {
  runOnly: rules,
  resultTypes: ["violations"],
  preload: false,
})).violations.flatMap(({ id, nodes }) => nodes.map(
  ({ html, failureSummary }) => `${id}: ${html.slice(0, 160)} ${failureSummary.slice(0, 300)}`
))
"""
_WIDE = 1360
_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# All that another theme changes.
_COLOUR_RULES = ["color-contrast", "link-in-text-block"]
# The reference says the same of hundreds of operations: a few of each group are enough for axe.
_SHORTEN = """
() => document.querySelectorAll("body.docs :is([data-group], article, li):nth-of-type(n + 4)").forEach(
  (each) => each.remove()
)
"""


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeededHub]:
    with seeded_hub(Place(folder=tmp_path_factory.mktemp("pages"))) as hub:
        yield hub


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with chromium_browser() as browser:
        yield browser


class Inspector:
    """One tab of one person, in which page after page is looked at."""

    def __init__(self, page: Page, hub: SeededHub, *, is_wide: bool) -> None:
        self.is_wide = is_wide
        self._page = page
        self._hub = hub
        self._complaints: list[str] = []
        page.add_init_script(_NOTE_SHIFTS)
        page.on("console", self._note_message)
        page.on("pageerror", lambda error: self._complaints.append(f"error: {error}"))
        page.on("response", self._note_response)
        page.on("requestfailed", self._note_failure)

    def faults_of(self, case: PageCase) -> list[str]:
        self._complaints.clear()
        page = self._page
        page.emulate_media(color_scheme="light")
        response = page.goto(self._hub.url_of(case))
        assert response is not None
        if response.status != case.status:
            return [f"status {response.status}"]
        faults = [*self._shifts_of(case), *self._too_wide()]
        page.evaluate(_AXE.read_text())
        page.evaluate(_SHORTEN)
        # Below a head that stays, a target is half hidden wherever a page was scrolled to.
        page.evaluate("scrollTo(0, 0)")
        faults += page.evaluate(_RUN_AXE, _RULES)
        # Colours are the same at every width.
        if self.is_wide:
            page.emulate_media(color_scheme="dark")
            faults += [f"dark: {each}" for each in page.evaluate(_RUN_AXE, _COLOUR_RULES)]
        return faults + self._complaints

    def _shifts_of(self, case: PageCase) -> list[str]:
        """Return what moves while the page loads.

        A busy machine may draw a page that it has read only half of: that is not seen twice.
        """
        shifts = self._read_shifts()
        if shifts:
            self._page.goto(self._hub.url_of(case))
            again = self._read_shifts()
            shifts = [each for each in shifts if each in again]
        return shifts

    def _read_shifts(self) -> list[str]:
        # Parts that the script loads later.
        expect(self._page.locator("[data-later]")).to_have_count(0)
        found: list[str] = self._page.evaluate(_READ_SHIFTS)
        return found

    def _too_wide(self) -> list[str]:
        widths = self._page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        return [f"{widths[0]} pixels wide"] if widths[0] > widths[1] else []

    def _note_message(self, message: ConsoleMessage) -> None:
        # The status of the page itself is looked at elsewhere.
        if "Failed to load resource" not in message.text:
            self._complaints.append(f"{message.type}: {message.text}")

    def _note_response(self, response: Response) -> None:
        if response.status >= 400 and not response.request.is_navigation_request():
            self._complaints.append(f"{response.status} for {response.url}")

    def _note_failure(self, request: Request) -> None:
        # Streams end with their page.
        if request.failure != "net::ERR_ABORTED":
            self._complaints.append(f"{request.failure} for {request.url}")


@pytest.mark.parametrize("width", [_WIDE, 390])
def test_nothing_is_amiss_on_any_page(hub: SeededHub, chromium: Browser, width: int) -> None:
    faults: dict[str, list[str]] = {}
    for who, cookies in hub.cookies.items():
        context = chromium.new_context(viewport={"width": width, "height": 900})
        context.add_cookies(
            [{"name": name, "value": value, "url": hub.address} for name, value in cookies.items()]
        )
        inspector = Inspector(context.new_page(), hub, is_wide=width == _WIDE)
        for case in PAGES:
            if case.who == who and (found := inspector.faults_of(case)):
                faults[case.name] = found
        context.close()

    lines = [f"{name}: {each}" for name, found in faults.items() for each in found]
    assert not lines, "\n".join(lines)


@pytest.mark.parametrize("path", ["/ada/engine-7b", "/ada/engine-7b/tree/main"])
def test_a_readme_does_not_move_while_its_pictures_load(
    hub: SeededHub, chromium: Browser, path: str
) -> None:
    page = chromium.new_page(base_url=hub.address, viewport={"width": 1360, "height": 2400})
    page.add_init_script(_NOTE_SHIFTS)
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/resolve/main/plot.png", hold)
    page.goto(path)
    picture = page.get_by_role("img", name="Loss over steps")
    expect(page.get_by_role("heading", name="Results")).to_be_visible()
    page.evaluate(_READ_SHIFTS)

    held[0].continue_()

    expect(picture).to_have_js_property("naturalWidth", 320)
    assert page.evaluate(_READ_SHIFTS) == []


def test_a_question_mark_lists_the_keys_and_they_can_be_switched_off(
    hub: SeededHub, chromium: Browser
) -> None:
    page = chromium.new_page(base_url=hub.address)
    page.goto("/models")
    dialog, search = page.get_by_role("dialog"), page.locator("#q")
    page.keyboard.press("?")
    expect(dialog).to_contain_text("Go to the search box")
    assert page.evaluate(_AXE.read_text() + f"; ({_RUN_AXE})({_RULES})") == []

    page.keyboard.press("Escape")
    page.keyboard.press("/")
    expect(search).to_be_focused()
    search.blur()
    page.get_by_role("button", name="Keyboard shortcuts").click()
    dialog.get_by_role("checkbox").uncheck()
    dialog.get_by_role("button", name="Close").click()
    page.goto("/datasets")
    page.keyboard.press("/")
    page.keyboard.press("?")

    expect(dialog).to_be_hidden()
    expect(search).not_to_be_focused()
    page.get_by_role("button", name="Keyboard shortcuts").click()
    expect(dialog.get_by_role("checkbox")).not_to_be_checked()
    page.close()
