"""The commands of the inbox against a running hub, where two people talk."""

import itertools
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from cli.hublet_command import Hublet, Outcome
from cli.listeners import listening, wait_for_count
from patience import SOON_SECONDS
from processes import Server, wait_until

_numbers = itertools.count()


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    name: str
    token: str


@pytest.fixture
def grace(server: Server) -> Person:
    """Somebody with an empty inbox."""
    name = f"grace{next(_numbers)}"
    with server.client(server.token) as client:
        client.post("/api/admin/users", json={"name": name}).raise_for_status()
        issued = client.post(
            f"/api/admin/users/{name}/tokens", json={"name": "test", "role": "write"}
        ).raise_for_status()
    return Person(name=name, token=issued.json()["value"])


@pytest.fixture
def inbox(ask: Hublet, grace: Person) -> Hublet:
    """Runs `hublet notifications …` as the one whose inbox it is."""

    def as_grace(*arguments: str, stdin: str = "") -> Outcome:
        return ask("notifications", *arguments, "--token", grace.token, stdin=stdin)

    return as_grace


@pytest.fixture
def repo(server: Server, grace: Person) -> str:
    with server.client(grace.token) as client:
        name = f"engine{next(_numbers)}"
        made = client.post("/api/repos/create", json={"name": name, "type": "model"})
    assert made.status_code == 200, made.text
    return f"{grace.name}/{name}"


def discuss(server: Server, repo: str, title: str) -> None:
    with server.client(server.token) as client:
        body = {"title": title, "description": "Look.", "pullRequest": False}
        opened = client.post(f"/api/models/{repo}/discussions", json=body)
    assert opened.status_code == 200, opened.text


def items(inbox: Hublet, *flags: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = inbox("list", "--json", *flags).json
    return found


def told(inbox: Hublet, server: Server, repo: str, *titles: str) -> None:
    """Open discussions, and wait until the inbox has them."""
    for title in titles:
        discuss(server, repo, title)
    wait_until(
        lambda: {item["discussion"]["title"] for item in items(inbox, "-n", "99")} >= set(titles),
        seconds=SOON_SECONDS,
    )


def test_the_inbox_is_listed_with_the_newest_first(
    inbox: Hublet, server: Server, repo: str
) -> None:
    told(inbox, server, repo, "It smokes")
    told(inbox, server, repo, "It burns")

    done = inbox("list")

    heading, *lines = [re.split(" {2,}", line) for line in done.out.splitlines()]
    assert done.code == 0
    assert [line[-2:] for line in lines] == [
        [f"model:{repo}#2", "It burns"],
        [f"model:{repo}#1", "It smokes"],
    ]
    assert all("●" in line for line in lines)
    assert heading[0] == "id"
    assert inbox("list", "-q").out.split() == [item["discussion"]["id"] for item in items(inbox)]


def test_an_empty_inbox_says_so_on_stderr(inbox: Hublet) -> None:
    assert inbox("list") == Outcome(code=0, out="", err="There is nothing in the inbox.\n")
    assert inbox("list", "--unread").err == "Nothing matches.\n"


def test_filters_narrow_the_list(inbox: Hublet, server: Server, repo: str) -> None:
    told(inbox, server, repo, "It smokes", "It burns")

    assert len(items(inbox, "--repo", f"model:{repo}", "--unread")) == 2
    assert items(inbox, "--repo", f"dataset:{repo}") == []
    assert items(inbox, "--mention", "mentions") == []
    assert items(inbox, "--post-author", "nobody") == []
    assert items(inbox, "--before", "8w") == []
    assert len(items(inbox, "--limit", "1")) == 1


def test_more_than_a_page_is_fetched_and_none_comes_twice(
    inbox: Hublet, server: Server, repo: str
) -> None:
    told(inbox, server, repo, *(f"No. {number}" for number in range(27)))

    found = [item["discussion"]["num"] for item in items(inbox, "--limit", "100")]

    assert sorted(found) == list(range(1, 28))


def test_items_are_marked_as_read_and_unread(inbox: Hublet, server: Server, repo: str) -> None:
    told(inbox, server, repo, "It smokes", "It burns")
    first, _ = inbox("list", "-q").out.split()

    assert inbox("read", first).err == "1 item was marked as read.\n"
    assert first not in inbox("list", "--unread", "-q").out
    assert inbox("read", "--all", "--repo", f"model:{repo}", "--json").json == {"count": 1}
    assert items(inbox, "--unread") == []
    assert inbox("unread", "--all").err == "2 items were marked as unread.\n"


def test_items_are_done(inbox: Hublet, server: Server, repo: str) -> None:
    told(inbox, server, repo, "It smokes", "It burns")
    first, second = inbox("list", "-q").out.split()

    assert inbox("done", first).err == "1 item was taken out of the inbox.\n"
    assert inbox("list", "-q").out.split() == [second]
    refused = inbox("done", "--all")
    assert (refused.code, items(inbox) != []) == (1, True)
    assert "say so with --yes" in refused.err
    assert inbox("done", "--all", "--yes").code == 0
    assert items(inbox) == []


@pytest.mark.parametrize("command", ["read", "unread", "done"])
@pytest.mark.parametrize("arguments", [[], ["0" * 24, "--all"]])
def test_ids_or_all_but_not_both(inbox: Hublet, command: str, arguments: list[str]) -> None:
    done = inbox(command, *arguments)

    assert done.code == 2
    assert "Give the ids of items, or --all, and not both." in " ".join(done.err.split())


def test_something_is_watched_and_no_more(inbox: Hublet, server: Server, grace: Person) -> None:
    assert inbox("watch").err == "Nothing is watched.\n"

    done = inbox("watch", f"user:{server.user}")

    assert [line.split()[:2] for line in done.out.splitlines()[1:]] == [["user", server.user]]
    assert (
        inbox("watch", "-q").out
        == inbox("watch", f"user:{grace.name}", "-q").out.splitlines(keepends=True)[0]
    )
    assert len(inbox("watch", "--json").json) == 2
    inbox("watch", f"user:{server.user}", f"user:{grace.name}", "--remove")
    assert inbox("watch", "--json").json == []


def test_a_repository_and_a_thread_are_muted(inbox: Hublet, server: Server, repo: str) -> None:
    told(inbox, server, repo, "It smokes")
    [thread] = inbox("list", "-q").out.split()

    done = inbox("mute", f"model:{repo}", thread, "--json")

    assert [(entry["type"], entry["name"]) for entry in done.json] == [
        ("repo", repo),
        ("thread", "It smokes"),
    ]
    inbox("mute", f"model:{repo}", thread, "--remove")
    assert inbox("mute") == Outcome(code=0, out="", err="Nothing is muted.\n")


@pytest.mark.parametrize(
    ("command", "item"),
    [
        pytest.param("watch", "bucket:ada/files", id="a type without discussions"),
        pytest.param("watch", "model:engine", id="a repository without its owner"),
        pytest.param("watch", "buckets/ada/files", id="the address of one"),
        pytest.param("watch", "", id="nothing"),
        pytest.param("mute", "ada", id="a name alone cannot be muted"),
        pytest.param("mute", "user:ada", id="a user cannot be muted"),
    ],
)
def test_what_cannot_be_named_is_refused(inbox: Hublet, command: str, item: str) -> None:
    done = inbox(command, item)

    assert done.code == 2
    assert f"{item} names nothing that can be found" in " ".join(done.err.split())


@pytest.mark.parametrize(
    ("item", "sentence"),
    [
        ("user:nobody-at-all", "There is no user nobody-at-all."),
        ("nobody-at-all", "There is no user and no organization nobody-at-all."),
        ("nobody-at-all/engine", "There is no model nobody-at-all/engine"),
        ("datasets/nobody/tables", "There is no dataset nobody/tables"),
    ],
)
def test_something_unknown_is_refused_with_a_sentence(
    inbox: Hublet, item: str, sentence: str
) -> None:
    done = inbox("watch", item)

    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"hublet: {sentence}")


