"""A token from the picker, and a forgotten password from its mail, in a real Chromium."""

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import httpx2
import pytest
from playwright.sync_api import Browser, Page, expect

from browsers import chromium_browser, needs_chromium
from mail_servers import MailServer, mail_server
from patience import SOON_SECONDS
from processes import Place, Server, run_hublet, serving

pytestmark = [needs_chromium, pytest.mark.full]

PASSWORD = "correct horse battery"
NEW = "another horse battery"


@contextmanager
def mailbox() -> Iterator[MailServer]:
    """A mail server beside the browser, whose own loop is busy."""
    ready, done = Event(), Event()
    servers: list[MailServer] = []

    async def serve() -> None:
        async with mail_server() as server:
            servers.append(server)
            ready.set()
            await asyncio.to_thread(done.wait)

    thread = Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(SOON_SECONDS)
        yield servers[0]
    finally:
        done.set()
        thread.join()


@pytest.fixture(scope="module")
def mails() -> Iterator[MailServer]:
    with mailbox() as server:
        yield server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, mails: MailServer) -> Iterator[Server]:
    place = Place(folder=tmp_path_factory.mktemp("account"))
    with serving(place, variables={"HUBLET_MAIL_SMTP_URL": mails.url()}) as server:
        for words in (
            ("user", "add", "ada", "--password", PASSWORD, "--email", "ada@example.com"),
            ("org", "add", "analytical"),
            ("org", "member", "add", "analytical", "ada", "--role", "admin"),
        ):
            made = run_hublet(*words, *place.flags, folder=place.folder)
            assert made.returncode == 0, made.stderr
        yield server


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with chromium_browser() as browser:
        yield browser


@pytest.fixture(params=["script", "no script"])
def page(chromium: Browser, server: Server, request: pytest.FixtureRequest) -> Iterator[Page]:
    context = chromium.new_context(
        base_url=server.address,
        viewport={"width": 390, "height": 844},
        java_script_enabled=request.param == "script",
    )
    yield context.new_page()
    context.close()


def enter(page: Page, password: str) -> None:
    page.get_by_label("Name or e-mail address").fill("ada")
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in", exact=True).click()


def test_a_token_is_made_with_the_picker_and_works(page: Page, server: Server) -> None:
    page.goto("/login?next=/settings/tokens")
    enter(page, PASSWORD)
    page.get_by_role("link", name="New token").click()
    page.get_by_label("Name", exact=True).fill("nightly")
    picked = page.get_by_role("group", name="For what analytical has").get_by_label("Run jobs")
    expect(page.get_by_text("What you choose for an owner")).to_be_hidden()
    page.get_by_label("Fine-grained").check()
    page.get_by_text("analytical", exact=True).click()
    picked.check()
    page.get_by_role("button", name="Create").click()

    expect(page.get_by_text("it is not shown again")).to_be_visible()
    value = page.locator("#new-token pre code").inner_text()
    headers = {"Authorization": f"Bearer {value}"}
    who = httpx2.get(f"{server.address}/api/whoami-v2", headers=headers).json()
    [scoped] = who["auth"]["accessToken"]["fineGrained"]["scoped"]
    assert (scoped["entity"]["name"], scoped["permissions"]) == ("analytical", ["jobs"])
    page.goto("/settings/tokens")
    expect(page.get_by_text("nightly").first).to_be_visible()
    assert value not in page.content()


def test_a_forgotten_password_is_set_anew_from_the_mail(
    page: Page, server: Server, mails: MailServer
) -> None:
    # It runs twice, so in the end the password is the first one again.
    mails.envelopes.clear()
    page.goto("/login")
    page.get_by_role("link", name="Forgotten password?").click()
    page.get_by_label("E-mail address").fill("ada@example.com")
    page.get_by_role("button", name="Send the link").click()
    expect(page.get_by_text("a mail with a link is on its way")).to_be_visible()
    page.goto(link_in(mails, page))
    for label in ("New password", "New password once more"):
        page.get_by_label(label, exact=True).fill(NEW)
    page.get_by_role("button", name="Set the password").click()
    expect(page.get_by_text("Sign in with the new one.")).to_be_visible()
    enter(page, PASSWORD)
    expect(page.get_by_role("alert")).to_be_visible()
    enter(page, NEW)
    page.goto("/settings/password")
    for label, text in (("Present password", NEW), ("New password", PASSWORD), ("New password once more", PASSWORD)):  # fmt: skip
        page.get_by_label(label, exact=True).fill(text)
    page.get_by_role("button", name="Change the password").click()
    expect(page.get_by_text("The password is changed.")).to_be_visible()


def link_in(mails: MailServer, page: Page) -> str:
    """Wait for the mail, and return the path of its link."""
    for _ in range(int(SOON_SECONDS) * 10):
        for each in mails.messages:
            body = each.get_body(("plain",))
            found = re.search(r"(/reset-password/\w+)", body.get_content() if body else "")
            if found:
                return found[1]
        page.wait_for_timeout(100)
    raise AssertionError("no mail came")
