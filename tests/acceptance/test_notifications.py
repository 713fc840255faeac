"""Two people talk with the stock client; the right inboxes light up, and mail comes once."""

from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from huggingface_hub import HfApi

from hublet.testing import Hub, User

INBOX = "/api/notifications"
SETTINGS = "/api/settings/notifications"


@dataclass(frozen=True, slots=True, kw_only=True)
class Somebody:
    hub: Hub
    user: User

    @property
    def api(self) -> HfApi:
        return HfApi(endpoint=self.hub.url, token=self.user.token)

    def ask(self, method: str, path: str, **request: Any) -> Any:
        headers = {"Authorization": f"Bearer {self.user.token}"}
        answer = httpx2.request(
            method, f"{self.hub.url}{path}", headers=headers, trust_env=False, **request
        )
        assert answer.status_code == 200, answer.text
        return answer.json()

    def titles(self) -> list[str]:
        return [each["discussion"]["title"] for each in self.hub.inbox(self.user)]

    def counts(self) -> Any:
        self.hub.settle()
        return self.ask("GET", INBOX)["count"]


@pytest.fixture
def ada(hub: Hub) -> Somebody:
    return Somebody(hub=hub, user=hub.user("ada"))


@pytest.fixture
def grace(hub: Hub) -> Somebody:
    return Somebody(hub=hub, user=hub.user("grace"))


def test_two_people_talk_and_the_right_inboxes_light_up(
    hub: Hub, ada: Somebody, grace: Somebody
) -> None:
    ada.api.create_repo("ada/engine")
    opened = grace.api.create_discussion("ada/engine", title="It does not turn")
    assert ada.titles() == ["It does not turn"]
    assert grace.counts()["unread"] == 0

    ada.api.comment_discussion("ada/engine", opened.num, comment="Have you tried coal?")
    assert grace.titles() == ["It does not turn"]
    # Who wrote it knows of it; what came before is still unread.
    assert ada.counts()["unread"] == 1

    [item] = hub.inbox(grace.user, mention="participating")
    marked = {"discussionIds": [item["discussion"]["id"]]}
    assert grace.ask("POST", f"{INBOX}/mark-as-read", json=marked) == {"count": 1}
    assert grace.counts() == {"view": 1, "unread": 0, "all": 1}

    grace.api.change_discussion_status("ada/engine", opened.num, new_status="closed")
    assert hub.inbox(ada.user)[0]["discussion"]["status"] == "closed"
    assert [each["user"] for each in item["discussion"]["participating"]] == ["grace", "ada"]


def test_mail_comes_once_and_one_click_turns_off_that_one_kind(
    hub: Hub, ada: Somebody, grace: Somebody
) -> None:
    ada.api.create_repo("ada/engine")
    opened = grace.api.create_discussion("ada/engine", title="It does not turn")
    assert len(hub.mails(ada.user)) == 1
    ada.api.comment_discussion("ada/engine", opened.num, comment="Have you tried coal?")

    [mail] = hub.mails(grace.user)
    assert "Have you tried coal?" in mail.get_body(("plain",)).get_content()  # type: ignore[union-attr]
    assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    before = grace.ask("GET", SETTINGS)["notifications"]
    link = str(mail["List-Unsubscribe"]).strip("<>")
    # As a mail program sends it: without a token or a cookie.
    clicked = httpx2.post(link, data={"List-Unsubscribe": "One-Click"}, trust_env=False)
    after = grace.ask("GET", SETTINGS)["notifications"]

    assert clicked.status_code == 200
    assert {key for key in before if before[key] != after[key]} == {"discussions_participating"}
    ada.api.comment_discussion("ada/engine", opened.num, comment="Or steam?")
    # The inbox still tells, the mail does not; another kind still comes.
    assert hub.inbox(grace.user)[0]["read"] is False
    grace.api.comment_discussion("ada/engine", opened.num, comment="It turns!")
    assert len(hub.mails(ada.user)) == 2
    assert len(hub.mails(grace.user)) == 1
