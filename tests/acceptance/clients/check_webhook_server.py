"""The receiving server of the public client, told by the hub of what happens there.

It needs gradio, which `make` installs into an environment of its own: `test_webhooks.py` runs
this there, and the suites of the bare clients leave it out.
"""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from huggingface_hub import HfApi, WebhookPayload, WebhooksServer, WebhookWatchedItem, get_session

gradio = pytest.importorskip("gradio")

SECRET = "coal & steam"
BOTH = ["repo", "discussion"]


@dataclass
class Receiver:
    """A server that runs, and what its handler was told so far."""

    url: str = ""
    told: list[WebhookPayload] = field(default_factory=list)

    def of(self, scope: str, action: str) -> list[WebhookPayload]:
        return [
            each for each in self.told if (each.event.scope, each.event.action) == (scope, action)
        ]


@pytest.fixture(scope="module")
def running() -> Iterator[Receiver]:
    receiver = Receiver()
    server = WebhooksServer(webhook_secret=SECRET)

    @server.add_webhook("/told")
    async def told(payload: WebhookPayload) -> dict[str, bool]:
        receiver.told.append(payload)
        return {"understood": True}

    # Without `share=False` it would open a tunnel to the public.
    server.launch(prevent_thread_lock=True, share=False, quiet=True)
    [blocks] = gradio.Blocks.get_instances()
    receiver.url = f"{blocks.local_url}webhooks/told"
    yield receiver
    gradio.close_all()


@pytest.fixture
def receiver(running: Receiver) -> Receiver:
    running.told.clear()
    return running


@pytest.fixture
def watch(api: HfApi, receiver: Receiver, repo: str) -> Iterator[Callable[..., str]]:
    """Creates a webhook from the repository to the receiver, and returns its id."""
    created: list[str] = []

    def create(**options: Any) -> str:
        watched = [WebhookWatchedItem(type="model", name=repo)]
        options = {"watched": watched, "domains": BOTH} | options
        created.append(api.create_webhook(url=receiver.url, **options).id)
        return created[-1]

    yield create
    for webhook_id in created:
        api.delete_webhook(webhook_id)


def ask(method: str, path: str) -> Any:
    """Ask the hub what its public client cannot."""
    address = f"{os.environ['HF_ENDPOINT']}/api/settings/webhooks/{path}"
    headers = {"Authorization": f"Bearer {os.environ['HF_TOKEN']}"}
    return get_session().request(method, address, headers=headers).raise_for_status().json()


def tried(webhook_id: str, *, count: int) -> list[dict[str, Any]]:
    """Wait for so many deliveries with an answer, and return them, oldest first."""
    path = f"{webhook_id}/deliveries"
    deadline = time.monotonic() + 180
    while True:
        found = [each for each in ask("GET", path) if "status" in each]
        if len(found) >= count or time.monotonic() > deadline:
            assert len(found) == count, found
            return [ask("GET", f"{path}/{each['id']}") for each in reversed(found)]
        time.sleep(0.05)


def test_it_hears_of_a_push(
    api: HfApi, repo: str, receiver: Receiver, watch: Callable[..., str]
) -> None:
    webhook_id = watch(secret=SECRET)
    before = api.model_info(repo).sha

    pushed = api.upload_file(path_or_fileobj=b"coal", path_in_repo="coal.txt", repo_id=repo)

    [delivery] = tried(webhook_id, count=1)
    [heard] = receiver.told
    assert (heard.event.scope, heard.event.action) == ("repo.content", "update")
    assert (heard.repo.type, heard.repo.name, heard.repo.private) == ("model", repo, False)
    assert heard.updatedRefs is not None
    assert [(each.ref, each.oldSha, each.newSha) for each in heard.updatedRefs] == [
        ("refs/heads/main", before, pushed.oid)
    ]
    assert (heard.webhook.id, heard.webhook.version) == (webhook_id, 3)
    assert (delivery["state"], delivery["status"], delivery["attempts"]) == ("delivered", 200, 1)
    [attempt] = delivery["attemptLog"]
    assert attempt["response"] == '{"understood":true}'


