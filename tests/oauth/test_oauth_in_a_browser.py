"""Signing in to an app in a real Chromium, as a person does it."""

import re
import threading
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from browsers import chromium_browser, needs_chromium
from processes import Place, Server, run_hublet, serving

pytestmark = needs_chromium

PASSWORD = "correct horse battery"
VERIFIER = "v" * 43
CHALLENGE = urlsafe_b64encode(sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()


@dataclass(slots=True)
class Site:
    """An app's own site on this machine: what its callback was told, and other pages of it."""

    address: str = ""
    told: list[dict[str, str]] = field(default_factory=list)
    pages: dict[str, str] = field(default_factory=dict)


def _handler_of(site: Site) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            if url.path == "/callback":
                site.told.append(dict(parse_qsl(url.query)))
                # As apps do: on to another host of theirs, which the form's policy must not stop.
                self.send_response(302)
                self.send_header("Location", site.address.replace("127.0.0.1", "localhost"))
                self.end_headers()
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(site.pages.get(url.path, "<h1>Welcome to Loom</h1>").encode())

        def log_message(self, *_arguments: Any) -> None:
            pass

    return Handler


@pytest.fixture(scope="module")
def running_site() -> Iterator[Site]:
    site = Site()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(site))
    site.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield site
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def site(running_site: Site) -> Site:
    running_site.told.clear()
    running_site.pages.clear()
    return running_site


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(folder=tmp_path_factory.mktemp("oauth"))


@pytest.fixture(scope="module")
def server(place: Place) -> Iterator[Server]:
    with serving(place) as server:
        yield server


@dataclass(frozen=True, slots=True, kw_only=True)
class Hub:
    """A hub where ada has an account and belongs to acme, and its app Loom."""

    server: Server
    token: str
    client_id: str
    site: str

    @property
    def address(self) -> str:
        return self.server.address

    def link(self, **changes: str) -> str:
        """Return the link with which Loom sends people here."""
        query = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": f"{self.site}/callback",
            "scope": "openid profile read-repos",
            "state": "s1",
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
        }
        return f"{self.address}/oauth/authorize?{urlencode(query | changes)}"

    def call(self, method: str, path: str, **arguments: Any) -> Any:
        # Apps show who they are in their own way, never with a token of ada's.
        token = self.token if path.startswith("/api/") else None
        with self.server.client(token) as client:
            response = client.request(method, path, **arguments)
        assert response.status_code == 200, response.text
        return response.json()


@pytest.fixture(scope="module")
def token(server: Server, place: Place) -> str:
    """A token of ada's, who has an account and belongs to acme."""
    assert server.address

    def run(*arguments: str) -> str:
        done = run_hublet(*arguments, *place.flags, folder=place.folder)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    run("user", "add", "ada", "--password", PASSWORD)
    run("org", "add", "acme")
    run("org", "member", "add", "acme", "ada", "--role", "admin")
    return run("token", "create", "ada", "--role", "write")


@pytest.fixture
def hub(server: Server, token: str, running_site: Site) -> Hub:
    """The hub with an app that nobody has allowed anything yet."""
    hub = Hub(server=server, token=token, client_id="", site=running_site.address)
    for access in hub.call("GET", "/api/settings/oauth-accesses"):
        hub.call("DELETE", f"/api/settings/oauth-accesses/{access['id']}")
    app = {
        "name": "Loom",
        "redirectUris": ["http://127.0.0.1/callback"],
        "scopes": ["openid", "profile", "read-repos"],
    }
    created = hub.call("POST", "/api/settings/oauth-apps", json=app)
    return replace(hub, client_id=created["clientId"])


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with chromium_browser() as browser:
        yield browser


@pytest.fixture(params=[True, False], ids=["with scripts", "without scripts"])
def browser(
    chromium: Browser, hub: Hub, request: pytest.FixtureRequest
) -> Iterator[BrowserContext]:
    """A browser that knows nobody; whatever it complains about fails the test."""
    complaints: list[str] = []
    context = chromium.new_context(base_url=hub.address, java_script_enabled=request.param)
    context.on("console", lambda message: complaints.append(message.text))
    yield context
    context.close()
    # A page that says 400 or 403 is told by the browser as a complaint; that is on purpose.
    assert [text for text in complaints if not re.search(r"status of 4\d\d", text)] == []


@pytest.fixture
def phone(chromium: Browser, hub: Hub) -> Iterator[Page]:
    """Somebody signed in, on a small screen."""
    context = chromium.new_context(
        base_url=hub.address, viewport={"width": 360, "height": 740}, has_touch=True
    )
    page = context.new_page()
    page.goto("/login")
    sign_in(page)
    yield page
    context.close()


def sign_in(page: Page) -> None:
    page.get_by_label("Name or e-mail address").fill("ada")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_label("Password")).to_have_count(0)


def arrived(page: Page, site: Site) -> dict[str, str]:
    """Wait until the app's own page is shown, and return what its callback was told."""
    expect(page.get_by_role("heading", name="Welcome to Loom")).to_be_visible()
    return site.told[-1]


