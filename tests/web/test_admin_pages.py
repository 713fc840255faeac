"""Administrators look after the hub in a browser; nobody else does."""

import platform
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from hublet.core import clock
from hublet.core.database import Database
from hublet.core.heartbeat import Heartbeat
from hublet.core.hub import Switch
from hublet.core.metric_samples import MetricSampler
from hublet.core.metrics import Metrics
from hublet.jobs.errors import NewJobsSwitchedOff
from login.login_pages import a_person, log_in, notices_in
from people import a_user, an_organization, sign_in
from repositories import a_repo
from statements import Statements
from tasks import add, claim, fail
from web.parsed_pages import HTML, parse

PAGES = ("", "/users", "/organizations", "/storage", "/tasks", "/activity", "/switches")


@pytest.fixture
async def root(client: httpx2.AsyncClient, database: Database) -> httpx2.AsyncClient:
    """The browser of an administrator."""
    user = await a_person(database, "katherine")
    async with database.transaction() as conn:
        await conn.execute("UPDATE users SET is_admin = TRUE WHERE id = $1", user.id)
    await log_in(client, "katherine")
    return client


async def send(root: httpx2.AsyncClient, action: str, **fields: Any) -> httpx2.Response:
    """Send a form; all of the administration have the same token, and this page always has some."""
    page = parse(await root.get("/admin/switches", headers=HTML)).one("main")
    token = page.all("input", name="form_token")[0].attributes["value"]
    return await root.post(action, data={"form_token": token} | fields, headers=HTML)


async def text_of(client: httpx2.AsyncClient, path: str) -> str:
    answer = await client.get(path, headers=HTML)
    assert answer.status_code == 200, answer.text
    return answer.text


async def test_only_administrators_open_its_pages(
    client: httpx2.AsyncClient, database: Database
) -> None:
    anybody = [await client.get(f"/admin{path}", headers=HTML) for path in PAGES]
    await a_person(database, "ada")
    await log_in(client, "ada")
    person = [await client.get(f"/admin{path}", headers=HTML) for path in PAGES]

    assert {each.headers["location"].partition("?")[0] for each in anybody} == {"/login"}
    assert {each.status_code for each in person} == {403}
    assert all("This is not for you" in each.text for each in person)


async def test_every_page_opens_and_names_the_others(root: httpx2.AsyncClient) -> None:
    for path in PAGES:
        page = parse(await root.get(f"/admin{path}", headers=HTML))
        navigation = page.one("nav", **{"aria-label": "Administration"})
        links = [each.attributes["href"] for each in navigation.all("a")]
        current = navigation.one("a", **{"aria-current": "page"})
        assert links == [f"/admin{each}" for each in PAGES]
        assert current.attributes["href"] == f"/admin{path}"


async def test_the_first_page_has_what_the_doctor_says_and_plots_of_the_day(
    root: httpx2.AsyncClient, database: Database
) -> None:
    empty = await text_of(root, "/admin")
    metrics = Metrics()
    for _ in range(120):
        metrics.request(method="GET", route="/", status=200, micros=4000)
    await MetricSampler(database, metrics, name="ada").sample()
    filled = await text_of(root, "/admin")

    assert "Nothing is measured yet." in empty
    assert "migrations are applied." in empty
    assert "Requests per second: last 2, highest 2" in filled
    assert "99 of 100 within: last 4.9" in filled
    assert "Database: last" in filled


async def test_the_processes_of_the_hub_are_shown_and_examined(
    root: httpx2.AsyncClient, database: Database
) -> None:
    beating = Heartbeat(database, role="worker", name="worker")
    await beating.beat()

    shown, examined = await text_of(root, "/admin/tasks"), await text_of(root, "/admin")

    assert f'<th scope="row" class="mono">worker</th><td>{platform.node()}</td>' in shown
    assert f"1 run: worker on {platform.node()}, role worker, version" in examined


async def test_the_doctor_says_on_the_page_that_a_task_is_parked(
    root: httpx2.AsyncClient, database: Database
) -> None:
    await a_parked_task(database)

    page = await text_of(root, "/admin")

    assert "1 problem" in page
    assert "1 failed too often and are parked (knit: It tore.)." in page


async def a_parked_task(database: Database, name: str = "knit-1") -> None:
    await add(database, name)
    [task] = await claim(database)
    await fail(database, task, most=1)


async def states_of(database: Database) -> dict[str, bool]:
    """Return the tasks of the tests, and whether each is parked."""
    async with database.read() as conn:
        rows = await conn.fetch_all("SELECT id, parked_at FROM tasks WHERE kind = 'knit'")
    return {row["id"]: row["parked_at"] is not None for row in rows}


