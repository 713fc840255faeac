"""Browser without scripts, in which a user signs in at the hub and allows an app."""

import re
import urllib.error
import urllib.parse
import urllib.request
from html import unescape
from http.cookiejar import CookieJar, DefaultCookiePolicy

from hublet.core.dataclasses import dataclass
from hublet.testing.errors import HubletTestingError

_MAX_STEPS = 20
_SECONDS = 30.0
_REFRESH = re.compile(r'<meta http-equiv="refresh" content="0; url=([^"]+)"')
_INPUT = re.compile(r'<input[^>]*name="(\w+)"[^>]*value="([^"]*)"')

Form = dict[str, str | list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The page that the browser has loaded."""

    url: str
    status: int
    text: str


class Browser:
    """Follows redirects, keeps cookies, and fills in the hub's forms as they stand."""

    def __init__(self, hub: str, *, name: str, password: str) -> None:
        self._hub = hub
        self._login: Form = {"name": name, "password": password}
        # As browsers do, treat http on this machine as secure.
        policy = DefaultCookiePolicy(secure_protocols=("http", "https"))
        self._opener = urllib.request.build_opener(
            urllib.request.HTTPCookieProcessor(CookieJar(policy)),
            urllib.request.ProxyHandler({}),
        )

    def visit(self, url: str) -> Page:
        """Open a page and follow its redirects."""
        return self._follow(self._open(url))

    def allow(self, url: str, *, organizations: tuple[str, ...] = ()) -> Page:
        """Open a page; wherever the hub asks, sign in and press Allow. Return the last page."""
        return self._decide(url, {"decision": "allow", "organization": list(organizations)})

    def deny(self, url: str) -> Page:
        """Open a page; wherever the hub asks, sign in and press Deny. Return the last page."""
        return self._decide(url, {"decision": "deny"})

    def _decide(self, url: str, choice: Form) -> Page:
        page = self.visit(url)
        answers: dict[str, Form] = {
            "/login": self._login,
            "/oauth/consent": choice,
            "/device": {},
            "/device/decision": choice,
        }
        for _ in range(_MAX_STEPS):
            match = next(((p, f) for p in answers if (f := _find_form(page, p)) is not None), None)
            if match is None or not page.url.startswith(self._hub):
                return page
            path, form = match
            page = self._send(path, form | answers[path])
        raise HubletTestingError(f"The hub asks again and again at {page.url}.")

    def _send(self, path: str, form: Form) -> Page:
        data = urllib.parse.urlencode(form, doseq=True).encode()
        return self._follow(self._open(urllib.parse.urljoin(self._hub, path), data))

    def _follow(self, page: Page) -> Page:
        for _ in range(_MAX_STEPS):
            refresh = _REFRESH.search(page.text)
            if refresh is None:
                return page
            page = self._open(urllib.parse.urljoin(page.url, unescape(refresh[1])))
        raise HubletTestingError(f"The pages lead on without an end: {page.url}.")

    def _open(self, url: str, data: bytes | None = None) -> Page:
        try:
            response = self._opener.open(url, data, timeout=_SECONDS)
        except urllib.error.HTTPError as error:
            response = error
        with response:
            text = response.read().decode(errors="replace")
            return Page(url=response.geturl(), status=response.status or 0, text=text)


def _find_form(page: Page, action: str) -> Form | None:
    """Return the fields of the form with this action, if the page has one."""
    form = re.search(rf'<form[^>]*action="{re.escape(action)}".*?</form>', page.text, re.DOTALL)
    if form is None:
        return None
    inputs = _INPUT.findall(form[0])
    return {name: unescape(value) for name, value in inputs if name != "organization"}