def test_names_are_written_as_in_addresses(
    inbox: Hublet, server: Server, repo: str, grace: Person
) -> None:
    with server.client(server.token) as client:
        client.post("/api/repos/create", json={"name": "tables", "type": "dataset"})
        client.post("/api/organizations", json={"name": "acme"})
    names = [repo, f"datasets/{server.user}/tables", grace.name, "acme"]

    watched = inbox("watch", *names, "--json").json

    assert {(each["type"], each["name"]) for each in watched} == {
        ("repo", repo),
        ("repo", f"{server.user}/tables"),
        ("user", grace.name),
        ("org", "acme"),
    }
    assert len(inbox("mute", repo, "--json").json) == 1
    assert inbox("mute", repo, "--remove").err == "Nothing is muted.\n"
    assert inbox("watch", *names, "--remove", "--json").json == []


def test_settings_are_shown_and_changed(inbox: Hublet) -> None:
    before = dict(line.split() for line in inbox("settings").out.splitlines()[1:])
    assert before["job_status"] == "on"

    inbox("settings", "job_status=off", "product_updates_after=2026-01-01T00:00:00Z")

    [now] = inbox("settings", "--json").json
    assert now["job_status"] is False
    assert now["product_updates_after"].startswith("2026-01-01T00:00:00")


@pytest.mark.parametrize("choice", ["job_status", "=on", "job_status="])
def test_a_choice_needs_a_name_and_a_value(inbox: Hublet, choice: str) -> None:
    assert inbox("settings", choice).code == 2


def test_an_unknown_setting_is_refused_by_the_hub(inbox: Hublet) -> None:
    done = inbox("settings", "coffee=on")

    assert done.code == 1
    assert "coffee" in done.err


def test_what_comes_is_told_as_it_comes(
    server: Server, grace: Person, repo: str, tmp_path: Path
) -> None:
    as_grace = replace(server, token=grace.token)
    with listening(as_grace, tmp_path, group="notifications") as listener:
        discuss(server, repo, "It smokes")
        wait_for_count(listener, 1)
        [line] = listener.lines
        assert listener.end() == 130

    assert line.endswith(f"model:{repo}#1  It smokes")
    assert listener.words == "Listening; Ctrl-C ends it.\n"