def redeem(hub: Hub, code: str) -> dict[str, Any]:
    form = {
        "grant_type": "authorization_code",
        "client_id": hub.client_id,
        "code": code,
        "redirect_uri": f"{hub.site}/callback",
        "code_verifier": VERIFIER,
    }
    tokens: dict[str, Any] = hub.call("POST", "/oauth/token", data=form)
    return tokens


def status_with(hub: Hub, access_token: str) -> int:
    with hub.server.client(access_token) as client:
        return client.get("/oauth/userinfo").status_code


def test_a_person_signs_in_chooses_and_allows(
    browser: BrowserContext, hub: Hub, site: Site
) -> None:
    page = browser.new_page()
    page.goto(hub.link())
    sign_in(page)

    expect(page.get_by_role("heading", name="Allow Loom?")).to_be_visible()
    expect(page.get_by_text("Read your personal repositories")).to_be_visible()
    expect(page.get_by_text("This app runs on your own machine")).to_be_visible()
    page.get_by_label("acme").check()
    page.get_by_role("button", name="Allow").click()

    told = arrived(page, site)
    assert told == {"code": told["code"], "state": "s1", "iss": hub.address}
    tokens = redeem(hub, told["code"])
    assert status_with(hub, tokens["access_token"]) == 200
    [access] = hub.call("GET", "/api/settings/oauth-accesses")
    assert [each["name"] for each in access["organizations"]] == ["acme"]


def test_the_second_time_nothing_is_asked_even_after_a_login(
    browser: BrowserContext, hub: Hub, site: Site
) -> None:
    page = browser.new_page()
    page.goto(hub.link())
    sign_in(page)
    page.get_by_role("button", name="Allow").click()
    redeem(hub, arrived(page, site)["code"])

    page.goto(hub.link(state="s2"))
    at_once = arrived(page, site)
    browser.clear_cookies()
    page.goto(hub.link(state="s3"))
    sign_in(page)
    after_login = arrived(page, site)

    assert [at_once["state"], after_login["state"]] == ["s2", "s3"]


def test_a_person_says_no(browser: BrowserContext, hub: Hub, site: Site) -> None:
    page = browser.new_page()
    page.goto(hub.link())
    sign_in(page)

    page.get_by_role("button", name="Deny").click()

    assert arrived(page, site) == {
        "error": "access_denied",
        "error_description": "The person said no.",
        "state": "s1",
        "iss": hub.address,
    }


def test_the_keyboard_is_enough(chromium: Browser, hub: Hub, site: Site) -> None:
    page = chromium.new_page()
    page.goto(hub.link())
    sign_in(page)
    allow = page.get_by_role("button", name="Allow")
    for _ in range(25):
        page.keyboard.press("Tab")
        if allow.evaluate("button => button === document.activeElement"):
            break

    page.keyboard.press("Enter")

    assert "code" in arrived(page, site)
    page.close()


def test_signing_in_again_when_the_app_insists(
    browser: BrowserContext, hub: Hub, site: Site
) -> None:
    page = browser.new_page()
    page.goto("/login")
    sign_in(page)

    page.goto(hub.link(prompt="login"))
    expect(page.get_by_text("To go on, show once more that it is you.")).to_be_visible()
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.get_by_role("button", name="Allow").click()

    assert "code" in arrived(page, site)


def test_a_device_is_connected_by_its_code(browser: BrowserContext, hub: Hub) -> None:
    started = hub.call("POST", "/oauth/device", data={"client_id": hub.client_id})
    page = browser.new_page()

    page.goto(started["verification_uri_complete"])
    sign_in(page)
    expect(page.get_by_label("Code")).to_have_value(started["user_code"])
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("heading", name="Is this code on your device?")).to_be_visible()
    expect(page.locator(".user-code")).to_have_text(started["user_code"])
    page.get_by_label("acme").check()
    page.get_by_role("button", name="Allow").click()

    expect(page.get_by_role("heading", name="Loom is connected")).to_be_visible()
    form = {
        "grant_type": "urn:ietf:params:oauth:grant-type:device_code",
        "device_code": started["device_code"],
        "client_id": hub.client_id,
    }
    tokens = hub.call("POST", "/oauth/token", data=form)
    assert status_with(hub, tokens["access_token"]) == 200


def test_a_wrong_code_can_be_typed_again(browser: BrowserContext, hub: Hub) -> None:
    started = hub.call("POST", "/oauth/device", data={"client_id": hub.client_id})
    page = browser.new_page()
    page.goto(started["verification_uri"])
    sign_in(page)

    page.get_by_label("Code").fill("BBBB-BBBB")
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("alert")).to_contain_text("No device waits under this code.")
    page.get_by_label("Code").fill(started["user_code"].lower())
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Deny").click()

    expect(page.get_by_role("heading", name="Loom was denied")).to_be_visible()


