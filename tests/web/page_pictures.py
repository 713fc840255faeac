"""Pictures of the documentation: contact sheets of all pages, and the two of the README.

`make pictures` writes them anew. The thumbnails are put together by the browser itself.
"""

import tempfile
from base64 import b64encode
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page

from browsers import chromium_browser
from processes import Place
from web.page_inventory import PAGES, PageCase, SeededHub, seeded_hub

_FOLDER = Path(__file__).parents[2] / "docs/images"
_README = {"model": "repository.png", "pull request with conflict": "pull-request.png"}
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


def _write_readme_pictures(browser: Browser, hub: SeededHub) -> None:
    page = _open(browser, hub, "ada", "light", 1280)
    for case in PAGES:
        if case.name in _README:
            page.goto(hub.url_of(case))
            page.screenshot(path=_FOLDER / _README[case.name])
    page.context.close()


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        seeded_hub(Place(folder=Path(folder))) as hub,
        chromium_browser() as browser,
    ):
        _write_readme_pictures(browser, hub)
        _write_sheet(browser, hub, "light")
        _write_sheet(browser, hub, "dark")


if __name__ == "__main__":
    main()
