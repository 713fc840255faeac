"""A person in front of a browser without scripts: signs in, reads a page, presses a button."""

import re
from html import unescape
from http.cookiejar import CookieJar, DefaultCookiePolicy
from types import TracebackType
from typing import Self
from urllib.parse import urljoin

import httpx2

_MOST_STEPS = 20


class BrowserUser:
    """Follows links and redirects like a browser, and fills in forms as they stand."""

    def __init__(self, hub: str, *, name: str, password: str) -> None:
        self._hub = hub
        self._name = name
        self._password = password
        # On this machine itself browsers take http for as safe as https.
        policy = DefaultCookiePolicy(secure_protocols=("http", "https"))
        self._http = httpx2.Client(
            timeout=60,
            trust_env=False,
            cookies=CookieJar(policy),
            limits=httpx2.Limits(max_keepalive_connections=0),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.close()

    def allow(self, address: str, *, organizations: tuple[str, ...] = ()) -> httpx2.Response:
        """Go to an address, sign in and press Allow where that is asked; return the last page."""
        page = self.visit(address)
        for _ in range(_MOST_STEPS):
            if (form := _form(page, "/login")) is not None:
                form |= {"name": self._name, "password": self._password}
                page = self._send("/login", form)
            elif (form := _form(page, "/oauth/consent")) is not None:
                page = self._send("/oauth/consent", form | _choice(organizations))
            elif (form := _form(page, "/device")) is not None:
                page = self._send("/device", form)
            elif (form := _form(page, "/device/decision")) is not None:
                page = self._send("/device/decision", form | _choice(organizations))
            else:
                return page
        raise AssertionError(f"The pages never end: {page.url}")

    def visit(self, address: str) -> httpx2.Response:
        return self._follow(self._http.get(address))

    def _send(self, path: str, form: dict[str, str | list[str]]) -> httpx2.Response:
        return self._follow(self._http.post(urljoin(self._hub, path), data=form))

    def _follow(self, response: httpx2.Response) -> httpx2.Response:
        for _ in range(_MOST_STEPS):
            target = _next(response)
            if target is None:
                return response
            response = self._http.get(urljoin(str(response.url), target))
        raise AssertionError(f"The redirects never end: {response.url}")


def _next(response: httpx2.Response) -> str | None:
    if response.is_redirect:
        return response.headers["location"]
    refresh = re.search(r'<meta http-equiv="refresh" content="0; url=([^"]+)"', response.text)
    return unescape(refresh[1]) if refresh else None


def _choice(organizations: tuple[str, ...]) -> dict[str, str | list[str]]:
    return {"decision": "allow", "organization": list(organizations)}


def _form(page: httpx2.Response, action: str) -> dict[str, str | list[str]] | None:
    """Return the fields of the page's form that is sent to this path, if it has one."""
    found = re.search(rf'<form[^>]*action="{re.escape(action)}".*?</form>', page.text, re.DOTALL)
    if found is None:
        return None
    inputs = re.findall(r'<input[^>]*name="(\w+)"[^>]*value="([^"]*)"', found[0])
    return {name: unescape(value) for name, value in inputs if name != "organization"}
