"""A browser without scripts, in which a user of the hub signs in and presses Allow."""

import re
import urllib.error
import urllib.parse
import urllib.request
from html import unescape
from http.cookiejar import CookieJar, DefaultCookiePolicy

from hublet.core.dataclasses import dataclass
from hublet.testing.errors import HubletTestingError

_MOST_STEPS = 20
_SECONDS = 30.0
_REFRESH = re.compile(r'<meta http-equiv="refresh" content="0; url=([^"]+)"')
_INPUT = re.compile(r'<input[^>]*name="(\w+)"[^>]*value="([^"]*)"')

Form = dict[str, str | list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """What the browser shows."""

    url: str
    status: int
    text: str


class Browser:
    """Follows redirects, keeps cookies, and fills in the hub's forms as they stand."""

    def __init__(self, hub: str, *, name: str, password: str) -> None:
        self._hub = hub
        self._login: Form = {"name": name, "password": password}
        # On this machine itself browsers take http for as safe as https.
        policy = DefaultCookiePolicy(secure_protocols=("http", "https"))
        self._opener = urllib.request.build_opener(
            urllib.request.HTTPCookieProcessor(CookieJar(policy)),
            urllib.request.ProxyHandler({}),
        )

    def visit(self, url: str) -> Page:
        """Open a page and follow where it leads by itself."""
        return self._follow(self._open(url))

    def allow(self, url: str, *, organizations: tuple[str, ...] = ()) -> Page:
        """Open a page; wherever the hub asks, sign in and press Allow. Return the last page."""
        page = self.visit(url)
        choice: Form = {"decision": "allow", "organization": list(organizations)}
        answers: dict[str, Form] = {
            "/login": self._login,
            "/oauth/consent": choice,
            "/device": {},
            "/device/decision": choice,
        }
        for _ in range(_MOST_STEPS):
            asked = next(((p, f) for p in answers if (f := _find_form(page, p)) is not None), None)
            if asked is None or not page.url.startswith(self._hub):
                return page
            path, form = asked
            page = self._send(path, form | answers[path])
        raise HubletTestingError(f"The hub asks again and again at {page.url}.")

    def _send(self, path: str, form: Form) -> Page:
        data = urllib.parse.urlencode(form, doseq=True).encode()
        return self._follow(self._open(urllib.parse.urljoin(self._hub, path), data))

    def _follow(self, page: Page) -> Page:
        for _ in range(_MOST_STEPS):
            refresh = _REFRESH.search(page.text)
            if refresh is None:
                return page
            page = self._open(urllib.parse.urljoin(page.url, unescape(refresh[1])))
        raise HubletTestingError(f"The pages lead on without an end: {page.url}.")

    def _open(self, url: str, data: bytes | None = None) -> Page:
        try:
            answer = self._opener.open(url, data, timeout=_SECONDS)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            text = answer.read().decode(errors="replace")
            return Page(url=answer.geturl(), status=answer.status or 0, text=text)


def _find_form(page: Page, action: str) -> Form | None:
    """Return the fields of the page's form that is sent to this path, if it has one."""
    found = re.search(rf'<form[^>]*action="{re.escape(action)}".*?</form>', page.text, re.DOTALL)
    if found is None:
        return None
    inputs = _INPUT.findall(found[0])
    return {name: unescape(value) for name, value in inputs if name != "organization"}
