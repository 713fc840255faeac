"""A real browser, as patient as the tests."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, expect, sync_playwright

from patience import SOON_SECONDS

# The first has no windows and menus, which the others draw for nobody in half of their time.
_PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser")
_CHROMIUM = next(filter(None, map(shutil.which, _PROGRAMS)), None)
_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]

needs_chromium = pytest.mark.skipif(
    _CHROMIUM is None, reason="no chromium here: `apt-get install chromium` brings it"
)


_PATIENCE_MILLISECONDS = SOON_SECONDS * 1000


@contextmanager
def chromium_browser() -> Iterator[Browser]:
    expect.set_options(timeout=_PATIENCE_MILLISECONDS)
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(
            executable_path=_CHROMIUM, args=_FLAGS, timeout=2 * _PATIENCE_MILLISECONDS
        ) as browser,
    ):
        # There is no default for a whole browser: a page that is read from a cold disk may take long.
        for name in ("new_page", "new_context"):
            setattr(browser, name, _patient(getattr(browser, name)))
        yield browser


def _patient(create: Callable[..., Any]) -> Callable[..., Any]:
    def created(**options: Any) -> Any:
        made = create(**options)
        made.set_default_timeout(_PATIENCE_MILLISECONDS)
        return made

    return created


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How a person uses the pages: what the browser has, and whether there is only a keyboard."""

    name: str
    has_script: bool = True
    width: int = 1360
    by_keyboard: bool = False

    def __str__(self) -> str:
        return self.name


WAYS = (
    Way(name="script"),
    Way(name="no-script", has_script=False),
    Way(name="phone", width=390),
    Way(name="keyboard", by_keyboard=True),
)

# More than any page of a journey has.
_MOST_STOPS = 200

# What is wrong with the focus, if anything: it must be seen, with an outline, and nothing may cover it.
_FOCUS_PROBLEM = """() => {
  const element = document.activeElement;
  if (!element || element === document.body) return "";
  const style = getComputedStyle(element);
  if (style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 1) return "no outline";
  const box = element.getClientRects()[0];
  if (!box || box.width < 2 || box.height < 2) return "too small to be seen";
  const x = Math.min(Math.max(box.left + box.width / 2, 0), innerWidth - 1);
  const y = Math.min(Math.max(box.top + Math.min(box.height / 2, 20), 0), innerHeight - 1);
  if (box.bottom < 0 || box.top > innerHeight || box.right < 0 || box.left > innerWidth) return "out of view";
  const above = document.elementFromPoint(x, y);
  return above && (element.contains(above) || above.contains(element)) ? "" : `below <${above?.tagName}>`;
}"""


class Person:
    """Somebody in front of a page, who uses it in one of the ways."""

    def __init__(self, context: BrowserContext, way: Way) -> None:
        self.way = way
        self.page = context.new_page()

    def press(self, target: Locator) -> None:
        """Follow a link or press a button."""
        if self.way.by_keyboard:
            self._go_to(target)
            self.page.keyboard.press("Enter")
        else:
            target.click()

    def write(self, target: Locator, text: str) -> None:
        if self.way.by_keyboard:
            self._go_to(target)
            self.page.keyboard.type(text)
        else:
            target.fill(text)

    def check(self, target: Locator) -> None:
        if self.way.by_keyboard:
            self._go_to(target)
            self.page.keyboard.press("Space")
        else:
            target.check()

    def choose(self, target: Locator, text: str) -> None:
        """Choose one of the options of a list."""
        if self.way.by_keyboard:
            self._go_to(target)
            self.page.keyboard.type(text)
        else:
            target.select_option(text)

    def sign_in(self, name: str, password: str) -> None:
        """Fill in the login page."""
        self.write(self.page.get_by_label("Name or e-mail address"), name)
        self.write(self.page.get_by_label("Password"), password)
        self.press(self.page.get_by_role("button", name="Sign in", exact=True))

    def expect_fit(self) -> None:
        """Assert that the page is not wider than the window."""
        wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert self.page.evaluate(wide) <= 0, self.page.url

    def _go_to(self, target: Locator) -> None:
        """Press Tab until the target has the focus, which must be seen at every stop."""
        expect(target).to_be_visible()
        for _ in range(_MOST_STOPS):
            if target.evaluate("element => element === document.activeElement"):
                return
            self.page.keyboard.press("Tab")
            problem = self.page.evaluate(_FOCUS_PROBLEM)
            stop = self.page.evaluate("document.activeElement.outerHTML.slice(0, 200)")
            assert not problem, f"{self.page.url}: the focus is {problem}: {stop}"
        raise AssertionError(f"{self.page.url}: Tab does not reach {target}")