async def test_a_parked_task_is_tried_again_or_dropped(
    root: httpx2.AsyncClient, database: Database
) -> None:
    for name in ("knit-1", "knit-2"):
        await a_parked_task(database, name)
    assert "It tore." in await text_of(root, "/admin/tasks")

    again = await send(root, "/admin/tasks/retry", task="knit-1")
    dropped = await send(root, "/admin/tasks/drop", task="knit-2")
    absent = await send(root, "/admin/tasks/drop", task="knit-2")

    assert (again.status_code, dropped.status_code, absent.status_code) == (303, 303, 404)
    assert await states_of(database) == {"knit-1": False}
    activity = await text_of(root, "/admin/activity")
    assert "task.retry" in activity
    assert "task.drop" in activity
    assert "error: It tore." in activity


async def test_all_parked_tasks_are_tried_again(
    root: httpx2.AsyncClient, database: Database
) -> None:
    for name in ("knit-1", "knit-2"):
        await a_parked_task(database, name)

    await send(root, "/admin/tasks/retry")

    assert await states_of(database) == {"knit-1": False, "knit-2": False}


async def test_what_workers_hold_is_listed_with_their_leases(
    root: httpx2.AsyncClient, database: Database
) -> None:
    await add(database, "knit-1", "knit-2")
    await claim(database, "worker-of-ada")

    page = parse(await root.get("/admin/tasks", headers=HTML))

    [row] = [each for each in page.all("tr") if "worker-of-ada" in _texts(each)]
    assert _texts(row)[:4] == ["worker-of-ada", "2", "0", "0"]


def _texts(row: Any) -> list[str]:
    return [each.text for each in row.children if each.tag in {"th", "td"}]


async def test_an_account_is_created_with_a_password_that_is_shown_once(
    root: httpx2.AsyncClient,
) -> None:
    made = await send(root, "/admin/users", name="grace", email="grace@navy.example")

    assert made.status_code == 201
    assert made.headers["cache-control"] == "no-store"
    password = parse(made).one("pre").text
    assert password not in await text_of(root, "/admin/users")
    assert password not in await text_of(root, "/admin/activity")
    root.cookies.clear()
    entered = await log_in(root, "grace@navy.example", password)
    assert entered.status_code == 303


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        pytest.param({"name": "katherine"}, "katherine", id="a name that is taken"),
        pytest.param({"name": "no name"}, "name", id="no name"),
        pytest.param({"name": "grace", "email": "nowhere"}, "email", id="no address"),
        pytest.param({"name": "grace", "password": "short"}, "password", id="a weak password"),
    ],
)
async def test_an_account_that_is_refused_comes_back_as_it_was_typed(
    root: httpx2.AsyncClient, fields: dict[str, str], sentence: str
) -> None:
    response = await send(root, "/admin/users", **fields)

    assert response.status_code == 422
    assert sentence in notices_in(response)[0].lower()
    assert f'value="{fields["name"]}"' in response.text
    assert "short" not in notices_in(response)[0].replace("too short", "")


async def test_a_user_is_found_disabled_enabled_and_promoted(
    root: httpx2.AsyncClient, database: Database
) -> None:
    await an_organization(database, "navy")
    ada = await sign_in(database, "ada")
    await a_user(database, "grace")

    found = await text_of(root, "/admin/users?search=AD")
    await send(root, "/admin/users/ada/state", disabled="yes")
    disabled = await text_of(root, "/admin/users?state=disabled")
    refused = await root.get("/api/whoami-v2", headers=ada)
    await send(root, "/admin/users/ada/state", disabled="no")
    await send(root, "/admin/users/ada/role", administrator="yes")

    assert 'href="/ada"' in found
    assert 'href="/grace"' not in found
    assert 'href="/ada"' in disabled
    assert refused.status_code == 401
    assert (await root.get("/api/admin/users", headers=ada)).status_code == 200
    activity = await text_of(root, "/admin/activity")
    assert all(f"user.{each}" in activity for each in ("disable", "enable", "promote"))


async def test_the_last_administrator_stays(root: httpx2.AsyncClient) -> None:
    response = await send(root, "/admin/users/katherine/role", administrator="no")

    assert response.status_code == 422
    assert "administrator" in notices_in(response)[0]


async def test_an_organization_is_created_renamed_and_moved_to_another_plan(
    root: httpx2.AsyncClient,
) -> None:
    path = "/admin/organizations"
    await send(root, path, name="navy", plan="free", owner="katherine")
    await send(root, f"{path}/navy", fullname="The Navy", plan="team")
    refused = await send(root, f"{path}/navy", fullname="The Navy", plan="gold")

    page = await text_of(root, path)
    assert "The Navy" in page
    assert "1 member" in page
    assert refused.status_code == 422
    activity = await text_of(root, "/admin/activity?kind=organizations")
    assert "organization.plan" in activity
    assert "from: free · to: team" in activity


