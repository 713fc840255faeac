"""Browser sessions at a port: credentials of a request, and how a browser gets its cookie."""

import re
from urllib.parse import parse_qs, quote, urlencode

from hublet.core.config import Settings
from hublet.gateway.errors import AmbiguousRequest
from hublet.gateway.ports.authorization import Credentials
from hublet.gateway.ports.headers import ProxyRequest, cookie_of
from hublet.gateway.ports.service import COOKIE_SECONDS, new_secret
from hublet.gateway.records import JobPort
from hublet.login.browser import CHALLENGE_COOKIE, SESSION_COOKIE, cookie_name, safe_path

# On a job's own host everything below this is the hub's, and never the job's.
RESERVED_PREFIX = b"/.hublet/"
ENTER_PATH = b"/.hublet/enter"
_PASS_COOKIE, _STATE_COOKIE = "hublet_job", "hublet_job_state"
_STATE_SECONDS = 600
_VALUE = re.compile(r"[A-Za-z0-9]{43}")


class BrowserSessions:
    def __init__(self, settings: Settings) -> None:
        self._base_url = settings.base_url
        self._pass = cookie_name(settings, _PASS_COOKIE)
        self._state = cookie_name(settings, _STATE_COOKIE)
        self._rules = "; Path=/; HttpOnly; SameSite=Lax"
        if settings.base_url.startswith("https://"):
            self._rules += "; Secure"
        # Whatever the hub calls its cookies: none of them is the job's business.
        names = {
            cookie_name(settings, name)
            for name in (SESSION_COOKIE, CHALLENGE_COOKIE, _PASS_COOKIE, _STATE_COOKIE)
        }
        self.cookies = frozenset(
            name.encode() for name in names | {SESSION_COOKIE, CHALLENGE_COOKIE}
        )

    def shown(self, asked: ProxyRequest) -> Credentials:
        sent = asked.all_of(b"authorization")
        if len(sent) > 1:
            raise AmbiguousRequest("it has more than one Authorization")
        scheme, _, value = sent[0].decode("latin-1").partition(" ") if sent else ("", "", "")
        bearer = value.strip() if scheme.lower() == "bearer" else None
        cookie = cookie_of(asked, self._pass.encode()) if is_same_origin(asked) else None
        return Credentials(bearer=bearer or None, cookie=cookie)

    def to_hub(self, asked: ProxyRequest, target: JobPort) -> dict[str, str]:
        """Return the headers that lead a browser to the hub, which knows who sits there.

        What it comes back with is good only together with what the browser keeps here, so a link
        with a code of somebody else's lets nobody in.
        """
        known = cookie_of(asked, self._state.encode()) or ""
        state = known if _VALUE.fullmatch(known) else new_secret()
        query = urlencode({"state": state, "next": asked.target.decode("latin-1")})
        return {
            "Location": f"{self._base_url}/login/jobs/{target.job_id}/{target.port}?{query}",
            "Set-Cookie": f"{self._state}={state}; Max-Age={_STATE_SECONDS}{self._rules}",
        }

    def coming_back(self, asked: ProxyRequest) -> tuple[str, str, str]:
        """Return the code, what the browser kept, and the path to go on to."""
        fields = parse_qs(asked.target.partition(b"?")[2].decode("latin-1"))
        path = fields.get("next", ["/"])[0]
        state = cookie_of(asked, self._state.encode()) or ""
        return fields.get("code", [""])[0], state, path if safe_path(path) == path else "/"

    def let_in(self, value: str, path: str) -> dict[str, str]:
        return {
            "Location": path,
            "Set-Cookie": f"{self._pass}={value}; Max-Age={COOKIE_SECONDS}{self._rules}",
            "Referrer-Policy": "no-referrer",
        }


def entry_url(port_url: str, *, code: str, path: str) -> str:
    """Return where a code is exchanged, on the host of the port."""
    return f"{port_url}{ENTER_PATH.decode()}?code={code}&next={quote(path, safe='')}"


def is_navigation(asked: ProxyRequest) -> bool:
    """Tell whether a person opens a page, who can be led elsewhere; scripts want an answer."""
    if asked.method != b"GET" or asked.upgrade is not None:
        return False
    mode = asked.first_of(b"sec-fetch-mode") or b"navigate"
    accepted = b",".join(asked.all_of(b"accept"))
    return mode == b"navigate" and b"text/html" in accepted


def is_same_origin(asked: ProxyRequest) -> bool:
    """Tell whether a cookie counts: not where the page of another host has sent the request.

    Hosts of other jobs are of the same site, so the cookie's own rules do not keep them out.
    """
    origin = asked.first_of(b"origin")
    if origin is not None:
        host = (asked.first_of(b"host") or b"").lower()
        if origin.lower().partition(b"://")[2] != host:
            return False
    site = asked.first_of(b"sec-fetch-site") or b"none"
    opens = asked.method == b"GET" and asked.first_of(b"sec-fetch-mode") == b"navigate"
    return site in {b"same-origin", b"none"} or opens
