"""Two people talk with the stock client; the right inboxes light up, and mail comes once."""

import email
import email.policy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import httpx2
from huggingface_hub import HfApi

from processes import Place, Server, run_hublet, serving, wait_until

PATIENCE_SECONDS = 30.0
INBOX = "/api/notifications"
SETTINGS = "/api/settings/notifications"
# Mails wait for nothing that may follow.
AT_ONCE = {"HUBLET_MAIL_DELAY_SECONDS": "0"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Somebody:
    api: HfApi
    http: httpx2.Client
    address: str

    def inbox(self, **filters: str) -> Any:
        response = self.http.get(INBOX, params=filters)
        assert response.status_code == 200, response.text
        return response.json()

    def titles(self) -> list[str]:
        return [each["discussion"]["title"] for each in self.inbox()["notifications"]]

    def unread(self) -> int:
        count: int = self.inbox()["count"]["unread"]
        return count


@contextmanager
def two_people(place: Place, hub: Server) -> Iterator[tuple[Somebody, Somebody]]:
    with somebody(place, hub, "ada") as ada, somebody(place, hub, "grace") as grace:
        yield ada, grace


@contextmanager
def somebody(place: Place, hub: Server, name: str) -> Iterator[Somebody]:
    address = f"{name}@example.com"
    run(place, "user", "add", name, "--email", address)
    token = run(place, "token", "create", name, "--role", "write").strip()
    with hub.client(token) as http:
        yield Somebody(api=HfApi(endpoint=hub.address, token=token), http=http, address=address)


def run(place: Place, *command: str) -> str:
    ended = run_hublet(*command, *place.flags, folder=place.folder)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def mails_to(place: Place, somebody: Somebody) -> list[EmailMessage]:
    """Return the mails that lie in the folder for somebody, oldest first."""
    found = [_mail(path) for path in sorted((place.data_dir / "mail").glob("*.eml"))]
    return [mail for mail in found if somebody.address in str(mail["To"])]


def _mail(path: Path) -> EmailMessage:
    parsed = email.message_from_bytes(path.read_bytes(), policy=email.policy.default)
    assert isinstance(parsed, EmailMessage)
    return parsed


def wait_for(is_so: Any) -> None:
    wait_until(is_so, seconds=PATIENCE_SECONDS)


def test_two_people_talk_and_the_right_inboxes_light_up(place: Place) -> None:
    with (
        serving(place, "--test-mode", variables=AT_ONCE) as hub,
        two_people(place, hub) as (ada, grace),
    ):
        ada.api.create_repo("ada/engine")
        opened = grace.api.create_discussion("ada/engine", title="It does not turn")
        wait_for(lambda: ada.titles() == ["It does not turn"])
        assert grace.unread() == 0

        ada.api.comment_discussion("ada/engine", opened.num, comment="Have you tried coal?")
        wait_for(lambda: grace.titles() == ["It does not turn"])
        # Who wrote it knows of it; what came before is still unread.
        assert ada.unread() == 1

        [item] = grace.inbox(mention="participating")["notifications"]
        marked = grace.http.post(
            f"{INBOX}/mark-as-read", json={"discussionIds": [item["discussion"]["id"]]}
        )
        assert marked.json() == {"count": 1}
        assert grace.inbox()["count"] == {"view": 1, "unread": 0, "all": 1}

        grace.api.change_discussion_status("ada/engine", opened.num, new_status="closed")
        wait_for(lambda: ada.inbox()["notifications"][0]["discussion"]["status"] == "closed")
        assert [each["user"] for each in item["discussion"]["participating"]] == ["grace", "ada"]


def test_mail_comes_once_and_one_click_turns_off_that_one_kind(place: Place) -> None:
    with (
        serving(place, "--test-mode", variables=AT_ONCE) as hub,
        two_people(place, hub) as (ada, grace),
    ):
        ada.api.create_repo("ada/engine")
        opened = grace.api.create_discussion("ada/engine", title="It does not turn")
        wait_for(lambda: len(mails_to(place, ada)) == 1)
        ada.api.comment_discussion("ada/engine", opened.num, comment="Have you tried coal?")
        wait_for(lambda: len(mails_to(place, grace)) == 1)

        [mail] = mails_to(place, grace)
        assert "Have you tried coal?" in mail.get_body(("plain",)).get_content()  # type: ignore[union-attr]
        assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
        before = grace.http.get(SETTINGS).json()["notifications"]
        link = str(mail["List-Unsubscribe"]).strip("<>")
        # As a mail program sends it: without a token or a cookie.
        clicked = httpx2.post(link, data={"List-Unsubscribe": "One-Click"}, trust_env=False)
        after = grace.http.get(SETTINGS).json()["notifications"]

        assert clicked.status_code == 200
        assert {key for key in before if before[key] != after[key]} == {"discussions_participating"}
        ada.api.comment_discussion("ada/engine", opened.num, comment="Or steam?")
        # The inbox still tells; the mail to nobody is proven by the one that came for another.
        wait_for(lambda: grace.inbox()["notifications"][0]["read"] is False)
        grace.api.comment_discussion("ada/engine", opened.num, comment="It turns!")
        wait_for(lambda: len(mails_to(place, ada)) == 2)
        assert len(mails_to(place, grace)) == 1