async def test_the_storage_is_listed_by_owner_and_by_repository(
    root: httpx2.AsyncClient, database: Database
) -> None:
    ada = await sign_in(database, "ada")
    await a_repo(root, ada, "ada/box", type="bucket")
    await root.put("/api/buckets/ada/box/files/a.bin", headers=ada, content=b"x" * 5000)

    await send(root, "/admin/storage/measure")

    page = await text_of(root, "/admin/storage")
    assert 'href="/admin/storage?owner=ada"' in page
    assert "5 kB" in page
    of_ada = await text_of(root, "/admin/storage?owner=ada")
    assert "ada/box" in of_ada


async def test_who_signed_in_is_told_for_90_days(
    root: httpx2.AsyncClient, database: Database
) -> None:
    await a_person(database, "ada")
    await log_in(root, "ada")
    clock.move(timedelta(days=91))
    try:
        root.cookies.clear()
        await log_in(root, "katherine")
        page = await text_of(root, "/admin/activity?kind=sign-ins")
    finally:
        clock.reset()

    assert page.count("signed in") == 1


async def test_a_switch_counts_at_once_until_the_settings_decide_again(
    root: httpx2.AsyncClient, database: Database
) -> None:
    body = {"dockerImage": "ubuntu", "command": ["true"], "flavor": "cpu-basic"}
    ada = await sign_in(database, "ada")
    turn = "/admin/switches/turn"

    await send(root, turn, switch=Switch.new_jobs, to="off")
    refused = await root.post("/api/jobs/ada", headers=ada, json=body)
    await send(root, turn, switch=Switch.new_jobs, to="settings")
    taken = await root.post("/api/jobs/ada", headers=ada, json=body)
    wrong = await send(root, turn, switch="weather", to="on")

    assert refused.status_code == 403
    assert refused.json() == {"error": NewJobsSwitchedOff().message}
    assert taken.status_code == 200
    assert wrong.status_code == 422


async def test_an_announcement_stands_above_every_page_until_its_end(
    root: httpx2.AsyncClient, database: Database, statements: Statements
) -> None:
    announce = "/admin/switches/announce"
    everybody = {"text": "Moving on <b>Friday</b>", "tone": "warn", "hours": "2"}
    people = {"text": "For us", "tone": "info", "hours": "2", "audience": "signed-in"}
    await send(root, announce, **everybody)
    await send(root, announce, **people)

    signed_in = await text_of(root, "/models")
    root.cookies.clear()
    statements.begin()
    signed_out = await text_of(root, "/login")
    read = [each for each in statements.noted if "facts" in each]
    clock.move(timedelta(hours=3))
    try:
        later = await text_of(root, "/login")
    finally:
        clock.reset()

    assert "Moving on &lt;b&gt;Friday" in signed_in
    assert "For us" in signed_in
    assert "Moving on" in signed_out
    assert "For us" not in signed_out
    assert read == []
    assert "Moving on" not in later


async def test_an_announcement_is_withdrawn_and_a_wrong_one_refused(
    root: httpx2.AsyncClient, database: Database
) -> None:
    path = "/admin/switches"
    fields = {"text": "Moving", "tone": "info", "hours": "2"}
    for wrong in ({"text": " "}, {"text": "x" * 281}, {"tone": "loud"}, {"hours": "nan"}):
        refused = await send(root, f"{path}/announce", **(fields | wrong))
        assert refused.status_code == 422
        assert next(iter(wrong)) in notices_in(refused)[0]
    await send(root, f"{path}/announce", **fields)
    [announcement] = database.hub.site.state.announcements

    await send(root, f"{path}/withdraw", announcement=announcement.id)

    assert database.hub.site.state.announcements == ()
    assert "announcement.withdraw" in await text_of(root, "/admin/activity")


async def test_settings_are_shown_with_their_origin_and_without_secrets(
    root: httpx2.AsyncClient,
) -> None:
    page = await text_of(root, "/admin/switches")

    assert "server.base_url" in page
    assert "http://hub.test" in page
    assert "the default" in page
    assert "postgresql://" not in page


async def test_a_change_needs_a_recent_sign_in(root: httpx2.AsyncClient) -> None:
    page = await root.get("/admin/organizations", headers=HTML)
    token = parse(page).one("form", method="post", class_="card").one("input", type="hidden")
    clock.move(timedelta(minutes=16))
    try:
        fields = {"form_token": token.attributes["value"], "name": "navy", "plan": "free"}
        response = await root.post("/admin/organizations", data=fields, headers=HTML)
    finally:
        clock.reset()

    assert response.status_code == 303
    assert response.headers["location"].startswith("/login?")
