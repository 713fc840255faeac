"""The page of a job in a real Chromium: why it failed, what it used, and a hub that is started again."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from acceptance.waiting_proxy import waiting_proxy
from browsers import WAYS, Person, Way, chromium_browser, needs_chromium
from hublet.core.clock import micros
from hublet.jobs.logs.reader import log_path
from hublet.jobs.metrics import UsageLimits, append_sample, history_path
from hublet.jobs.records import Usage
from patience import SOON_SECONDS
from processes import Place, Server, run_hublet, serving, wait_until

pytestmark = [needs_chromium, pytest.mark.full]

PASSWORD = "correct horse battery"
RUNNER = {"HUBLET_JOBS_RUNNER": "process"}
# Prints, waits until it is told to go on, fails, and after that says nothing more.
FAILING = """
for i in $(seq 1 400); do echo "step $i"; done
until [ -e {go_on} ]; do sleep 0.1; done
for i in $(seq 401 420); do echo "step $i"; done
echo "ValueError: the loss is not a number" >&2
exit 3
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(folder=tmp_path_factory.mktemp("jobs"))


@pytest.fixture(scope="module")
def server(place: Place) -> Iterator[Server]:
    with serving(place, "--test-mode", variables=RUNNER) as server:
        yield server


@pytest.fixture(scope="module")
def ada(place: Place, server: Server) -> Iterator[httpx2.Client]:
    with a_client(place, server) as client:
        yield client


def a_client(place: Place, server: Server) -> httpx2.Client:
    """Return the client of Ada, who has a password too."""
    with server.client(server.token) as administrator:
        body = {"name": "ada", "password": PASSWORD}
        administrator.post("/api/admin/users", json=body).raise_for_status()
    made = run_hublet("token", "create", "ada", *place.flags, folder=place.folder)
    [token] = re.findall(r"hf_\w+", made.stdout)
    return server.client(token)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with chromium_browser() as browser:
        yield browser


@pytest.fixture
def new_person(chromium: Browser, server: Server) -> Iterator[Callable[[Way], Person]]:
    people: list[Person] = []

    def make(way: Way) -> Person:
        context = chromium.new_context(
            base_url=server.address,
            java_script_enabled=way.has_script,
            viewport={"width": way.width, "height": 844},
        )
        people.append(Person(context, way))
        return people[-1]

    yield make
    for person in people:
        person.page.context.close()


def run(ada: httpx2.Client, script: str, **more: object) -> str:
    body = {"dockerImage": "ubuntu", "flavor": "cpu-basic", "command": ["sh", "-c", script]}
    response = ada.post("/api/jobs/ada", json=body | more)
    assert response.status_code == 200, response.text
    job_id: str = response.json()["id"]
    return job_id


def wait_for_lines(place: Place, job_id: str, count: int) -> None:
    log = log_path(place.data_dir, job_id)
    wait_until(
        lambda: log.exists() and log.read_bytes().count(b"\n") >= count, seconds=SOON_SECONDS
    )


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_why_did_my_job_fail(
    place: Place, ada: httpx2.Client, new_person: Callable[[Way], Person], way: Way
) -> None:
    go_on = place.folder / f"go-on-{way}"
    job_id = run(ada, FAILING.format(go_on=go_on), labels={"name": f"train-{way}"})
    wait_for_lines(place, job_id, 400)
    person = new_person(way)
    page, log = person.page, person.page.locator("#log")
    page.goto(f"/jobs/ada/{job_id}")
    # Who is not signed in learns nothing, and comes back.
    expect(page.get_by_role("heading", name="Nothing here")).to_be_visible()
    person.press(page.locator("main").get_by_role("link", name="Sign in"))
    person.sign_in("ada", PASSWORD)
    expect(page).to_have_url(re.compile(f"/jobs/ada/{job_id}$"))
    expect(page.get_by_role("heading", name=f"train-{way}")).to_be_visible()
    expect(page.locator("#job-head .badge").first).to_contain_text("Running")
    last = log.locator(".l", has_text=re.compile("^step 400$"))
    log.scroll_into_view_if_needed()
    expect(last).to_be_in_viewport()
    person.expect_fit()

    if way.has_script:
        stop_following(person)
    go_on.touch()
    if way.has_script:
        expect(page.locator("#log-state")).to_contain_text("new below")
        expect(last).not_to_be_in_viewport()
        person.press(page.get_by_role("button", name="Follow"))
        log.scroll_into_view_if_needed()
    else:
        wait_until(lambda: is_over(ada, job_id), seconds=SOON_SECONDS)
        page.reload()
        log.scroll_into_view_if_needed()
    failure = log.locator(".l", has_text="ValueError: the loss is not a number")
    expect(failure).to_be_in_viewport()

    reason = page.locator("#job-reason")
    expect(reason).to_contain_text("It failed: exit code 3")
    expect(reason).to_contain_text("ValueError: the loss is not a number")
    person.press(reason.get_by_role("link"))
    expect(log.locator(".l:target")).to_contain_text("ValueError")
    expect(log.locator(".l:target")).to_be_in_viewport()
    # What the browser searches is there, from the first line on.
    expect(log.locator(".l", has_text=re.compile("^step 1$"))).to_have_count(1)
    person.write(page.get_by_label("Search in the log"), "step 12")
    page.keyboard.press("Enter")
    expect(log.locator(".l")).to_have_count(11)
    person.expect_fit()
    with page.expect_download() as download:
        person.press(page.get_by_role("link", name="Download"))
    text = Path(download.value.path()).read_text()
    assert text.count("step ") == 420
    again = page.locator(f"form[action='/jobs/ada/{job_id}/run-again'] button")
    expect(again).to_be_visible()


