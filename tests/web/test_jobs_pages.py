"""Jobs and schedules in the browser: lists, buttons, the form of a new job, rights and refusals."""

import asyncio
import re
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import OPERATOR, Role
from hublet.accounts.users import store as users
from hublet.core import clock
from hublet.core.database import Database
from hublet.jobs import service, store
from jobs.jobs_api import an_attempt, initiator_of, run, set_row, show
from jobs.schedules_api import a_schedule
from jobs.schedules_api import show as show_schedule
from login.login_pages import a_person, form_token_of, log_in, notices_in
from patience import SOON_SECONDS
from people import Headers, an_organization, sign_in
from repositories import a_repo
from web.parsed_pages import HTML, Element, parse
from webhooks.event_streams import StreamClient, open_stream

LIST = "/jobs/ada"
NEW = "/jobs/ada/new"


@pytest.fixture
async def ada(client: httpx2.AsyncClient, database: Database) -> Headers:
    """Ada, signed in with a browser."""
    await a_person(database, "ada")
    await log_in(client, "ada")
    return await sign_in(database, "ada")


async def page_of(client: httpx2.AsyncClient, path: str) -> Element:
    response = await client.get(path, headers=HTML)
    assert response.status_code == 200, response.text
    return parse(response)


async def press(
    client: httpx2.AsyncClient, page: str, action: str, **fields: Any
) -> httpx2.Response:
    """Send the form of a page that goes to this path."""
    token = form_token_of(await client.get(page, headers=HTML), action)
    return await client.post(action, data={"form_token": token} | fields, headers=HTML)


async def fill_in(client: httpx2.AsyncClient, **fields: Any) -> httpx2.Response:
    """Send the form of a new job."""
    typed = {"do": "run", "image": "ubuntu", "flavor": "cpu-basic"} | fields
    return await press(client, NEW, NEW, **typed)


async def jobs_of(client: httpx2.AsyncClient, headers: Headers) -> list[Any]:
    listed: list[Any] = (await client.get("/api/jobs/ada", headers=headers)).json()
    return listed


def masked(page: str) -> str:
    """Return a page without its tokens, which differ each time."""
    return re.sub(r'value="[0-9a-f]{64,}"', "", page)


def problem_of(response: httpx2.Response) -> str:
    assert response.status_code == 422, response.text
    [problem] = notices_in(response)
    return problem


