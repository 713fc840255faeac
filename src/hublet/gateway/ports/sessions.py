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

# On a job's host, paths below this are answered by the hub, never by the job.
RESERVED_PREFIX = b"/.hublet/"
ENTER_PATH = b"/.hublet/enter"
_PASS_COOKIE, _STATE_COOKIE = "hublet_job", "hublet_job_state"
_STATE_SECONDS = 600
_VALUE = re.compile(r"[A-Za-z0-9]{43}")


class BrowserSessions:
    """Cookies and redirects of browsers at the ports of jobs."""

    def __init__(self, settings: Settings) -> None:
        self._base_url = settings.base_url
        self._pass = cookie_name(settings, _PASS_COOKIE)
        self._state = cookie_name(settings, _STATE_COOKIE)
        self._rules = "; Path=/; HttpOnly; SameSite=Lax"
        if settings.base_url.startswith("https://"):
            self._rules += "; Secure"
        # All names of the hub's cookies, which the job must not see.
        names = {
            cookie_name(settings, name)
            for name in (SESSION_COOKIE, CHALLENGE_COOKIE, _PASS_COOKIE, _STATE_COOKIE)
        }
        self.cookies = frozenset(
            name.encode() for name in names | {SESSION_COOKIE, CHALLENGE_COOKIE}
        )

    def credentials_of(self, request: ProxyRequest, *, address: str) -> Credentials:
        sent = request.all_of(b"authorization")
        if len(sent) > 1:
            raise AmbiguousRequest("it has more than one Authorization")
        scheme, _, value = sent[0].decode("latin-1").partition(" ") if sent else ("", "", "")
        bearer = value.strip() if scheme.lower() == "bearer" else None
        cookie = cookie_of(request, self._pass.encode()) if is_same_origin(request) else None
        return Credentials(bearer=bearer or None, cookie=cookie, address=address)

    def redirect_to_login(self, request: ProxyRequest, target: JobPort) -> dict[str, str]:
        """Return the headers that redirect a browser to the hub, where its user is logged in.

        The code that it comes back with works only with the state cookie set here, so a link with
        the code of somebody else is useless.
        """
        state_before = cookie_of(request, self._state.encode()) or ""
        state = state_before if _VALUE.fullmatch(state_before) else new_secret()
        query = urlencode({"state": state, "next": request.target.decode("latin-1")})
        return {
            "Location": f"{self._base_url}/login/jobs/{target.job_id}/{target.port}?{query}",
            "Set-Cookie": f"{self._state}={state}; Max-Age={_STATE_SECONDS}{self._rules}",
        }

    def login_result(self, request: ProxyRequest) -> tuple[str, str, str]:
        """Return the code, the state of the browser, and the path to go on to."""
        fields = parse_qs(request.target.partition(b"?")[2].decode("latin-1"))
        path = fields.get("next", ["/"])[0]
        state = cookie_of(request, self._state.encode()) or ""
        return fields.get("code", [""])[0], state, path if safe_path(path) == path else "/"

    def set_cookie(self, value: str, path: str) -> dict[str, str]:
        return {
            "Location": path,
            "Set-Cookie": f"{self._pass}={value}; Max-Age={COOKIE_SECONDS}{self._rules}",
            "Referrer-Policy": "no-referrer",
        }


def entry_url(port_url: str, *, code: str, path: str) -> str:
    """Return the URL on the host of the port where a code is exchanged for a cookie."""
    return f"{port_url}{ENTER_PATH.decode()}?code={code}&next={quote(path, safe='')}"


def is_navigation(request: ProxyRequest) -> bool:
    """Tell whether a person opens a page, who can be redirected; scripts need an error."""
    if request.method != b"GET" or request.upgrade is not None:
        return False
    mode = request.first_of(b"sec-fetch-mode") or b"navigate"
    accepted = b",".join(request.all_of(b"accept"))
    return mode == b"navigate" and b"text/html" in accepted


def is_same_origin(request: ProxyRequest) -> bool:
    """Tell whether a cookie counts: not if a page of another host has sent the request.

    Hosts of other jobs are the same site, so SameSite does not keep them out.
    """
    origin = request.first_of(b"origin")
    if origin is not None:
        host = (request.first_of(b"host") or b"").lower()
        if origin.lower().partition(b"://")[2] != host:
            return False
    site = request.first_of(b"sec-fetch-site") or b"none"
    opens = request.method == b"GET" and request.first_of(b"sec-fetch-mode") == b"navigate"
    return site in {b"same-origin", b"none"} or opens
