"""Webhooks through the public client and its command, by url and by job."""

import json
from collections.abc import Iterator

import huggingface_hub
import pytest
from check_command import hf
from huggingface_hub import HfApi, WebhookInfo, WebhookWatchedItem
from huggingface_hub.errors import BadRequestError, HfHubHTTPError

URL = "https://example.com/hook"
# The word of each client for the same domain; the other one is refused by the client itself.
DISCUSSION = "discussions" if huggingface_hub.__version__.startswith("2.1.") else "discussion"
# Client contract 1.2: the older client sends no domains unless it is given some.
BOTH = ["repo", DISCUSSION]
ADA = [{"type": "user", "name": "ada"}]


@pytest.fixture(autouse=True)
def no_webhooks_left(api: HfApi) -> Iterator[None]:
    yield
    for webhook in api.list_webhooks():
        api.delete_webhook(webhook.id)


@pytest.fixture
def job_id(api: HfApi) -> str:
    """A job of the same owner, which a webhook may start again."""
    return api.run_job(image="ubuntu", command=["true"]).id


def watched(webhook: WebhookInfo) -> list[str]:
    return [f"{each.type}:{each.name}" for each in webhook.watched]


def test_a_webhook_from_its_creation_to_its_end(api: HfApi, stranger: HfApi, repo: str) -> None:
    created = api.create_webhook(url=URL, watched=ADA, domains=BOTH, secret="not-told-again")
    typed = api.create_webhook(
        url=f"{URL}/2",
        watched=[WebhookWatchedItem(type="model", name=repo)],
        domains=["repo"],
    )

    assert (created.url, created.job, created.secret) == (URL, None, None)
    assert (created.domains, created.disabled) == (["repo", "discussion"], False)
    assert (typed.domains, watched(typed)) == (["repo"], [f"model:{repo}"])
    assert api.list_webhooks() == [created, typed]
    assert api.get_webhook(typed.id) == typed
    assert stranger.list_webhooks() == []
    with pytest.raises(HfHubHTTPError) as refused:
        stranger.get_webhook(typed.id)
    assert refused.value.response.status_code == 404

    updated = api.update_webhook(typed.id, url=f"{URL}/3")
    assert (updated.url, watched(updated)) == (f"{URL}/3", [f"model:{repo}"])
    assert api.update_webhook(typed.id, secret="other") == updated
    assert api.update_webhook(typed.id, watched=[{"type": "org", "name": "analytical"}]).watched
    assert watched(api.get_webhook(typed.id)) == ["org:analytical"]

    assert api.disable_webhook(typed.id).disabled is True
    assert api.get_webhook(typed.id).disabled is True
    assert api.enable_webhook(typed.id).disabled is False
    api.delete_webhook(typed.id)
    with pytest.raises(HfHubHTTPError) as gone:
        api.get_webhook(typed.id)
    assert gone.value.response.status_code == 404
    assert api.list_webhooks() == [created]


def test_a_webhook_that_starts_a_job(api: HfApi, job_id: str) -> None:
    created = api.create_webhook(
        job_id=job_id,
        watched=ADA,
        domains=BOTH,
        secrets={"KEEP": "1", "DROP": "2"},
    )
    updated = api.update_webhook(created.id, job_id=job_id, secrets={"DROP": "", "NEW": "3"})

    assert created.url is None
    assert updated == created == api.get_webhook(created.id)
    assert api.update_webhook(created.id, url=URL).url == URL


def test_what_is_wrong_is_told_in_a_sentence(api: HfApi) -> None:
    with pytest.raises(BadRequestError, match="which this hub does not call"):
        api.create_webhook(url="http://169.254.169.254/", watched=ADA, domains=BOTH)
    with pytest.raises(BadRequestError, match="watched must have at least 1 item"):
        api.create_webhook(url=URL, watched=[], domains=BOTH)
    missing = [{"type": "model", "name": "ada/nothing"}]
    with pytest.raises(HfHubHTTPError, match=r"watched\[0\]: there is no model ada/nothing"):
        api.create_webhook(url=URL, watched=missing, domains=BOTH)


def created_by_command(*arguments: str) -> str:
    """Create a webhook that watches ada, and return its id."""
    webhook_id: str = json.loads(
        hf("webhooks", "create", "--watch", "user:ada", *arguments, "--json")
    )["id"]
    return webhook_id


def listed_by_command() -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(hf("webhooks", "ls", "--json"))
    return found


def test_the_command_from_a_webhooks_creation_to_its_end(api: HfApi, repo: str) -> None:
    webhook_id = created_by_command("--url", URL, "--domain", DISCUSSION, "--secret", "s")

    assert listed_by_command() == [
        {
            "id": webhook_id,
            "url": URL,
            "disabled": False,
            "domains": ["discussion"],
            "watched": ["user:ada"],
        }
    ]
    assert hf("webhooks", "ls", "-q").strip() == webhook_id
    shown = json.loads(hf("webhooks", "info", webhook_id, "--json"))
    assert (shown["id"], shown["url"], shown["domains"]) == (webhook_id, URL, ["discussion"])

    hf("webhooks", "update", webhook_id, "--url", f"{URL}/2", "--watch", f"model:{repo}")
    hf("webhooks", "disable", webhook_id)
    [disabled] = listed_by_command()
    hf("webhooks", "enable", webhook_id)
    [enabled] = listed_by_command()
    assert (disabled["disabled"], enabled["disabled"]) == (True, False)
    assert (enabled["url"], enabled["watched"]) == (f"{URL}/2", [f"model:{repo}"])

    hf("webhooks", "delete", webhook_id, "-y")
    assert listed_by_command() == []
    assert f"There is no webhook {webhook_id}." in hf("webhooks", "info", webhook_id, fails=True)


def test_the_command_for_a_webhook_that_starts_a_job(api: HfApi, job_id: str) -> None:
    webhook_id = created_by_command("--job-id", job_id, "--secrets", "KEY=v", "--domain", "repo")
    hf("webhooks", "update", webhook_id, "--job-id", job_id, "--secrets", "OTHER=w")

    [listed] = listed_by_command()

    assert (listed["id"], listed["url"], listed["domains"]) == (webhook_id, "(job)", ["repo"])
