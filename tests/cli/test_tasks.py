import pytest

from cli.hublet_command import Hublet, in_hub, park_task
from hublet.core import queue
from hublet.core.clock import from_micros, micros, wire
from hublet.core.config import Settings


def test_a_hub_without_trouble_says_so(hublet: Hublet) -> None:
    listed = hublet("task", "list")

    assert (listed.code, listed.out, listed.err) == (0, "", "No task is parked.\n")
    assert hublet("task", "list", "--json").json == []


def test_a_parked_task_is_shown_with_its_error(hublet: Hublet, settings: Settings) -> None:
    task_id = park_task(settings, kind="mail.send", error="OSError: no route\nto host")
    [parked] = in_hub(settings, queue.list_parked)

    listed = hublet("task", "list")

    since = from_micros(parked.parked_at)
    assert hublet("task", "list", "--json").json == [
        {
            "id": task_id,
            "kind": "mail.send",
            "attempts": 1,
            "since": wire(since),
            "error": "OSError: no route\nto host",
        }
    ]
    assert (
        listed.out.splitlines()[1].split("  ")[-1]
        == "OSError: no route\N{REPLACEMENT CHARACTER}to host"
    )
    assert f"{since:%Y-%m-%d %H:%M}" in listed.out
    assert hublet("task", "list", "-q").out == f"{task_id}\n"


def test_one_task_is_retried(hublet: Hublet, settings: Settings) -> None:
    task_id = park_task(settings, kind="mail.send", error="down")
    other_id = park_task(settings, kind="hook.send", error="down")

    retried = hublet("task", "retry", task_id)

    assert (retried.code, retried.out, retried.err) == (0, "", "1 task will be tried again.\n")
    assert hublet("task", "list", "-q").out == f"{other_id}\n"
    due = in_hub(settings, queue.next_due)
    assert due is not None
    assert due <= micros()


def test_all_tasks_are_retried(hublet: Hublet, settings: Settings) -> None:
    park_task(settings, kind="mail.send", error="down")
    park_task(settings, kind="hook.send", error="down")

    assert hublet("task", "retry", "--all", "--json").json == {"retried": 2}
    assert hublet("task", "retry", "--all").err == "0 tasks will be tried again.\n"


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
def test_an_unknown_task_is_told(hublet: Hublet) -> None:
    refused = hublet("task", "retry", "nothing")

    assert (refused.code, refused.err) == (1, "hublet: There is no parked task nothing.\n")


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param([], id="nothing"),
        pytest.param([""], id="an empty id is not every id"),
        pytest.param(["some", "--all"], id="both"),
    ],
)
def test_an_id_or_all_is_needed(hublet: Hublet, settings: Settings, arguments: list[str]) -> None:
    park_task(settings, kind="mail.send", error="down")

    refused = hublet("task", "retry", *arguments)

    assert refused.code == 2
    assert "Give the ID of a task, or --all." in refused.err
    assert in_hub(settings, queue.count_parked) == 1


@pytest.mark.parametrize("settings", ["sqlite"], indirect=True)
def test_a_long_list_says_that_it_is_cut(
    hublet: Hublet, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    park_task(settings, kind="mail.send", error="down")
    park_task(settings, kind="hook.send", error="down")
    monkeypatch.setattr("hublet.cli.tasks._MAX_ROWS", 1)

    listed = hublet("task", "list")

    assert len(listed.out.splitlines()) == 2
    assert listed.err == "These are the oldest 1 of 2.\n"
