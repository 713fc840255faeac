"""What happens when somebody pushes."""

import httpx2
from huggingface_hub import HfApi
from licence_bot.webhook import TITLE

from conftest import App
from hublet.testing import Hub, User

WITHOUT = b"---\ntags: [steam]\n---\n# Engine\n"
WITH = b"---\nlicense: mit\n---\n# Engine\n"


def push(api: HfApi, card: bytes) -> None:
    api.create_repo("ada/engine", exist_ok=True)
    api.upload_file(path_or_fileobj=card, path_in_repo="README.md", repo_id="ada/engine")


def test_a_card_without_a_licence_is_asked_for_one(hub: Hub, api: HfApi, ada: User) -> None:
    push(api, WITHOUT)

    hub.webhooks.wait_for(scope="repo.content", action="update")
    [asked] = api.get_repo_discussions("ada/engine")
    assert (asked.title, asked.author) == (TITLE, "licence-bot")
    # And the owner hears of it.
    [item] = hub.inbox(ada)
    assert item["discussion"]["title"] == TITLE


def test_a_card_with_a_licence_is_left_alone(hub: Hub, api: HfApi, ada: User) -> None:
    push(api, WITH)

    hub.webhooks.wait_for(scope="repo.content", action="update")
    assert list(api.get_repo_discussions("ada/engine")) == []
    assert hub.inbox(ada) == []


def test_nobody_is_asked_twice(hub: Hub, api: HfApi) -> None:
    push(api, WITHOUT)
    push(api, WITHOUT + b"\nIt turns.\n")

    hub.webhooks.wait_for(scope="repo.content", action="update", count=2)
    assert len(list(api.get_repo_discussions("ada/engine"))) == 1


def test_when_the_hub_stumbles_the_question_comes_later(hub: Hub, api: HfApi) -> None:
    hub.fail_next(500, method="POST", path="*/discussions")
    push(api, WITHOUT)
    [failed] = hub.webhooks.wait_for(scope="repo.content", state="pending")
    hub.settle()

    # Hours of retries pass in no time.
    hub.clock.forward(hours=1)

    [delivery] = hub.webhooks.wait_for(scope="repo.content", action="update")
    assert delivery["id"] == failed["id"]
    assert [each["status"] for each in delivery["attemptLog"]] == [500, 200]
    assert [each.title for each in api.get_repo_discussions("ada/engine")] == [TITLE]


def test_a_dataset_is_none_of_its_business(hub: Hub, api: HfApi) -> None:
    # Beside a model of the same name, which nobody pushed to.
    api.create_repo("ada/engine")
    api.create_repo("ada/engine", repo_type="dataset")
    api.upload_file(
        path_or_fileobj=WITHOUT,
        path_in_repo="README.md",
        repo_id="ada/engine",
        repo_type="dataset",
    )

    [delivery] = hub.webhooks.wait_for(scope="repo.content", action="update")
    assert [each["status"] for each in delivery["attemptLog"]] == [200]
    assert list(api.get_repo_discussions("ada/engine")) == []


def test_a_model_that_the_bot_may_not_see_is_left_alone(hub: Hub, api: HfApi) -> None:
    api.create_repo("ada/engine", private=True)
    push(api, WITHOUT)

    [delivery] = hub.webhooks.wait_for(scope="repo.content", action="update")
    assert [each["status"] for each in delivery["attemptLog"]] == [200]
    assert list(api.get_repo_discussions("ada/engine")) == []


def test_a_card_that_cannot_be_read_is_not_taken_for_one_without(hub: Hub, api: HfApi) -> None:
    push(api, WITH)
    hub.webhooks.wait_for(scope="repo.content", action="update")
    hub.fail_next(500, method="GET", path="/api/models/ada/engine")
    push(api, WITH + b"\nIt turns.\n")
    hub.webhooks.wait_for(scope="repo.content", state="pending")
    hub.settle()

    hub.clock.forward(hours=1)

    hub.webhooks.wait_for(scope="repo.content", action="update", count=2)
    assert list(api.get_repo_discussions("ada/engine")) == []


def test_only_the_hub_knows_the_secret(app: App) -> None:
    payload = {"event": {"action": "update", "scope": "repo.content"}, "repo": {"name": "a/b"}}

    answer = httpx2.post(f"{app.url}/webhook", json=payload, headers={"X-Webhook-Secret": "guess"})

    assert answer.status_code == 403
