from collections import Counter

import pytest

from cli.hublet_command import Hublet, in_hub
from hublet.accounts.users import service as accounts
from hublet.core.config import Settings
from hublet.core.database import Connection
from hublet.tokens import service as tokens


def secrets(added: list[dict[str, str]], what: str) -> dict[str, str]:
    return {each["name"]: each["secret"] for each in added if each["what"] == what}


def test_the_demo_fills_an_empty_hub(hublet: Hublet) -> None:
    added = hublet("demo", "--json").json["added"]

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
    added = hublet("demo", "--json").json["added"]

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
    hublet("demo")
    before = hublet("user", "list").out

    again = hublet("demo")

    assert (again.code, again.out) == (0, "")
    assert again.err == "The demo is there already: nothing added.\n"
    assert hublet("demo", "--json").json == {"added": []}
    assert hublet("user", "list").out == before


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
def test_a_second_run_adds_what_is_missing(hublet: Hublet) -> None:
    hublet("demo")
    hublet("org", "member", "remove", "night-sky", "ada")

    again = hublet("demo", "--json").json["added"]

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

    refused = hublet("demo")

    assert (refused.code, refused.out) == (1, "")
    assert refused.err == (
        f"hublet: The name {arguments[-1]} belongs to somebody who is not of the demo: use a hub "
        "of its own, with --data-dir.\n"
    )
    assert (hublet("user", "list").out, hublet("org", "list").out) == before


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
def test_people_read_a_summary_and_what_to_try(hublet: Hublet) -> None:
    shown = hublet("demo")

    first, *_, last = shown.out.splitlines()
    assert first.split("  ")[0] == "user"
    assert last.split()[:2] == ["token", "engine-robot"]
    assert "export HF_ENDPOINT=http://localhost:8000" in shown.err
    # What goes to stderr may be kept in a log.
    assert "hf_" not in shown.err