def test_access_is_taken_back_at_once(browser: BrowserContext, hub: Hub, site: Site) -> None:
    page = browser.new_page()
    page.goto(hub.link())
    sign_in(page)
    page.get_by_role("button", name="Allow").click()
    tokens = redeem(hub, arrived(page, site)["code"])
    assert status_with(hub, tokens["access_token"]) == 200

    page.goto("/settings/connected-applications")
    page.get_by_role("button", name="Revoke the access of Loom").click()

    expect(page.get_by_text("No app has access to your account.")).to_be_visible()
    assert status_with(hub, tokens["access_token"]) == 401
    page.goto(hub.link())
    expect(page.get_by_role("heading", name="Allow Loom?")).to_be_visible()


def test_an_app_is_registered_gets_a_secret_and_goes(browser: BrowserContext) -> None:
    page = browser.new_page()
    page.goto("/settings/applications")
    sign_in(page)
    page.get_by_role("link", name="Register an app").click()
    page.get_by_label("Name", exact=True).fill("Warp")
    page.get_by_label("Redirect URIs", exact=True).fill("http://warp.example/cb")
    page.get_by_role("button", name="Register").click()
    expect(page.get_by_role("alert")).to_contain_text("other hosts need https")
    page.get_by_label("Redirect URIs", exact=True).fill("https://warp.example/cb")
    page.get_by_role("button", name="Register").click()
    expect(page.get_by_role("heading", name="Warp")).to_be_visible()

    page.get_by_role("button", name="Create a secret").click()
    expect(page.locator("#new-secret")).to_have_text(re.compile(r"^hf_\w{40,}$"))
    page.get_by_label("All access that people gave it ends at once").check()
    page.get_by_role("button", name="Delete the app").click()

    expect(page.get_by_role("heading", name="Applications", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="Warp")).to_have_count(0)


def test_a_foreign_redirect_uri_leads_nowhere(browser: BrowserContext, hub: Hub) -> None:
    page = browser.new_page()

    page.goto(hub.link(redirect_uri="https://evil.example/callback"))

    expect(page.get_by_role("alert")).to_contain_text("is not one that the app registered.")
    expect(page.get_by_text("The scheme differs: http is registered")).to_be_visible()
    assert urlsplit(page.url).path == "/oauth/authorize"


def test_another_site_cannot_frame_the_question(chromium: Browser, hub: Hub, site: Site) -> None:
    context = chromium.new_context(base_url=hub.address)
    page = context.new_page()
    page.goto("/login")
    sign_in(page)
    site.pages["/frame"] = f'<iframe src="{hub.link().replace("&", "&amp;")}"></iframe>'

    page.goto(f"{site.address}/frame")
    page.wait_for_load_state("networkidle")

    assert "Allow Loom?" not in "".join(frame.content() for frame in page.frames)
    context.close()


def test_another_site_cannot_answer_for_the_person(chromium: Browser, hub: Hub, site: Site) -> None:
    context = chromium.new_context(base_url=hub.address)
    page = context.new_page()
    page.goto("/login")
    sign_in(page)
    page.goto(hub.link())
    names = ("form_token", "ticket")
    stolen = {name: page.locator(f"input[name={name}]").last.input_value() for name in names}
    fields = "".join(f'<input name="{name}" value="{value}">' for name, value in stolen.items())
    # A neighbour: the same machine, another port. Its forms bring the cookie along.
    site.pages["/forged"] = (
        f'<form method="post" action="{hub.address}/oauth/consent">{fields}'
        '<button name="decision" value="allow">Win</button></form>'
    )

    page.goto(site.address.replace("127.0.0.1", "localhost") + "/forged")
    page.get_by_role("button", name="Win").click()

    expect(page.get_by_role("alert")).to_contain_text("The form was sent from another site.")
    assert site.told == []
    context.close()


def test_a_phone_needs_no_sideways_scrolling(phone: Page, hub: Hub) -> None:
    started = hub.call("POST", "/oauth/device", data={"client_id": hub.client_id})
    widths: dict[str, int] = {}

    def measure(name: str) -> None:
        widths[name] = phone.evaluate("document.documentElement.scrollWidth")

    for path in (
        "/device",
        "/settings/applications",
        "/settings/applications/new",
        f"/settings/applications/{hub.client_id}",
        "/settings/connected-applications",
    ):
        phone.goto(path)
        measure(path)
    phone.goto(hub.link())
    measure("consent")
    phone.goto(started["verification_uri_complete"])
    phone.get_by_role("button", name="Continue").click()
    expect(phone.get_by_role("button", name="Allow")).to_be_visible()
    measure("device decision")
    phone.goto(hub.link(redirect_uri="https://evil.example/" + "x" * 200))
    measure("refused")

    assert {name: width for name, width in widths.items() if width > 360} == {}


def test_what_the_device_is_told_names_our_page(hub: Hub) -> None:
    started = hub.call("POST", "/oauth/device", data={"client_id": hub.client_id})

    complete = urlsplit(started["verification_uri_complete"])
    assert started["verification_uri"] == f"{hub.address}/device"
    assert complete.path == "/device"
    assert parse_qs(complete.query) == {"user_code": [started["user_code"]]}
