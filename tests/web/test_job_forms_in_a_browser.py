"""Jobs in a real Chromium: started by the form, watched by two people, canceled and run again."""

import re
from collections.abc import Iterator

import httpx2
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from browsers import WAYS, Person, Way, chromium_browser, needs_chromium
from processes import Place, Server, run_hublet, serving

pytestmark = needs_chromium

PASSWORD = "correct horse battery"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(folder=tmp_path_factory.mktemp("jobs"))


@pytest.fixture(scope="module")
def server(place: Place) -> Iterator[Server]:
    """A hub on which ada and charles write to the organization analytical."""
    with serving(place) as server:
        with server.client(server.token) as administrator:
            made = administrator.post("/api/admin/organizations", json={"name": "analytical"})
            assert made.status_code == 200, made.text
            for name in ("ada", "charles"):
                person = {"name": name, "password": PASSWORD}
                assert administrator.post("/api/admin/users", json=person).status_code == 200
                path = f"/api/admin/organizations/analytical/members/{name}"
                assert administrator.put(path, json={"role": "write"}).status_code == 200
        yield server


@pytest.fixture(scope="module")
def ada(server: Server, place: Place) -> httpx2.Client:
    made = run_hublet("token", "create", "ada", *place.flags, folder=place.folder)
    [token] = re.findall(r"hf_\w+", made.stdout)
    return server.client(token)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with chromium_browser() as browser:
        yield browser


def enter(chromium: Browser, server: Server, name: str, path: str, way: Way = WAYS[0]) -> Person:
    """Let somebody open a page in a browser of their own, signed in."""
    context = chromium.new_context(
        base_url=server.address,
        viewport={"width": way.width, "height": 900},
        java_script_enabled=way.has_script,
    )
    person = Person(context, way)
    person.page.goto(f"/login?next={path}")
    person.sign_in(name, PASSWORD)
    person.page.wait_for_url(f"**{path}")
    return person


def button(row: Page | Locator, name: str) -> Locator:
    return row.get_by_role("button", name=name, exact=True)


def test_two_people_see_the_stages_of_a_job_change_without_a_reload(
    chromium: Browser, server: Server
) -> None:
    jobs = "/jobs/analytical"
    watching = enter(chromium, server, "ada", jobs).page
    page = enter(chromium, server, "charles", jobs).page
    expect(watching.get_by_text("No job ran here.")).to_be_visible()
    # A reload would lose it.
    watching.evaluate("window.mark = 1")

    page.get_by_role("link", name="New job").click()
    page.get_by_label("Image", exact=True).fill("ubuntu")
    page.get_by_label("Command", exact=True).fill("sleep 600")
    page.get_by_label("Name", exact=True).fill("weave")
    button(page, "Run").click()
    page.wait_for_url(re.compile("/jobs/analytical/[0-9a-f]{24}$"))

    row = watching.get_by_role("row", name="weave")
    expect(row).to_contain_text("Running")
    expect(row).to_contain_text("charles")
    expect(watching.get_by_text("No job ran here.")).to_be_hidden()
    page.goto(jobs)
    button(page.get_by_role("row", name="weave"), "Cancel").click()
    expect(row).to_contain_text("Canceled")
    expect(page.get_by_role("row", name="weave")).to_contain_text("Canceled")
    # Whoever watched it goes on with it, and the other one sees that.
    button(row, "Run again").click()
    expect(watching.get_by_role("row", name="weave")).to_have_count(2)
    again = page.get_by_role("row", name="weave").first
    expect(again).to_contain_text("Running")
    expect(again).to_contain_text("copy as ada")
    button(again, "Cancel").click()
    expect(page.get_by_role("row", name="weave").first).to_contain_text("Canceled")


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_job_with_a_volume_is_started_in_every_way(
    chromium: Browser, server: Server, ada: httpx2.Client, way: Way
) -> None:
    name = f"numbers-{way.name}"
    ada.post("/api/repos/create", json={"name": name, "type": "dataset"})
    person = enter(chromium, server, "ada", "/jobs/ada/new", way)
    page = person.page

    person.write(page.get_by_label("Image", exact=True), "ubuntu")
    person.write(page.get_by_label("Command", exact=True), "ls /data")
    person.write(page.get_by_label("Name", exact=True), way.name)
    person.write(page.get_by_label("Find repositories and buckets"), name)
    person.press(button(page, "Find"))
    person.press(button(page, f"Mount dataset ada/{name}"))
    expect(page.get_by_label("Folder in the job")).to_have_value(f"/{name}")
    person.press(button(page, "Show the next runs"))
    expect(page.get_by_role("alert")).to_contain_text("schedule must have the five fields")
    person.expect_fit()
    person.press(button(page, "Run"))
    page.wait_for_url(re.compile("/jobs/ada/[0-9a-f]{24}$"))

    job_id = page.url.rpartition("/")[2]
    made = ada.get(f"/api/jobs/ada/{job_id}").json()
    assert made["command"] == ["ls", "/data"]
    assert made["volumes"][0]["source"] == f"ada/{name}"
    page.goto("/jobs/ada")
    expect(page.get_by_role("row", name=way.name)).to_be_visible()
    person.expect_fit()
    page.context.close()
