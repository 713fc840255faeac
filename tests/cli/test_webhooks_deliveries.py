"""What became of deliveries, and sending again: the commands against a running hub."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from cli.hublet_command import Hublet
from hublet.testing import Receiver, receiving
from patience import SOON_SECONDS
from processes import Server, wait_until

NOBODY = "0" * 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Watching:
    """A webhook on a model of its own, and where it leads."""

    server: Server
    receiver: Receiver
    repo: str
    id: str

    def happens(self, *titles: str) -> None:
        with self.server.client(self.server.token) as client:
            for title in titles:
                made = client.post(f"/api/models/{self.repo}/discussions", json={"title": title})
                assert made.status_code == 200, made.text

    def deliveries(self) -> list[Any]:
        with self.server.client(self.server.token) as client:
            found: list[Any] = client.get(f"/api/settings/webhooks/{self.id}/deliveries").json()
            return found

    def wait_for(self, *states: str) -> None:
        wait_until(
            lambda: sorted(each["state"] for each in self.deliveries()) == sorted(states),
            seconds=SOON_SECONDS,
        )


@pytest.fixture
def watching(server: Server, ask: Hublet, request: pytest.FixtureRequest) -> Iterator[Watching]:
    name = re.sub(r"\W+", "-", request.node.originalname)[:60].strip("-")
    with server.client(server.token) as client:
        client.post("/api/repos/create", json={"name": name, "type": "model"}).raise_for_status()
    repo = f"{server.user}/{name}"
    with receiving() as receiver:
        made = ask("webhooks", "create", "--watch", f"model:{repo}", "--url", receiver.url, "-q")
        webhook_id = made.out.strip()
        yield Watching(server=server, receiver=receiver, repo=repo, id=webhook_id)
        ask("webhooks", "delete", webhook_id, "-y")


def test_deliveries_are_listed_newest_first(ask: Hublet, watching: Watching) -> None:
    watching.happens("first", "second")
    watching.wait_for("delivered", "delivered")

    heading, *lines = ask("webhooks", "deliveries", watching.id).out.splitlines()

    newest, oldest = watching.deliveries()
    assert re.split(" {2,}", heading) == [
        "id", "created", "event", "about", "state", "attempts", "status", "reason",
    ]  # fmt: skip
    assert [re.split(" {2,}", line) for line in lines] == [
        [
            each["id"], each["createdAt"][:16].replace("T", " "), "discussion create",
            f"model:{watching.repo}", "delivered", "1", "200", "-",
        ]
        for each in (newest, oldest)
    ]  # fmt: skip
    assert ask("webhooks", "deliveries", watching.id, "--json").json == [newest, oldest]


def test_deliveries_are_filtered_and_counted(ask: Hublet, watching: Watching) -> None:
    watching.happens("one", "two", "three")
    watching.wait_for("delivered", "delivered", "delivered")
    newest, second, _oldest = (each["id"] for each in watching.deliveries())

    def ids(*flags: str) -> list[str]:
        return ask("webhooks", "deliveries", watching.id, "-q", *flags).out.split()

    assert ids("--limit", "2") == [newest, second]
    assert ids("-n", "1", "--state", "delivered", "--since", "1h") == [newest]
    assert ids("--state", "failed") == []
    assert ids("--scope", "repo.content") == []
    assert ids("--repo", "some/other") == []
    assert ids("--reason", "throttled") == []
    assert ids("--until", "1h") == []
    assert len(ids("--since", "2020-01-01", "--scope", "discussion")) == 3
    nothing = ask("webhooks", "deliveries", watching.id, "--state", "unsent")
    assert (nothing.code, nothing.out, nothing.err) == (0, "", "There are no such deliveries.\n")


def test_more_than_a_page_is_fetched_page_by_page(
    ask: Hublet, watching: Watching, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hublet.cli.webhooks.deliveries._PAGE", 2)
    watching.happens("one", "two", "three", "four", "five")
    watching.wait_for(*["delivered"] * 5)

    listed = ask("webhooks", "deliveries", watching.id, "-q", "-n", "4").out.split()

    assert listed == [each["id"] for each in watching.deliveries()][:4]


def test_a_replay_tells_what_the_target_answered(ask: Hublet, watching: Watching) -> None:
    watching.happens("again")
    watching.wait_for("delivered")
    [delivery] = watching.deliveries()

    good = ask("webhooks", "replay", watching.id, delivery["id"])
    watching.receiver.answer_with(503)
    bad = ask("webhooks", "replay", watching.id, delivery["id"])

    assert (good.code, good.out, good.err) == (
        0, f"{delivery['id']}\n", "The target answered 200.\n",
    )  # fmt: skip
    assert (bad.code, bad.out, bad.err) == (
        1, f"{delivery['id']}\n", "The target answered 503.\n",
    )  # fmt: skip
    assert len({each.body for each in watching.receiver.deliveries}) == 1


def test_a_ping_tells_whether_the_target_answers(ask: Hublet, watching: Watching) -> None:
    good = ask("webhooks", "ping", watching.id, "--json")
    ask("webhooks", "update", watching.id, "--url", "http://127.0.0.1:1/")
    bad = ask("webhooks", "ping", watching.id)

    assert good.code == 0
    assert good.json == {"deliveryId": good.json["deliveryId"], "status": 200}
    assert bad.code == 1
    assert re.fullmatch(r"The target did not answer \([a-z-]+\)\.\n", bad.err)


def test_what_was_not_sent_is_recovered(ask: Hublet, watching: Watching) -> None:
    ask("webhooks", "disable", watching.id)
    watching.happens("one", "two")
    watching.wait_for("unsent", "unsent")
    resting = ask("webhooks", "recover", watching.id, "--since", "1h")
    ask("webhooks", "enable", watching.id)

    none = ask("webhooks", "recover", watching.id, "--since", "2h", "--until", "1h")
    recovered = ask("webhooks", "recover", watching.id, "--since", "1h", "--json")
    watching.wait_for("delivered", "delivered")
    again = ask("webhooks", "recover", watching.id, "--since", "1h")

    assert resting.code == 1
    assert "enable it first" in resting.err
    assert none.err == "0 deliveries are sent again.\n"
    assert recovered.json == {"count": 2}
    assert again.err == "0 deliveries are sent again.\n"
    assert len(watching.receiver.deliveries) == 2


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["deliveries", NOBODY], id="deliveries"),
        pytest.param(["replay", NOBODY, NOBODY], id="replay"),
        pytest.param(["recover", NOBODY, "--since", "1h"], id="recover"),
        pytest.param(["ping", NOBODY], id="ping"),
        pytest.param(["enable", NOBODY], id="enable"),
        pytest.param(["disable", NOBODY], id="disable"),
        pytest.param(["update", NOBODY, "--domain", "repo"], id="update"),
        pytest.param(["delete", NOBODY, "-y"], id="delete"),
        pytest.param(["info", NOBODY], id="info"),
    ],
)
def test_an_unknown_webhook_is_told(ask: Hublet, arguments: list[str]) -> None:
    refused = ask("webhooks", *arguments)

    assert (refused.code, refused.out) == (1, "")
    assert refused.err == f"hublet: There is no webhook {NOBODY}.\n"


@pytest.mark.parametrize("when", ["yesterday", "-1h", "12", "2026-13-01"])
def test_a_moment_that_is_none_is_told(ask: Hublet, when: str) -> None:
    refused = ask("webhooks", "recover", NOBODY, f"--since={when}")

    assert refused.code == 2
    assert f"{when} is neither a time ago such as 90m, 12h, 30d or 8w nor a moment" in (
        " ".join(refused.err.split())
    )