def stop_following(person: Person) -> None:
    """Scroll up in the log: it stays where it is then, and the page says so."""
    page = person.page
    expect(page.locator("#log-state")).to_contain_text("Live")
    page.locator("#log").evaluate("log => { log.scrollTop = -1500 }")
    expect(page.locator("#log-state")).to_contain_text("Paused while you read")
    expect(page.get_by_role("button", name="Follow")).to_have_attribute("aria-pressed", "false")


def is_over(ada: httpx2.Client, job_id: str) -> bool:
    return bool(ada.get(f"/api/jobs/ada/{job_id}").json()["status"]["stage"] == "ERROR")


def test_watch_memory_an_hour_after_the_end(
    place: Place, ada: httpx2.Client, new_person: Callable[[Way], Person]
) -> None:
    job_id = run(ada, "true")
    wait_until(
        lambda: ada.get(f"/api/jobs/ada/{job_id}").json()["status"]["stage"] == "COMPLETED",
        seconds=SOON_SECONDS,
    )
    start, limits = (
        micros() - 2 * 3600 * 1_000_000,
        UsageLimits(cpu_millicores=1000, memory_bytes=4000),
    )
    usage_file, log = history_path(place.data_dir, job_id), log_path(place.data_dir, job_id)
    usage_file.unlink(missing_ok=True)
    lines = []
    for period in range(600):
        # It grows to its limit after 25 minutes, and starts anew.
        used = 4000 if period == 300 else 10 * (period % 300)
        moment = start + period * 5_000_000
        append_sample(usage_file, Usage(cpu_millicores=900, memory_bytes=used), limits, at=moment)
        lines += [f"{moment + part * 1_000_000} period {period} part {part}\n" for part in range(5)]
    log.write_text("".join(lines))

    person = new_person(WAYS[0])
    page = person.page
    page.goto("/login")
    person.sign_in("ada", PASSWORD)
    page.goto(f"/jobs/ada/{job_id}")
    plot = page.get_by_role("img", name=re.compile("^Memory: last .*highest 4 kB; limit 4 kB$"))
    expect(plot.locator("path.lim")).to_have_count(1)
    expect(plot).to_be_visible()
    person.press(page.get_by_role("link", name="the log at that time"))
    marked = page.locator("#log .l:target")
    expect(marked).to_have_text(re.compile("period 300 part 0"))
    expect(marked).to_be_in_viewport()


def numbers_on(page: Page) -> list[int]:
    read = "all => all.map(line => Number(line.querySelector('span').textContent))"
    found: list[int] = page.locator("#log .l:not(.sys)").evaluate_all(read)
    return found


@pytest.mark.parametrize("ending", ["stopped", "killed"])
def test_a_page_misses_no_line_and_has_none_twice_when_the_hub_is_started_again(
    tmp_path: Path, chromium: Browser, ending: str
) -> None:
    place = Place(folder=tmp_path)
    go_on = tmp_path / "go-on"
    script = f"""
        for i in $(seq 1 300); do echo $i; done
        until [ -e {go_on} ]; do sleep 0.05; echo $((i = i + 1)); done
        for j in $(seq 1 300); do echo $((i = i + 1)); done
    """
    with waiting_proxy() as door, chromium.new_context() as context:
        page = context.new_page()
        with serving(place, "--test-mode", variables=RUNNER) as hub:
            door.lead_to(hub.address)
            with a_client(place, hub) as ada:
                token = ada.headers["Authorization"]
                job_id = run(ada, script)
                wait_for_lines(place, job_id, 100)
            sign_in(context, hub, door.address)
            page.goto(f"{door.address}/jobs/ada/{job_id}")
            expect(page.locator("#log .l").last).to_be_visible()
            before = len(numbers_on(page))
            wait_until(lambda: len(numbers_on(page)) > before, seconds=SOON_SECONDS)
            door.lead_to(None)
            if ending == "killed":
                hub.process.kill()
        with serving(place, "--test-mode", variables=RUNNER) as hub:
            door.lead_to(hub.address)
            seen = len(numbers_on(page))
            wait_until(lambda: len(numbers_on(page)) > seen, seconds=SOON_SECONDS)
            go_on.touch()
            with hub.client(token.removeprefix("Bearer ")) as ada:
                wait_until(
                    lambda: (
                        ada.get(f"/api/jobs/ada/{job_id}").json()["status"]["stage"] == "COMPLETED"
                    ),
                    seconds=SOON_SECONDS,
                )
            expect(page.locator("#job-head .badge").first).to_contain_text("Completed")
            log = log_path(place.data_dir, job_id).read_text().splitlines()
            printed = [int(line.split()[1]) for line in log if line.split()[1].isdigit()]
            wait_until(lambda: numbers_on(page)[-1:] == printed[-1:], seconds=SOON_SECONDS)
            assert numbers_on(page) == printed


def sign_in(context: BrowserContext, hub: Server, address: str) -> None:
    """Give the browser a session of Ada's, for the address by which it knows the hub."""
    with hub.client() as client:
        fields = {"name": "ada", "password": PASSWORD}
        client.post("/login", data=fields, headers={"Origin": hub.address})
        for name, value in client.cookies.items():
            context.add_cookies([{"name": name, "value": value, "url": address}])
