import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from cli.hublet_command import Hublet, in_hub
from hublet.accounts.users import service as accounts
from hublet.app import create_application, with_edge
from hublet.core import clock
from hublet.core.config import Settings
from hublet.core.database import Connection
from hublet.core.machine import identify
from hublet.runtime.supervisor import store as supervisor
from hublet.runtime.supervisor.records import Locality
from hublet.serving import open_hub
from hublet.tokens import service as tokens

# Pages that the demo has something for, and that are not built yet.


def secrets(added: list[dict[str, str]], what: str) -> dict[str, str]:
    return {each["name"]: each["secret"] for each in added if each["what"] == what}


def test_the_demo_fills_an_empty_hub(hublet: Hublet) -> None:
    added = hublet("demo", "--people-only", "--json").json["added"]

    assert Counter(each["what"] for each in added) == {
        "user": 4,
        "organization": 3,
        "member": 6,
        "resource group": 2,
        "service account": 1,
        "follow": 3,
        "token": 4,
    }
    assert added[0] == {
        "what": "user",
        "name": "ada",
        "detail": "Ada Lovelace",
        "secret": added[0]["secret"],
    }
    listed = hublet("org", "list", "--json").json
    assert {each["name"]: each["plan"] for each in listed} == {
        "analytical-engines": "enterprise",
        "night-sky": "team",
        "open-notebook": "free",
    }
    assert hublet("org", "member", "list", "analytical-engines", "-q").out.split() == [
        "ada",
        "alan",
        "grace",
        "engine-robot",
    ]


def test_its_passwords_and_tokens_work(hublet: Hublet, settings: Settings) -> None:
    added = hublet("demo", "--people-only", "--json").json["added"]

    async def who(conn: Connection) -> tuple[list[str], list[str]]:
        people = [
            await accounts.find_by_password(conn, name, password)
            for name, password in secrets(added, "user").items()
        ]
        callers = [
            await tokens.find_caller(conn, value) for value in secrets(added, "token").values()
        ]
        return [each.name for each in people if each], [each.user_name for each in callers if each]

    people, callers = in_hub(settings, who)
    assert people == ["ada", "alan", "grace", "katherine"]
    assert callers == ["ada", "grace", "alan", "engine-robot"]


def test_a_second_run_adds_nothing_and_says_so(hublet: Hublet) -> None:
    hublet("demo", "--people-only")
    before = hublet("user", "list").out

    again = hublet("demo", "--people-only")

    assert (again.code, again.out) == (0, "")
    assert again.err == "The demo is there already: nothing added.\n"
    assert hublet("demo", "--people-only", "--json").json == {"added": []}
    assert hublet("user", "list").out == before


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
def test_a_second_run_adds_what_is_missing(hublet: Hublet) -> None:
    hublet("demo", "--people-only")
    hublet("org", "member", "remove", "night-sky", "ada")

    again = hublet("demo", "--people-only", "--json").json["added"]

    assert again == [
        {"what": "member", "name": "ada", "detail": "read in night-sky", "secret": None}
    ]


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["user", "add", "grace"], id="a real user"),
        pytest.param(["org", "add", "night-sky"], id="a real organization"),
    ],
)
def test_a_hub_in_use_is_left_alone(hublet: Hublet, arguments: list[str]) -> None:
    hublet(*arguments)
    before = (hublet("user", "list").out, hublet("org", "list").out)

    refused = hublet("demo", "--people-only")

    assert (refused.code, refused.out) == (1, "")
    assert refused.err == (
        f"hublet: The name {arguments[-1]} belongs to somebody who is not of the demo: use a hub "
        "of its own, with --data-dir.\n"
    )
    assert (hublet("user", "list").out, hublet("org", "list").out) == before


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
def test_people_read_a_summary_and_what_to_try(hublet: Hublet) -> None:
    shown = hublet("demo", "--people-only")

    first, *_, last = shown.out.splitlines()
    assert first.split("  ")[0] == "user"
    assert last.split()[:2] == ["token", "engine-robot"]
    assert "export HF_ENDPOINT=http://localhost:8000" in shown.err
    assert "http://localhost:8000/docs" in shown.err
    # What goes to stderr may be kept in a log.
    assert "hf_" not in shown.err


def ask_all(settings: Settings, token: str, *paths: str, password: str = "") -> list[Any]:
    """Ask the hub for all of these as ada, who signs in for pages; return their bodies."""

    async def run() -> list[Any]:
        async with open_hub(settings) as database:
            transport = httpx2.ASGITransport(app=with_edge(create_application(database)))
            headers = {"Authorization": f"Bearer {token}"}
            async with httpx2.AsyncClient(
                transport=transport, base_url="http://localhost:8000", headers=headers
            ) as client:
                if password:
                    await client.post("/login", data={"name": "ada", "password": password})
                return [await ask(client, path) for path in paths]

    async def ask(client: httpx2.AsyncClient, path: str) -> Any:
        is_page = not path.startswith("/api/")
        response = await client.get(path, headers={"Accept": "text/html"} if is_page else {})
        assert response.status_code == 200, (path, response.text)
        return response.text if is_page else response.json()

    return asyncio.run(run())


async def find_work(conn: Connection) -> tuple[list[str], list[Any]]:
    """Return the jobs that a supervisor would take over, and those that it would start."""
    here = Locality(machine=identify(conn.hub.settings), lost_before=0)
    under_way = await supervisor.list_under_way(conn, here, unconfirmed_before=0)
    return under_way, list(await supervisor.list_waiting(conn, here, each=9))


@pytest.mark.full
def test_the_demo_has_a_week_of_everything_and_a_second_run_adds_nothing(
    hublet: Hublet, settings: Settings
) -> None:
    added = hublet("demo", "--json").json["added"]
    [token] = [each["secret"] for each in added if (each["what"], each["name"]) == ("token", "ada")]
    pages = [each["name"] for each in added if each["what"] in {"page", "job"}]

    assert clock.offset() == timedelta()
    assert hublet("demo", "--json").json == {"added": []}
    assert len(ask_all(settings, token, *pages, password=secrets(added, "user")["ada"])) > 10

    model, threads, inbox, webhooks, jobs, gate, commits = ask_all(
        settings,
        token,
        "/api/models/ada/engine-7b",
        "/api/models/ada/engine-7b/discussions",
        "/api/notifications",
        "/api/settings/webhooks",
        "/api/jobs/ada",
        "/api/models/ada/engine-70b/user-access-request/pending",
        "/api/datasets/night-sky/plates/commits/main",
    )
    assert (model["likes"], model["downloads"] > 50) == (3, True)
    assert Counter(each["status"] for each in threads["discussions"]) == {"open": 3, "merged": 1}
    assert {each["read"] for each in inbox["notifications"]} == {True, False}
    assert Counter(str(each["disabled"]) for each in webhooks) == {
        "False": 2,
        "suspended-after-failure": 1,
    }
    stages = {each["status"]["stage"] for each in jobs}
    assert stages == {"COMPLETED", "ERROR", "RUNNING", "SCHEDULING"}
    assert [each["user"]["user"] for each in gate] == ["alan"]
    days = {each["date"][:10] for each in commits}
    assert len(days) >= 7
    # Jobs that seem to wait or run are never started.
    assert in_hub(settings, find_work) == ([], [])