async def test_the_list_says_how_far_each_job_is_and_what_started_it(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    schedule = await a_schedule(client, ada)
    response = await client.post(f"/api/scheduled-jobs/ada/{schedule['id']}/run", headers=ada)
    by_clock = response.json()
    named = await run(
        client, ada, labels={"name": "train", "team": "looms"}, command=["echo", "a b"]
    )
    await an_attempt(database, named["id"], started_at=0)
    await set_row(
        database,
        named["id"],
        stage="ERROR",
        message="exit code 3",
        started_at=1,
        running_micros=200_000_000,
    )

    page = await page_of(client, LIST)

    newest, oldest = page.one("tbody").all("tr")
    assert "Error train team=loomsubuntu · echo 'a b' exit code 3" in newest.text
    assert "cpu-basic ada" in newest.text
    assert "3 min 20 s" in newest.text
    assert newest.one("a", class_="name").attributes["href"] == f"{LIST}/{named['id']}"
    assert oldest.attributes["id"] == f"job-{by_clock['id']}"
    assert "Scheduling" in oldest.text
    assert oldest.all("a", href=f"{LIST}/scheduled/{schedule['id']}")
    assert page.one("nav", class_="tabs").text == "Jobs 2Schedules 1"


async def test_filters_of_the_api_stand_in_the_address(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    for name in ("one", "two"):
        await run(client, ada, labels={"name": name, "team": "looms"})
    last = await run(client, ada, labels={"name": "three"})
    await set_row(database, last["id"], stage="COMPLETED")

    async def names(query: str) -> list[str]:
        page = await page_of(client, f"{LIST}?{query}")
        return [each.text for each in page.all("a", class_="name")]

    assert await names("") == ["three", "two", "one"]
    assert await names("stage=&label=") == ["three", "two", "one"]
    assert await names("stage=COMPLETED") == ["three"]
    assert await names("label=team%3Dlooms&stage=SCHEDULING") == ["two", "one"]
    assert await names("label=team%3Dlooms&label=name%3Done") == ["one"]
    assert await names("label=team%3Dnobody") == []
    for query in ("stage=LOST", "label=team", "cursor=x"):
        assert (await client.get(f"{LIST}?{query}", headers=HTML)).status_code == 400, query


async def test_older_jobs_are_on_the_next_page(client: httpx2.AsyncClient, ada: Headers) -> None:
    made = [(await run(client, ada, labels={"n": "1"}))["id"] for _ in range(31)]

    page = await page_of(client, f"{LIST}?label=n%3D1")
    older = await page_of(client, page.one("a", rel="next").attributes["href"])

    assert len(page.one("tbody").all("tr")) == 30
    assert [row.attributes["id"] for row in older.one("tbody").all("tr")] == [f"job-{made[0]}"]


@pytest.mark.usefixtures("ada")
async def test_who_has_no_jobs_learns_how_to_run_one(client: httpx2.AsyncClient) -> None:
    assert (await client.get("/jobs")).headers["location"] == LIST
    page = await page_of(client, LIST)
    assert "hf jobs run ubuntu echo hello" in page.text
    assert page.all("a", href=NEW)
    assert "hf jobs scheduled run" in (await page_of(client, f"{LIST}/scheduled")).text


async def test_jobs_of_others_look_as_if_they_were_not_there(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    job = await run(client, bob, path="/api/jobs/bob")
    schedule = await a_schedule(client, bob, path="/api/scheduled-jobs/bob")
    own = await run(client, ada)
    for path in (
        "",
        "/new",
        f"/{job['id']}/labels",
        "/scheduled",
        f"/scheduled/{schedule['id']}",
    ):
        there = await client.get(f"/jobs/bob{path}", headers=HTML)
        absent = await client.get(f"/jobs/eve{path}", headers=HTML)
        assert (there.status_code, absent.status_code) == (404, 404), path
        assert masked(there.text.replace("bob", "eve")) == masked(absent.text)
    # Nor is it found under the name of who looks for it.
    for path in (f"{NEW}?from={job['id']}", f"{LIST}/scheduled/{schedule['id']}"):
        assert (await client.get(path, headers=HTML)).status_code == 404
    token = form_token_of(await client.get(LIST, headers=HTML), f"{LIST}/{own['id']}/cancel")
    for action in ("cancel", "run-again", "labels", "delete"):
        response = await client.post(
            f"{LIST}/{job['id']}/{action}", data={"form_token": token}, headers=HTML
        )
        assert response.status_code == 404, action
    client.cookies.clear()
    assert (await client.get(LIST, headers=HTML)).headers["location"].startswith("/login")


async def test_a_member_sees_the_jobs_of_an_organization_but_changes_only_with_the_role(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(database, "looms", members={"ada": Role.read, "bob": Role.write})
    bob = await sign_in(database, "bob")
    job = await run(client, bob, path="/api/jobs/looms")

    page = await page_of(client, "/jobs/looms")

    assert len(page.one("tbody").all("tr")) == 1
    assert page.one("tbody").all("form") == []
    assert page.all("a", href="/jobs/looms/new") == []
    own = await run(client, ada)
    token = form_token_of(await client.get(LIST, headers=HTML), f"{LIST}/{own['id']}/cancel")
    # Not even with the token of another owner's pages.
    path = f"/jobs/looms/{job['id']}/cancel"
    response = await client.post(path, data={"form_token": token}, headers=HTML)
    assert response.status_code == 403
    refused = await press(
        client, "/jobs/looms/new", "/jobs/looms/new", image="ubuntu", flavor="cpu-basic"
    )
    assert refused.status_code == 403
    assert "contributor" in notices_in(refused)[0]


async def test_buttons_cancel_a_job_run_it_again_with_its_secrets_and_delete_it(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    job = await run(client, ada, secrets={"KEY": "s3cret"}, labels={"name": "train"})
    path = f"{LIST}/{job['id']}"

    canceled = await press(client, LIST, f"{path}/cancel", next=LIST)

    assert (canceled.status_code, canceled.headers["location"]) == (303, LIST)
    await set_row(database, job["id"], stage="CANCELED")
    again = await press(client, LIST, f"{path}/run-again")
    copy = (await jobs_of(client, ada))[0]
    assert again.headers["location"] == f"{LIST}/{copy['id']}"
    assert copy["secrets"] == {"KEY": None}
    assert await initiator_of(database, copy["id"]) == ("duplicated-job", job["id"])
    deleted = await press(client, LIST, f"{path}/delete")
    assert deleted.headers["location"] == LIST
    assert (await show(client, ada, job["id"]))["status"]["stage"] == "DELETED"


async def test_a_copy_whose_secrets_are_gone_is_asked_for_them(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    job = await run(client, ada, secrets={"KEY": "s3cret"})
    await set_row(database, job["id"], stage="COMPLETED", sealed_secrets=None)

    response = await press(client, LIST, f"{LIST}/{job['id']}/run-again")

    assert response.headers["location"] == f"{NEW}?from={job['id']}"
    assert 'value="KEY"' in (await client.get(response.headers["location"], headers=HTML)).text


async def test_labels_are_replaced_and_refused_as_by_the_api(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    job = await run(client, ada, labels={"name": "train"})
    path = f"{LIST}/{job['id']}/labels"

    refused = await press(client, path, path, labels="team=a/b")
    saved = await press(client, path, path, labels="team=looms  quick")

    assert "labels: each name must match" not in refused.text
    assert "labels.team must match" in problem_of(refused)
    assert 'value="team=a/b"' in refused.text
    assert saved.headers["location"] == f"{LIST}/{job['id']}"
    assert (await show(client, ada, job["id"]))["tags"] == ["team=looms", "quick"]


async def test_the_form_runs_a_job_with_all_that_the_api_takes(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")
    await client.post("/api/repos/create", headers=ada, json={"name": "box", "type": "bucket"})

    response = await fill_in(
        client,
        command="python -c 'print(\"a b\")'",
        environment='EPOCHS=4\nTEXT="two\\nlines"',
        secret_name=["KEY", ""],
        secret_value=["s3cret", ""],
        timeout="2h",
        attempts="3",
        name="train",
        labels="team=looms quick",
        ports="8080",
        public_ports="8081",
        volume_source=["model:ada/engine", "bucket:ada/box"],
        volume_mount=["/engine", "/out"],
        volume_revision=["", ""],
        volume_path=["", "results"],
        volume_read_only=["0"],
    )

    [job] = await jobs_of(client, ada)
    assert response.headers["location"] == f"{LIST}/{job['id']}"
    assert job["command"] == ["python", "-c", 'print("a b")']
    assert job["environment"] == {"EPOCHS": "4", "TEXT": "two\nlines"}
    assert job["secrets"] == {"KEY": None}
    assert (job["timeout"], job["retry"]) == (7200, 2)
    assert job["tags"] == ["team=looms", "quick", "name=train"]
    assert job["expose"] == {"ports": [8080, 8081], "portsPublic": [8081]}
    model, bucket = job["volumes"]
    assert (model["source"], model["mountPath"], model["readOnly"]) == (
        "ada/engine",
        "/engine",
        True,
    )
    assert (bucket["path"], bucket["readOnly"]) == ("results", False)
    assert (await initiator_of(database, job["id"]))[0] == "user"


async def test_the_form_of_a_changed_run_has_all_of_the_job_and_keeps_its_secrets(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    source = await run(
        client,
        ada,
        command=["sh", "-c", "echo 1\necho 2"],
        environment={"TEXT": " two\nlines", "PLAIN": "a=b"},
        secrets={"KEY": "s3cret", "OTHER": "x"},
        timeoutSeconds=60,
        labels={"name": "train", "team": "looms"},
        expose={"ports": [80], "portsPublic": []},
    )
    path = f"{NEW}?from={source['id']}"
    form = (await page_of(client, path)).one("form", action=NEW)
    fields: dict[str, Any] = {}
    for each in [*form.all("input"), *form.all("textarea")]:
        value = "".join(each.texts) if each.tag == "textarea" else each.attributes.get("value", "")
        if "name" in each.attributes and each.attributes.get("type") != "checkbox":
            fields.setdefault(each.attributes["name"], []).append(value)
    assert "s3cret" not in str(fields)

    response = await client.post(NEW, data=fields | {"do": "run", "flavor": "cpu-basic"})

    assert response.status_code == 303, notices_in(response)
    copy = (await jobs_of(client, ada))[0]
    same = ("command", "environment", "secrets", "timeout", "expose", "dockerImage", "flavor")
    assert {name: copy[name] for name in same} == {name: source[name] for name in same}
    assert sorted(copy["tags"]) == sorted(source["tags"])
    # The values too: the copy of the copy has them.
    assert (await secrets_in(database, copy["id"])) == {"KEY": "s3cret", "OTHER": "x"}


async def secrets_in(database: Database, job_id: str) -> dict[str, str]:
    async with database.read() as conn:
        sealed = await store.find_sealed(conn, job_id)
    return service.unseal_secrets(database.hub.keys, job_id, sealed)


@pytest.mark.parametrize("why", ["a copy", "another person", "signed in long ago", "a schedule"])
async def test_secrets_that_somebody_else_typed_are_not_kept_in_a_changed_run(
    client: httpx2.AsyncClient, database: Database, ada: Headers, why: str
) -> None:
    await an_organization(database, "looms", members={"ada": Role.write, "bob": Role.write})
    starter = await sign_in(database, "bob") if why in {"a copy", "another person"} else ada
    secrets = {"KEY": "s3cret"}
    if why == "a schedule":
        path = "/api/scheduled-jobs/looms"
        schedule = await a_schedule(client, ada, path=path, spec={"secrets": secrets})
        source = (await client.post(f"{path}/{schedule['id']}/run", headers=ada)).json()
    else:
        source = await run(client, starter, path="/api/jobs/looms", secrets=secrets)
    if why == "a copy":
        path = f"/api/jobs/looms/{source['id']}/duplicate"
        source = (await client.post(path, headers=ada)).json()
    if why == "signed in long ago":
        clock.move(timedelta(minutes=20))

    new = "/jobs/looms/new"
    response = await press(
        client,
        new,
        new,
        **{"from": source["id"]},
        image="ubuntu",
        flavor="cpu-basic",
        command="env",
        secret_name="KEY",
        secret_value="",
    )

    assert "secrets: type the value of KEY" in problem_of(response)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        pytest.param({"image": ""}, "dockerImage must have at least 1 character", id="no image"),
        pytest.param({"flavor": "h200"}, "flavor: this hub does not offer h200", id="flavor"),
        pytest.param({"command": "echo 'a"}, "command: no closing quotation", id="quotes"),
        pytest.param({"command": "a", "script": "b"}, "one line, or a script", id="both"),
        pytest.param({"environment": "EPOCHS"}, "environment: each line", id="variable"),
        pytest.param({"environment": "1A=2"}, "environment: each name must match", id="name"),
        pytest.param({"timeout": "soon"}, "timeoutSeconds must be seconds", id="timeout"),
        pytest.param({"timeout": "30d"}, "timeoutSeconds must be at most", id="too long"),
        pytest.param({"attempts": "x"}, "attempts must be an integer", id="attempts"),
        pytest.param({"ports": "http"}, "expose.ports[0] must be an integer", id="port"),
        pytest.param({"labels": "a/b=c"}, "labels: each name must match", id="label"),
        pytest.param({"times": "cron", "schedule": "often"}, "schedule must have", id="cron"),
        pytest.param({"image": "hf.co/spaces/ada/none"}, "no space ada/none", id="space"),
        pytest.param(
            {
                "volume_source": "dataset:bob/private",
                "volume_mount": "/data",
                "volume_revision": "",
                "volume_path": "",
            },
            "volumes[0]: there is no dataset bob/private",
            id="volume",
        ),
    ],
)
async def test_what_the_api_refuses_is_shown_again_with_its_reason(
    client: httpx2.AsyncClient, ada: Headers, fields: dict[str, str], sentence: str
) -> None:
    secret = {"secret_name": "KEY", "secret_value": "s3cret"}

    response = await fill_in(client, name="train", **secret, **fields)

    assert sentence in problem_of(response)
    assert 'name="name" value="train"' in response.text
    assert 'name="secret_name" value="KEY"' in response.text
    assert "s3cret" not in response.text
    assert await jobs_of(client, ada) == []


async def test_volumes_are_found_and_chosen_without_script(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")
    bob = await sign_in(database, "bob")
    await a_repo(client, bob, "bob/numbers")
    await a_repo(client, bob, "bob/hidden-numbers", private=True)

    def offered(response: httpx2.Response) -> list[str]:
        return [each.attributes["value"] for each in parse(response).all("button", name="add")]

    assert offered(await client.get(NEW, headers=HTML)) == ["model:ada/engine"]
    found = await fill_in(client, do="enter", find="numbers", command="true")
    assert offered(found) == ["model:bob/numbers"]
    assert 'value="true"' in found.text
    added = await fill_in(client, do="run", add="model:bob/numbers")
    assert 'name="volume_mount" value="/numbers"' in added.text
    row = {
        "volume_source": "model:bob/numbers",
        "volume_mount": "/numbers",
        "volume_revision": "",
        "volume_path": "",
    }
    removed = await fill_in(client, remove="0", **row)
    assert 'name="volume_mount"' not in removed.text
    # A script gets only this part.
    token = form_token_of(found, NEW)
    part = await client.post(
        NEW, data={"form_token": token, "add": "model:bob/numbers"}, headers={"Fragment": "volumes"}
    )
    assert part.text.strip().startswith('<section class="card body" id="volumes">')
    assert await jobs_of(client, ada) == []


async def test_the_form_schedules_a_job_after_a_look_at_its_next_runs(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    preview = await fill_in(client, do="preview", times="cron", schedule="0 9 * * 1")
    assert "At 09:00 on Monday" in parse(preview).text
    assert len(parse(preview).one("ol").all("time")) == 5
    wrong = await fill_in(client, do="preview", times="cron", schedule="9")
    assert "schedule must have the five fields" in problem_of(wrong)

    response = await fill_in(
        client, times="@daily", command="true", secret_name="K", secret_value="v"
    )

    [schedule] = (await client.get("/api/scheduled-jobs/ada", headers=ada)).json()
    assert response.headers["location"] == f"{LIST}/scheduled/{schedule['id']}"
    assert (schedule["schedule"], schedule["jobSpec"]["secrets"]) == ("@daily", {"K": None})
    assert "At 00:00 every day" in (await page_of(client, f"{LIST}/scheduled")).text


async def test_a_schedule_is_triggered_suspended_changed_and_deleted_on_its_page(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    schedule = await a_schedule(client, ada, spec={"labels": {"name": "nightly"}})
    path = f"{LIST}/scheduled/{schedule['id']}"
    assert len((await page_of(client, path)).one("ol").all("time")) == 5

    for action, fields in (
        ("run", {}),
        ("suspend", {}),
        ("times", {"schedule": "0 9 * * 1"}),
        ("labels", {"labels": "name=weekly team=looms"}),
    ):
        response = await press(client, path, f"{path}/{action}", **fields)
        assert response.headers.get("location") == path, action

    page = await page_of(client, path)
    [job] = await jobs_of(client, ada)
    assert page.one("h1").text == "weekly"
    assert "At 09:00 on Monday" in page.text
    assert page.one("tbody").one("tr").attributes["id"] == f"job-{job['id']}"
    changed = await show_schedule(client, ada, schedule["id"])
    assert changed["suspend"] is True
    assert changed["jobSpec"]["tags"] == ["name=weekly", "team=looms"]
    # One at a time, and a time that nobody can read.
    assert "concurrency is off" in problem_of(await press(client, path, f"{path}/run"))
    wrong = await press(client, path, f"{path}/times", schedule="often")
    assert "schedule must have the five fields" in problem_of(wrong)
    assert 'value="often"' in wrong.text
    await press(client, path, f"{path}/resume")
    assert (await show_schedule(client, ada, schedule["id"]))["suspend"] is False
    like_it = await page_of(client, f"{NEW}?schedule={schedule['id']}")
    assert like_it.one("input", name="schedule").attributes["value"] == "0 9 * * 1"
    gone = await press(client, path, f"{path}/delete")
    assert gone.headers["location"] == f"{LIST}/scheduled"
    assert (await client.get(path, headers=HTML)).status_code == 404


async def test_the_stream_of_a_list_tells_of_each_stage_until_its_viewer_has_left(
    client: httpx2.AsyncClient, app: FastAPI, database: Database, ada: Headers
) -> None:
    looms = await an_organization(database, "looms", members={"ada": Role.read, "bob": Role.write})
    bob = await sign_in(database, "bob")
    page = parse(await client.get("/jobs/looms", headers=HTML))
    address, since = page.one("body").attributes["data-live"].split("?since=")
    cookies = {"Cookie": "; ".join(f"{name}={value}" for name, value in client.cookies.items())}

    async with open_stream(app, address, cookies, since=since) as listener:
        # What the page shows is no news.
        assert await next_name(listener) == "unread"
        job = await run(client, bob, path="/api/jobs/looms")
        assert await next_name(listener) == "changed"
        path = f"/api/jobs/looms/{job['id']}/cancel"
        assert (await client.post(path, headers=bob)).status_code == 200
        assert await next_name(listener) == "changed"
        fragment = await client.get("/jobs/looms", headers=HTML | {"Fragment": "live"})
        assert f'<tr id="job-{job["id"]}">' in fragment.text
        assert "<table" not in fragment.text
        async with database.transaction() as conn:
            user = await users.find_by_name(conn, "ada")
            assert user is not None
            await organizations.remove_member(conn, OPERATOR, looms, user)
        await run(client, bob, path="/api/jobs/looms")
        assert await next_name(listener) is None
    refused = await client.get(address, headers=HTML)
    assert refused.status_code == 404


async def next_name(listener: StreamClient) -> str | None:
    """Return the name of the next event; None: the stream has ended."""
    async with asyncio.timeout(SOON_SECONDS):
        while (block := await listener.block()) is not None:
            if "event" in block:
                return block["event"]
    return None