def test_it_hears_of_a_discussion_and_a_comment(
    stranger: HfApi, repo: str, receiver: Receiver, watch: Callable[..., str]
) -> None:
    webhook_id = watch(secret=SECRET, domains=["discussion"])

    opened = stranger.create_discussion(repo, "It does not turn", description="Help!")
    stranger.comment_discussion(repo, opened.num, "It never did.")

    answers = [each["status"] for each in tried(webhook_id, count=2)]
    [discussion] = receiver.of("discussion", "create")
    [comment] = receiver.of("discussion.comment", "create")
    assert answers == [200, 200]
    assert discussion.discussion is not None
    assert discussion.discussion.title == "It does not turn"
    assert (discussion.discussion.num, discussion.discussion.isPullRequest) == (1, False)
    assert discussion.comment is not None
    assert discussion.comment.content == "Help!"
    assert comment.discussion is not None
    assert comment.discussion.url.web == opened.url
    assert comment.comment is not None
    assert comment.comment.content == "It never did."


def test_it_hears_of_a_merge(
    api: HfApi, stranger: HfApi, repo: str, receiver: Receiver, watch: Callable[..., str]
) -> None:
    webhook_id = watch(secret=SECRET)
    opened = stranger.create_pull_request(repo, "Add coal")
    revision = "refs/pr/1"
    api.upload_file(
        path_or_fileobj=b"coal", path_in_repo="coal.txt", repo_id=repo, revision=revision
    )

    api.merge_pull_request(repo, opened.num)

    # Opened: the request and its branch. Pushed to: the branch. Merged: the request and main.
    deliveries = tried(webhook_id, count=5)
    merged = api.model_info(repo).sha
    assert {each["status"] for each in deliveries} == {200}
    [discussion] = receiver.of("discussion", "update")
    assert discussion.discussion is not None
    assert (discussion.discussion.status, discussion.discussion.isPullRequest) == ("merged", True)
    assert discussion.discussion.changes is not None
    assert discussion.discussion.changes.base == "refs/heads/main"
    assert discussion.discussion.changes.mergeCommitId == merged
    assert sorted(refs_of(receiver.of("repo.content", "update"))) == [
        "refs/heads/main",
        revision,
        revision,
    ]


def refs_of(payloads: list[WebhookPayload]) -> list[str]:
    return [each.ref for payload in payloads for each in payload.updatedRefs or ()]


@pytest.mark.parametrize(
    ("secret", "status", "sentence"),
    [
        pytest.param("soot", 403, "Invalid webhook secret.", id="a wrong secret"),
        pytest.param(None, 401, "x-webhook-secret header not set.", id="no secret"),
    ],
)
def test_its_refusal_is_kept(
    receiver: Receiver, pushed_with: Callable[..., str], secret: str, status: int, sentence: str
) -> None:
    webhook_id = pushed_with(secret=secret)

    [delivery] = tried(webhook_id, count=1)
    assert (delivery["state"], delivery["status"]) == ("pending", status)
    assert delivery["attemptLog"][0]["response"] == f'{{"error":"{sentence}"}}'
    assert delivery["attemptLog"][0]["detail"] == (
        f"The target refused with {status}: the secret it expects may be another one."
    )
    assert receiver.told == []


@pytest.fixture
def pushed_with(api: HfApi, repo: str, watch: Callable[..., str]) -> Callable[..., str]:
    """Creates a webhook and pushes something; returns the webhook's id."""

    def push(**options: Any) -> str:
        webhook_id = watch(**options)
        api.upload_file(path_or_fileobj=b"coal", path_in_repo="coal.txt", repo_id=repo)
        return webhook_id

    return push


def test_what_it_does_not_know_is_said_so(api: HfApi, watch: Callable[..., str]) -> None:
    webhook_id = watch(secret=SECRET, watched=[WebhookWatchedItem(type="user", name="ada")])

    api.create_bucket("ada/coal-cellar")

    [delivery] = tried(webhook_id, count=1)
    assert (delivery["event"]["repo"]["type"], delivery["status"]) == ("bucket", 422)
    assert delivery["attemptLog"][0]["detail"] == (
        "The target refused with 422: old receivers know only models, datasets and spaces, "
        "and this is about a bucket."
    )
    api.delete_bucket("ada/coal-cellar")


def test_a_ping_and_a_replay_reach_it(
    api: HfApi, receiver: Receiver, watch: Callable[..., str]
) -> None:
    webhook_id = watch(secret="soot")
    refused = ask("POST", f"{webhook_id}/ping")

    api.update_webhook(webhook_id, secret=SECRET)
    replayed = ask("POST", f"{webhook_id}/replay/{refused['deliveryId']}")

    assert refused == {"deliveryId": refused["deliveryId"], "status": 403}
    assert replayed == {"deliveryId": refused["deliveryId"], "status": 200}
    assert [each.event.scope for each in receiver.told] == ["ping"]
