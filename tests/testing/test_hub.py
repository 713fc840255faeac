"""What a test has in its hands: people, tokens, webhooks, inboxes, mails."""

import httpx2
import pytest
from huggingface_hub import HfApi

from hublet.testing import Hub, HubletTestingError, Receiver, Refused, WaitedInVain


def whoami(hub: Hub, token: str) -> httpx2.Response:
    headers = {"Authorization": f"Bearer {token}"}
    return httpx2.get(f"{hub.url}/api/whoami-v2", headers=headers, trust_env=False)


def watch(hub: Hub, api: HfApi, receiver: Receiver) -> str:
    """Let a webhook watch all that the caller has; return its id."""
    watched = {"type": "user", "name": api.whoami()["name"]}
    return api.create_webhook(url=receiver.url, watched=[watched], domains=["repo"]).id


def test_a_user_has_a_name_an_address_and_a_token_that_writes(hub: Hub) -> None:
    ada = hub.user("ada", fullname="Ada Lovelace")

    told = whoami(hub, ada.token).json()
    assert (ada.name, ada.email) == ("ada", "ada@example.com")
    assert (told["name"], told["fullname"], told["email"]) == ("ada", "Ada Lovelace", ada.email)
    assert told["auth"]["accessToken"]["role"] == "write"
    assert ada.token not in repr(ada)


def test_the_administrator_is_always_there(hub: Hub) -> None:
    assert whoami(hub, hub.admin.token).json()["name"] == hub.admin.name == "admin"


def test_an_organization_has_a_plan_and_members_by_role(hub: Hub) -> None:
    ada, grace = hub.user("ada"), hub.user("grace")

    acme = hub.organization("acme", owner=ada, plan="enterprise", members={"read": [grace]})

    roles = {
        user.name: [
            (org["name"], org["roleInOrg"], org["plan"])
            for org in whoami(hub, user.token).json()["orgs"]
        ]
        for user in (ada, grace)
    }
    assert (acme.name, acme.plan) == ("acme", "enterprise")
    assert roles == {
        "ada": [("acme", "admin", "enterprise")],
        "grace": [("acme", "read", "enterprise")],
    }


@pytest.mark.parametrize(
    ("given", "role"),
    [
        pytest.param({}, "read", id="reads when nothing is said"),
        pytest.param({"role": "write"}, "write", id="writes when that is said"),
        pytest.param({"scopes": ["webhooks"]}, "fineGrained", id="has the scopes that are said"),
        pytest.param({"value": "hf_of_my_own"}, "read", id="has the value that is said"),
    ],
)
def test_a_token_is_issued_in_one_line(hub: Hub, given: dict[str, str], role: str) -> None:
    token = hub.token(hub.user("ada"), **given)  # type: ignore[arg-type]

    told = whoami(hub, token).json()["auth"]["accessToken"]
    assert told["role"] == role
    assert token == given.get("value", token)


def test_a_token_ends_when_its_time_has_come(hub: Hub) -> None:
    ada = hub.user("ada")
    token = hub.token(ada, expires_at=hub.clock.now().replace(year=2100))
    assert whoami(hub, token).status_code == 200

    hub.clock.set(hub.clock.now().replace(year=2100))

    assert whoami(hub, token).status_code == 401


def test_what_the_hub_refuses_is_told(hub: Hub) -> None:
    hub.user("ada")

    with pytest.raises(Refused, match=r"409: .*ada.* taken") as refused:
        hub.user("ada")

    assert refused.value.status == 409


def test_a_delivery_is_waited_for_by_webhook_and_kind(hub: Hub, receiver: Receiver) -> None:
    api = HfApi(endpoint=hub.url, token=hub.user("ada").token)
    webhook = watch(hub, api, receiver)
    api.create_repo("ada/engine")
    api.upload_file(path_or_fileobj=b"coal", path_in_repo="coal.txt", repo_id="ada/engine")

    [delivery] = hub.webhooks.wait_for(webhook, action="create")

    assert delivery["event"]["repo"] == {"type": "model", "name": "ada/engine"}
    assert delivery["payload"]["webhook"] == {"id": webhook, "version": 3}
    assert delivery["attemptLog"][0]["status"] == 200
    assert hub.webhooks.wait_for(receiver.url, scope="repo.content")[0]["state"] == "delivered"
    assert {each["id"] for each in hub.webhooks.wait_for(count=2)} == {
        each["id"] for each in hub.webhooks.deliveries(webhook) if each["state"] == "delivered"
    }
    assert hub.webhooks.deliveries("f" * 24) == []


def test_a_wait_in_vain_tells_what_there_is_instead(hub: Hub, receiver: Receiver) -> None:
    api = HfApi(endpoint=hub.url, token=hub.user("ada").token)
    receiver.answer_with(500)
    webhook = watch(hub, api, receiver)
    api.create_repo("ada/engine")
    hub.settle()

    with pytest.raises(WaitedInVain) as failed:
        hub.webhooks.wait_for(webhook, action="create", timeout=0.1)

    assert str(failed.value) == (
        "Waited 0.1 seconds for 1 deliveries (state delivered, action create) of "
        f"{webhook}. There are: 1 of pending repo create after 1 attempts."
    )
    assert hub.webhooks.wait_for(webhook, state=None)[0]["attempts"] == 1


def test_an_inbox_is_complete_when_it_is_read(hub: Hub) -> None:
    ada, grace = hub.user("ada"), hub.user("grace")
    HfApi(endpoint=hub.url, token=ada.token).create_repo("ada/engine")
    HfApi(endpoint=hub.url, token=grace.token).create_discussion("ada/engine", title="No steam")

    [item] = hub.inbox(ada)

    assert (item["type"], item["read"]) == ("repo", False)
    assert item["discussion"]["title"] == "No steam"
    assert hub.inbox(ada, mention="participating") == []
    assert hub.inbox(grace) == []


def test_mails_are_there_when_they_are_read(hub: Hub) -> None:
    ada, grace = hub.user("ada"), hub.user("grace")
    HfApi(endpoint=hub.url, token=ada.token).create_repo("ada/engine")
    HfApi(endpoint=hub.url, token=grace.token).create_discussion("ada/engine", title="No steam")

    [mail] = hub.mails(ada)

    assert "No steam" in str(mail["Subject"])
    assert hub.mails(grace) == []


def test_a_hub_that_cannot_rest_is_told_of(hub: Hub) -> None:
    with pytest.raises(HubletTestingError, match="still busy after 0 seconds"):
        hub.settle(timeout=0)
