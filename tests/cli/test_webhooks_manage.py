"""The commands that list, show and change webhooks, against a running hub."""

import itertools
import re
from typing import Any

import pytest

from cli.hublet_command import Hublet
from processes import Place, Server, run_hublet

URL = "https://example.com/hook"
NOBODY = "0" * 24

_numbers = itertools.count()


@pytest.fixture
def repo(server: Server) -> str:
    """A model that no other test knows."""
    name = f"engine-{next(_numbers)}"
    with server.client(server.token) as client:
        made = client.post("/api/repos/create", json={"name": name, "type": "model"})
    assert made.status_code == 200, made.text
    return f"{server.user}/{name}"


def created(ask: Hublet, repo: str, *flags: str) -> str:
    done = ask("webhooks", "create", "--watch", f"model:{repo}", *flags, "-q")
    assert done.code == 0, done.err
    return done.out.strip()


def shown(ask: Hublet, webhook_id: str) -> Any:
    return ask("webhooks", "info", webhook_id, "--json").json


def test_a_created_webhook_is_told_by_its_id(ask: Hublet, server: Server, repo: str) -> None:
    done = ask("webhooks", "create", "--watch", f"model:{repo}", "--url", URL, "--secret", "s3cret")

    webhook_id = done.out.strip()
    assert (done.code, done.err) == (0, f"Created the webhook {webhook_id}.\n")
    webhook = shown(ask, webhook_id)
    assert webhook == {
        "id": webhook_id,
        "url": URL,
        "disabled": False,
        "watched": [
            {"name": repo, "type": "model", "avatarUrl": webhook["watched"][0]["avatarUrl"]}
        ],
        "hasSecret": True,
        "domains": ["repo", "discussion"],
    }
    assert webhook["watched"][0]["avatarUrl"].startswith(server.address)


def test_webhooks_are_listed_in_a_table(ask: Hublet, server: Server, repo: str) -> None:
    webhook_id = created(
        ask, repo, "--watch", f"user:{server.user}", "--url", URL, "--domain", "repo"
    )

    heading, *lines = ask("webhooks", "list").out.splitlines()

    [line] = [line for line in lines if line.startswith(webhook_id)]
    assert heading.split("  ")[0] == "id"
    assert re.split(" {2,}", line) == [
        webhook_id, URL, "enabled", "repo", f"model:{repo}, user:{server.user}", "-",
    ]  # fmt: skip
    assert webhook_id in ask("webhooks", "list", "-q").out.splitlines()
    assert shown(ask, webhook_id) in ask("webhooks", "list", "--json").json


def test_a_webhook_is_shown_line_by_line(ask: Hublet, repo: str) -> None:
    webhook_id = created(ask, repo, "--url", URL)

    assert ask("webhooks", "info", webhook_id).out == (
        f"id            {webhook_id}\n"
        f"target        {URL}\n"
        "state         enabled\n"
        f"watched       model:{repo}\n"
        "domains       repo, discussion\n"
        "secret        no\n"
        "last trigger  -\n"
    )


def test_a_webhook_that_starts_a_job_shows_the_names_of_its_secrets(
    ask: Hublet, server: Server, repo: str
) -> None:
    with server.client(server.token) as client:
        job = {"dockerImage": "ubuntu", "flavor": "cpu-basic", "command": ["true"]}
        job_id = client.post(f"/api/jobs/{server.user}", json=job).json()["id"]
    flags = ("--job-id", job_id, "--secrets", "KEY=hidden", "--secrets", "OTHER=too")
    webhook_id = created(ask, repo, *flags)

    lines = ask("webhooks", "info", webhook_id).out.splitlines()

    assert lines[-2:] == [f"runs as       {server.user}", "job secrets   KEY, OTHER"]


def test_an_update_changes_what_it_names(ask: Hublet, repo: str) -> None:
    webhook_id = created(ask, repo, "--url", URL, "--secret", "s3cret")
    before = shown(ask, webhook_id)

    changed = ask("webhooks", "update", webhook_id, "--domain", "discussion", "--secret", "")

    assert (changed.code, changed.out) == (0, f"{webhook_id}\n")
    assert shown(ask, webhook_id) == before | {"domains": ["discussion"], "hasSecret": False}


def test_a_webhook_rests_and_wakes(ask: Hublet, repo: str) -> None:
    webhook_id = created(ask, repo, "--url", URL)

    rests = ask("webhooks", "disable", webhook_id)
    resting = shown(ask, webhook_id)["disabled"]
    wakes = ask("webhooks", "enable", webhook_id, "--json")

    assert rests.err == f"Disabled the webhook {webhook_id}.\n"
    assert resting is True
    assert (wakes.json["id"], wakes.json["disabled"]) == (webhook_id, False)


