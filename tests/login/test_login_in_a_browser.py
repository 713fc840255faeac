"""The pages of the login in a real Chromium, as a person uses them."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from benchmarks.processes import free_port
from playwright.sync_api import Browser, BrowserContext, Page, expect

from browsers import chromium_browser, needs_chromium
from processes import Place, Server, run_hublet, serving

pytestmark = needs_chromium

PASSWORD = "correct horse battery"
NEW_PASSWORD = "another horse battery"
PAGES = ["/settings/sessions", "/settings/password", "/settings/passkeys"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(folder=tmp_path_factory.mktemp("login"))


@pytest.fixture(scope="module")
def server(place: Place) -> Iterator[Server]:
    # Browsers allow passkeys at localhost, and not at 127.0.0.1.
    port = str(free_port())
    with serving(place, "--port", port, "--base-url", f"http://localhost:{port}") as server:
        yield server


@pytest.fixture(scope="module")
def hub(server: Server, place: Place) -> str:
    """The address of a hub where ada and grace have accounts."""
    for name in ("ada", "grace", "linus"):
        added = run_hublet(
            "user", "add", name, "--password", PASSWORD, *place.flags, folder=place.folder
        )
        assert added.returncode == 0, added.stderr
    return server.address


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with chromium_browser() as browser:
        yield browser


@pytest.fixture
def browser(chromium: Browser, hub: str) -> Iterator[BrowserContext]:
    """A browser that knows nobody; whatever it complains about fails the test."""
    complaints: list[str] = []
    context = chromium.new_context(base_url=hub)
    context.on("console", lambda message: complaints.append(message.text))
    context.on("weberror", lambda error: complaints.append(str(error.error)))
    yield context
    context.close()
    # A page that says 403 or 429 is told by the browser as a complaint; that is on purpose.
    assert [text for text in complaints if not re.search(r"status of 4\d\d", text)] == []


def sign_in(page: Page, name: str = "ada", password: str = PASSWORD) -> None:
    page.get_by_label("Name or e-mail address").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in", exact=True).click()


@contextmanager
def signed_in(browser: BrowserContext, name: str = "ada") -> Iterator[Page]:
    page = browser.new_page()
    page.goto("/login")
    sign_in(page, name)
    expect(page.get_by_role("heading", name="Sessions")).to_be_visible()
    yield page
    page.close()


def sign_out(page: Page) -> None:
    page.get_by_text("Menu of").locator("..").click()
    page.get_by_role("button", name="Sign out", exact=True).click()


def test_signing_in_leads_where_the_person_wanted_to_go(browser: BrowserContext) -> None:
    page = browser.new_page()
    page.goto("/settings/password")
    expect(page).to_have_url(re.compile(r"/login\?next=/settings/password$"))

    sign_in(page)

    expect(page.get_by_role("heading", name="Password")).to_be_visible()
    expect(page).to_have_url(re.compile(r"/settings/password$"))
    expect(page.get_by_text("Menu of ada")).to_be_attached()


def test_the_first_administrator_signs_in(browser: BrowserContext, server: Server) -> None:
    page = browser.new_page()
    page.goto("/login")

    sign_in(page, server.user or "", server.password or "")

    expect(page.get_by_text("Menu of admin")).to_be_attached()


def test_a_wrong_password_is_told_and_can_be_typed_again(browser: BrowserContext) -> None:
    page = browser.new_page()
    page.goto("/login")

    sign_in(page, password="wrong")

    expect(page.get_by_role("alert").first).to_contain_text("The name or the password is wrong.")
    expect(page.get_by_label("Name or e-mail address")).to_have_value("ada")
    expect(page.get_by_label("Password")).to_be_focused()
    sign_in(page)
    expect(page.get_by_role("heading", name="Sessions")).to_be_visible()


def test_towards_an_app_the_way_goes_on(browser: BrowserContext) -> None:
    page = browser.new_page()
    # What lies there does not matter: the form must lead on, whatever its policy says.
    page.route("**/oauth/authorize?*", lambda route: route.fulfill(body="the consent page"))
    page.goto("/login?next=/oauth/authorize%3Fstate%3Da")

    sign_in(page)

    expect(page.get_by_text("the consent page")).to_be_visible()
    expect(page).to_have_url(re.compile(r"/oauth/authorize\?state=a$"))


def test_signing_out(browser: BrowserContext) -> None:
    with signed_in(browser) as page:
        sign_out(page)

        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        page.goto("/settings/sessions")
        expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_another_browser_is_seen_and_signed_out(
    browser: BrowserContext, chromium: Browser, hub: str
) -> None:
    other = chromium.new_context(base_url=hub, user_agent="curl/8.5.0")
    with signed_in(other, "grace") as elsewhere, signed_in(browser, "grace") as page:
        expect(page.get_by_text("this browser")).to_have_count(1)

        page.get_by_role("button", name="End the session in curl/8.5.0").click()

        expect(page.get_by_text("curl/8.5.0")).to_have_count(0)
        elsewhere.reload()
        expect(elsewhere.get_by_role("heading", name="Sign in")).to_be_visible()
    other.close()


def test_a_new_password_keeps_this_browser_and_signs_out_the_other(
    browser: BrowserContext, chromium: Browser, hub: str
) -> None:
    other = chromium.new_context(base_url=hub)
    with signed_in(other, "linus") as elsewhere, signed_in(browser, "linus") as page:
        page.get_by_role("link", name="Password").click()
        page.get_by_label("Present password").fill(PASSWORD)
        page.get_by_label("New password", exact=True).fill(NEW_PASSWORD)
        page.get_by_label("New password once more").fill(NEW_PASSWORD)
        page.get_by_role("button", name="Change the password").click()

        expect(page.get_by_role("status")).to_contain_text("The password is changed.")
        elsewhere.reload()
        expect(elsewhere.get_by_role("heading", name="Sign in")).to_be_visible()
    other.close()


def test_the_keyboard_is_enough(browser: BrowserContext) -> None:
    page = browser.new_page()
    page.goto("/login")

    # The name has the focus as soon as the page is drawn, which is after it was loaded.
    expect(page.get_by_label("Name or e-mail address")).to_be_focused()
    page.keyboard.type("ada")
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Tab")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", name="Sessions")).to_be_visible()
    assert outline == "solid"
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    menu = page.locator("summary", has_text="Menu of ada")
    for _ in range(20):
        if menu.evaluate("element => element === document.activeElement"):
            break
        page.keyboard.press("Tab")
    expect(menu).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Sign out", exact=True)).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Sign out", exact=True)).to_be_hidden()


def test_without_scripts_passwords_work_and_passkeys_are_explained(
    chromium: Browser, hub: str
) -> None:
    context = chromium.new_context(base_url=hub, java_script_enabled=False)
    with signed_in(context) as page:
        page.get_by_role("link", name="Passkeys").click()

        expect(page.get_by_text("To add a passkey, allow JavaScript")).to_be_visible()
        expect(page.get_by_role("button", name="Add a passkey")).to_have_count(0)
        sign_out(page)
        expect(page.get_by_role("button", name="Sign in with a passkey")).to_have_count(0)
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_needs_no_sideways_scrolling(chromium: Browser, hub: str, scheme: str) -> None:
    context = chromium.new_context(
        base_url=hub,
        viewport={"width": 360, "height": 740},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    page = context.new_page()
    page.goto("/login")
    widths = [page.evaluate("document.documentElement.scrollWidth")]
    sign_in(page)
    for path in PAGES:
        page.goto(path)
        widths.append(page.evaluate("document.documentElement.scrollWidth"))
    context.close()

    assert widths == [360] * 4


def with_authenticator(context: BrowserContext, page: Page) -> None:
    """Give the browser a device that holds passkeys and knows its owner."""
    session = context.new_cdp_session(page)
    session.send("WebAuthn.enable")
    session.send(
        "WebAuthn.addVirtualAuthenticator",
        {
            "options": {
                "protocol": "ctap2",
                "transport": "internal",
                "hasResidentKey": True,
                "hasUserVerification": True,
                "isUserVerified": True,
                "automaticPresenceSimulation": True,
            }
        },
    )


def test_a_passkey_is_added_signs_in_and_is_removed(browser: BrowserContext) -> None:
    with signed_in(browser) as page:
        with_authenticator(browser, page)
        page.get_by_role("link", name="Passkeys").click()
        page.get_by_label("Name", exact=True).fill("Laptop")
        page.get_by_role("button", name="Add a passkey").click()
        expect(page.get_by_text("not used yet")).to_be_visible()

        sign_out(page)
        page.get_by_role("button", name="Sign in with a passkey").click()
        expect(page.get_by_role("heading", name="Sessions")).to_be_visible()
        expect(page.get_by_text("Menu of ada")).to_be_attached()

        page.get_by_role("link", name="Passkeys").click()
        page.get_by_text("Rename").click()
        page.get_by_label("Another name for Laptop").fill("Old laptop")
        page.get_by_role("button", name="Save").click()
        page.get_by_role("button", name="Remove Old laptop").click()
        expect(page.get_by_text("You have no passkey yet.")).to_be_visible()


def test_a_device_holds_one_passkey_of_an_account(browser: BrowserContext) -> None:
    with signed_in(browser, "grace") as page:
        with_authenticator(browser, page)
        page.get_by_role("link", name="Passkeys").click()
        for name in ("One", "Two"):
            page.get_by_label("Name", exact=True).fill(name)
            page.get_by_role("button", name="Add a passkey").click()
            expect(page.get_by_role("button", name="Remove One")).to_be_visible()

        expect(page.get_by_role("alert")).to_have_text(
            "This device has a passkey of your account already."
        )


def test_a_passkey_that_nobody_knows_is_told(browser: BrowserContext) -> None:
    page = browser.new_page()
    page.goto("/login")
    with_authenticator(browser, page)

    page.get_by_role("button", name="Sign in with a passkey").click()

    expect(page.get_by_role("alert")).to_have_text(
        "Nothing was chosen, or it took too long. Try again."
    )


def test_neither_password_nor_cookie_is_written_anywhere(
    browser: BrowserContext, server: Server, place: Place
) -> None:
    with signed_in(browser):
        [cookie] = [each for each in browser.cookies() if each.get("name") == "hublet_session"]

    secrets = [PASSWORD.encode(), str(cookie.get("value")).encode()]
    written = [path for path in place.folder.rglob("*") if path.is_file()]
    assert server.process.stderr in written
    found = [path.name for path in written if any(s in path.read_bytes() for s in secrets)]
    assert found == []
