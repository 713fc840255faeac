"""Pictures of the documentation: pages of a hub that `hublet demo` filled, and contact sheets of all.

`make pictures` writes them anew. The thumbnails are put together by the browser itself.
"""

import json
import sys
import tempfile
from base64 import b64encode
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page

from browsers import chromium_browser
from processes import Place, run_hublet, serving
from web.page_inventory import PAGES, PageCase, SeededHub, seeded_hub, sign_in

_FOLDER = Path(__file__).parents[2] / "docs/images"
# The pages of the demo that the documentation shows, by the name of the picture. Those that are not
# built yet are left out; the page of `docs/` that has the picture stands behind them.
_DEMO = {
    "repository": "/ada/engine-7b",  # README.md, browser.md
    "pull-request": "/ada/engine-7b/discussions/3",  # README.md
    "connected-applications": "/settings/connected-applications",  # oauth.md
    "job": "{train-engine}",  # jobs.md
    "webhooks": "/settings/webhooks",  # webhooks.md
    "inbox": "/notifications?readStatus=all",  # notifications.md
    "administration": "/admin",  # operating.md
}
_ON_A_PHONE = {"start page", "model", "code", "thread", "pull request with conflict", "models"}
_SHEET = """<!doctype html><style>
body { margin: 0; padding: 12px; width: 1260px; background: %s; color: %s; font: 11px sans-serif }
main { display: flex; flex-wrap: wrap; gap: 10px } figure { margin: 0; width: 200px }
img { display: block; width: 200px; border: 1px solid #8888 } .phone, .phone img { width: 92px }
figcaption { overflow: hidden; white-space: nowrap; text-overflow: ellipsis }
</style><main>%s</main>"""

_Theme = Literal["light", "dark"]
_COLOURS = {"light": ("#e8e8e4", "#1b1d21"), "dark": ("#000000", "#e6e8ec")}


def _open(browser: Browser, hub: SeededHub, who: str | None, theme: _Theme, width: int) -> Page:
    height = 844 if width < 500 else 860
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme)
    for name, value in hub.cookies[who].items():
        context.add_cookies([{"name": name, "value": value, "url": hub.address}])
    return context.new_page()


def _figures(page: Page, hub: SeededHub, cases: Iterable[PageCase], style: str) -> list[str]:
    figures = []
    for case in cases:
        page.goto(hub.url_of(case))
        page.locator("[data-later]").first.wait_for(state="detached")
        picture = b64encode(page.screenshot(type="jpeg", quality=80)).decode()
        title = escape(case.name)
        figures.append(
            f'<figure class="{style}"><img src="data:image/jpeg;base64,{picture}">'
            f"<figcaption>{title}</figcaption></figure>"
        )
    return figures


def _write_sheet(browser: Browser, hub: SeededHub, theme: _Theme) -> None:
    figures = []
    for who in hub.cookies:
        page = _open(browser, hub, who, theme, 1360)
        figures += _figures(page, hub, [each for each in PAGES if each.who == who], "wide")
        page.context.close()
    page = _open(browser, hub, "ada", theme, 390)
    figures += _figures(page, hub, [each for each in PAGES if each.name in _ON_A_PHONE], "phone")
    page.context.close()
    sheet = browser.new_page(viewport={"width": 1284, "height": 800})
    sheet.set_content(_SHEET % (*_COLOURS[theme], "".join(figures)))
    sheet.screenshot(path=_FOLDER / f"pages-{theme}.png", full_page=True)
    sheet.close()


@contextmanager
def _demo_hub(place: Place) -> Iterator[SeededHub]:
    """Run a hub that the demo filled, with ada and its administrator katherine signed in."""
    place.folder.mkdir()
    filled = run_hublet("demo", "--json", *place.flags, folder=place.folder)
    assert filled.returncode == 0, filled.stderr
    added = json.loads(filled.stdout)["added"]
    passwords = {each["name"]: each["secret"] for each in added if each["what"] == "user"}
    jobs = {
        each["detail"].partition(",")[0]: each["name"] for each in added if each["what"] == "job"
    }
    with serving(place) as server:
        cookies = {name: sign_in(server, name, passwords[name]) for name in ("ada", "katherine")}
        yield SeededHub(address=server.address, values=jobs, cookies=cookies)


def _write_demo_pictures(browser: Browser, hub: SeededHub, theme: _Theme) -> None:
    for name, path in _DEMO.items():
        who = "katherine" if path.startswith("/admin") else "ada"
        page = _open(browser, hub, who, theme, 1280)
        response = page.goto(hub.address + path.format_map(hub.values))
        if response is None or not response.ok:
            sys.stderr.write(f"{name}: there is no page {path} yet\n")
            continue
        # Streams never end, so there is no moment at which the network is idle.
        page.locator("[data-later]").first.wait_for(state="detached")
        end = "" if theme == "light" else "-dark"
        page.screenshot(path=_FOLDER / f"{name}{end}.png")
        page.context.close()


def _write_console_picture(browser: Browser, hub: SeededHub) -> None:
    """Draw the SQL console with the rows of a saved query, as docs/sql.md shows it."""
    page = _open(browser, hub, "ada", "light", 1360)
    page.goto(hub.url_of(next(each for each in PAGES if each.name == "saved query")))
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_role("cell", name="wheel").wait_for()
    page.screenshot(path=_FOLDER / "sql-console.png")
    page.context.close()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, chromium_browser() as browser:
        with _demo_hub(Place(folder=Path(folder) / "demo")) as hub:
            _write_demo_pictures(browser, hub, "light")
            _write_demo_pictures(browser, hub, "dark")
        (pages := Path(folder) / "pages").mkdir()
        with seeded_hub(Place(folder=pages)) as hub:
            _write_console_picture(browser, hub)
            _write_sheet(browser, hub, "light")
            _write_sheet(browser, hub, "dark")


if __name__ == "__main__":
    main()