def test_a_webhook_is_deleted_only_when_that_is_said(ask: Hublet, repo: str) -> None:
    webhook_id = created(ask, repo, "--url", URL)

    kept = ask("webhooks", "delete", webhook_id)
    still = shown(ask, webhook_id)["id"]
    gone = ask("webhooks", "delete", webhook_id, "--yes")

    assert (kept.code, kept.out) == (1, "")
    assert kept.err == (
        f"hublet: Delete the webhook {webhook_id} for good? "
        "There is no terminal to ask on: say so with --yes.\n"
    )
    assert still == webhook_id
    assert (gone.code, gone.out, gone.err) == (
        0, f"{webhook_id}\n", f"Deleted the webhook {webhook_id}.\n",
    )  # fmt: skip
    assert ask("webhooks", "info", webhook_id).err == f"hublet: There is no webhook {webhook_id}.\n"


def test_the_webhooks_of_an_organization_are_its_own(
    ask: Hublet, shared_place: Place, server: Server
) -> None:
    for command in (
        ("org", "add", "acme", "--plan", "team"),
        ("org", "member", "add", "acme", str(server.user), "--role", "admin"),
    ):
        made = run_hublet(*command, *shared_place.flags, folder=shared_place.folder)
        assert made.returncode == 0, made.stderr

    done = ask("webhooks", "create", "--org", "acme", "--watch", "org:acme", "--url", URL)
    webhook_id = done.out.strip()

    assert ask("webhooks", "list", "--org", "acme", "-q").out == f"{webhook_id}\n"
    assert webhook_id not in ask("webhooks", "list", "-q").out
    assert ask("webhooks", "delete", webhook_id, "--org", "acme", "-y").code == 0
    assert ask("webhooks", "list", "--org", "acme").err == "There are no webhooks.\n"


@pytest.mark.parametrize("kind", ["model", "dataset", "space", "bucket", "kernel", "container"])
def test_every_type_of_repository_can_be_watched(ask: Hublet, server: Server, kind: str) -> None:
    name = f"{kind}-{next(_numbers)}"
    with server.client(server.token) as client:
        more = {"sdk": "static"} if kind == "space" else {}
        body = {"name": name, "type": kind, **more}
        if kind in {"bucket", "container"}:
            made = client.post(f"/api/{kind}s/{server.user}/{name}", json={})
        else:
            made = client.post("/api/repos/create", json=body)
    assert made.status_code == 200, made.text

    item = f"{kind}:{server.user}/{name}"
    done = ask("webhooks", "create", "--watch", item, "--url", URL, "-q")

    assert done.code == 0, done.err
    [watched] = shown(ask, done.out.strip())["watched"]
    assert f"{watched['type']}:{watched['name']}" == item


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        pytest.param(["create", "--url", URL], "Say what to watch", id="nothing to watch"),
        pytest.param(["create", "--watch", "model:a/b"], "Give --url or --job-id", id="no target"),
        pytest.param(
            ["create", "--watch", "model:a/b", "--url", URL, "--job-id", NOBODY],
            "and not both",
            id="two targets",
        ),
        pytest.param(
            ["create", "--watch", "engine", "--url", URL],
            "engine is not of the form TYPE:NAME",
            id="a watched item without a type",
        ),
        pytest.param(
            ["create", "--watch", "robot:a", "--url", URL],
            "the types are model, dataset, space, bucket, kernel, container, user, org",
            id="a type that does not exist",
        ),
        pytest.param(
            ["create", "--watch", "model:a/b", "--url", URL, "--secrets", "A=b"],
            "They are for a job",
            id="secrets for a URL",
        ),
        pytest.param(["update", NOBODY], "Say what to change", id="a change of nothing"),
        pytest.param(
            ["update", NOBODY, "--url", URL, "--job-id", NOBODY], "and not both", id="both again"
        ),
    ],
)
def test_wrong_usage_is_told_before_the_hub_is_asked(
    run: Hublet, arguments: list[str], complaint: str
) -> None:
    refused = run("webhooks", *arguments, "--endpoint", "http://127.0.0.1:1", "--token", "hf_x")

    assert refused.code == 2
    assert complaint in " ".join(refused.err.replace("│", " ").split())


def test_the_hub_has_the_last_word(ask: Hublet) -> None:
    refused = ask("webhooks", "create", "--watch", "model:no/body", "--url", URL)

    assert (refused.code, refused.out, refused.err) == (
        1,
        "",
        "hublet: watched[0]: there is no model no/body, or you cannot see it.\n",
    )
