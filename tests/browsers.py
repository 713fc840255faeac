"""A real browser, as patient as the tests."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from patience import SOON_SECONDS

_CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
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
