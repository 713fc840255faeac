"""A real browser, as patient as the tests."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from patience import SOON_SECONDS

_CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]

needs_chromium = pytest.mark.skipif(
    _CHROMIUM is None, reason="no chromium here: `apt-get install chromium` brings it"
)


@contextmanager
def chromium_browser() -> Iterator[Browser]:
    expect.set_options(timeout=SOON_SECONDS * 1000)
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=_CHROMIUM, args=_FLAGS) as browser,
    ):
        yield browser
