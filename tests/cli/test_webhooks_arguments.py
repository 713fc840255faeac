import json
from pathlib import Path
from typing import Any

import pytest

from cli.hublet_command import Hublet
from client.scripted_server import ScriptedResponse, scripted_server

ID = "a" * 24
ANSWER = {
    "webhook": {
        "id": ID, "jobSourceId": "b" * 24, "disabled": "suspended-after-failure",
        "watched": [], "hasSecret": False, "domains": ["repo"],
        "lastTriggerAt": "2026-11-15T01:44:56.123Z",
    }
}  # fmt: skip


def sent(run: Hublet, *arguments: str) -> Any:
    """Return the body that the command sends."""
    with scripted_server(ScriptedResponse(body=json.dumps(ANSWER).encode())) as hub:
        done = run("webhooks", *arguments, "--endpoint", hub.address, "--token", "hf_x")
    assert done.code == 0, done.err
    return json.loads(hub.asked[0].body)


def test_a_webhook_for_a_job_gets_secrets_from_everywhere(
    run: Hublet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FROM_SHELL", "shell")
    file = tmp_path / "secrets.env"
    file.write_text("# a comment\n\nQUOTED='a b'\nPLAIN = c=d\nBOTH=file\nFROM_SHELL\n")

    body = sent(
        run,
        *("create", "--watch", "org:acme", "--watch", "bucket:acme/data", "--job-id", "b" * 24),
        *("--secrets", "BOTH=flag", "-s", "FROM_SHELL", "-s", "EMPTY=", "-s", "KEPT=' x '"),
        *("--secrets-file", str(file)),
    )

    assert body == {
        "watched": [{"type": "org", "name": "acme"}, {"type": "bucket", "name": "acme/data"}],
        "jobSourceId": "b" * 24,
        "domains": ["repo", "discussion"],
        "secrets": {
            "QUOTED": "a b", "PLAIN": "c=d", "BOTH": "flag", "FROM_SHELL": "shell", "EMPTY": "",
            "KEPT": "' x '",
        },
    }  # fmt: skip


def test_a_mark_at_the_start_of_a_file_is_no_part_of_a_name(run: Hublet, tmp_path: Path) -> None:
    file = tmp_path / "secrets.env"
    file.write_text("FIRST=a\nSECOND=b\n", encoding="utf-8-sig")

    body = sent(run, "update", ID, "--secrets-file", str(file))

    assert body == {"secrets": {"FIRST": "a", "SECOND": "b"}}


def test_a_change_names_only_what_was_given(run: Hublet) -> None:
    assert sent(run, "update", ID, "--secrets", "OLD=") == {"secrets": {"OLD": ""}}
    assert sent(run, "update", ID, "--url", "http://a.test/") == {"url": "http://a.test/"}
    assert sent(
        run, "update", ID, "--watch", "user:ada", "--domain", "repo", "--domain", "repo"
    ) == {
        "watched": [{"type": "user", "name": "ada"}],
        "domains": ["repo"],
    }


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        pytest.param(["--secrets", "NOT_SET_ANYWHERE"], "where it is not set", id="no variable"),
        pytest.param(["--secrets", "=hidden"], "It needs a name", id="no name"),
        pytest.param(["--secrets-file", "nowhere"], "cannot be read as text", id="no file"),
    ],
)
def test_a_secret_that_cannot_be_read_is_told_and_not_repeated(
    run: Hublet, flags: list[str], complaint: str
) -> None:
    refused = run("webhooks", "update", ID, *flags, "--endpoint", "http://127.0.0.1:1")

    assert refused.code == 2
    assert complaint in " ".join(refused.err.split())
    assert "hidden" not in refused.err


def test_a_job_and_a_suspension_are_shown(run: Hublet) -> None:
    activity = {"secretNames": ["KEY"], "runsAs": "ada", "triggers": 0, "throttled": False}
    answers = [ScriptedResponse(body=json.dumps(each).encode()) for each in (ANSWER, activity)]
    with scripted_server(*answers) as hub:
        shown = run("webhooks", "info", ID, "--endpoint", hub.address, "--token", "hf_x")

    assert shown.out.splitlines()[1:] == [
        f"target        (job {'b' * 24})",
        "state         suspended-after-failure",
        "watched       -",
        "domains       repo",
        "secret        no",
        "last trigger  2026-11-15 01:44",
        "runs as       ada",
        "job secrets   KEY",
    ]
