"""The port of a job in a real Chromium: a person signs in at the hub, and is in."""

from benchmarks.processes import free_port
from playwright.sync_api import expect

from acceptance.test_jobs import Person
from acceptance.test_ports import Site
from browsers import chromium_browser, needs_chromium
from processes import Place, run_hublet, serving

pytestmark = needs_chromium

PASSWORD = "correct horse battery"
# What a websocket of the page's own hears, written into the page.
TALK = """() => new Promise((heard, failed) => {
    const socket = new WebSocket(location.origin.replace("http", "ws") + "/socket");
    socket.onopen = () => socket.send("from the page");
    socket.onmessage = (event) => heard(event.data);
    socket.onerror = () => failed(new Error("refused"));
})"""


def test_a_person_signs_in_and_is_at_the_port(place: Place) -> None:
    port = free_port()
    with serving(place, "--test-mode", variables={"HUBLET_JOBS_RUNNER": "process"}) as hub:
        flags = ("--password", PASSWORD, *place.flags)
        assert run_hublet("user", "add", "ada", *flags, folder=place.folder).returncode == 0
        token = run_hublet("token", "create", "ada", *place.flags, folder=place.folder).stdout
        person = Person(address=hub.address, token=token.strip(), folder=place.folder)
        site = Site(place=place, person=person, runner="process")
        (address,) = site.urls(site.start(port))

        with chromium_browser() as browser:
            page = browser.new_page()
            page.goto(f"{address}/some/page?a=b")
            page.get_by_label("Name").fill("ada")
            page.get_by_label("Password").fill(PASSWORD)
            page.get_by_role("button", name="Sign in", exact=True).click()

            expect(page).to_have_url(f"{address}/some/page?a=b")
            expect(page.locator("body")).to_have_text("hello, None")
            assert page.evaluate(TALK) == "from the page"
            names = {each.get("name") for each in page.context.cookies(address)}
            assert names == {"hublet_job", "hublet_job_state"}
        person.end_jobs()
