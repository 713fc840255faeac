"""What the hub tells about webhooks that fail."""

from datetime import timedelta

import pytest

from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import OPERATOR, Role
from hublet.core import clock
from hublet.core.database import Database
from hublet.core.ids import new_object_id
from hublet.events import WebhookFailing, WebhookRecovered, WebhookSuspended, WebhookThrottled
from hublet.notifications.mail import mail_queue
from notifications.hub_messages import NO_MAIL, MailRecorder, ReceivedMessage, publish_events
from people import a_user, an_organization
from repositories import disable

WEBHOOK = new_object_id()
# Every message ends with the address of the page where it is mended.
PAGE = f"http://hub.test/settings/webhooks/{WEBHOOK}"


@pytest.fixture
def mails(monkeypatch: pytest.MonkeyPatch) -> MailRecorder:
    mails = MailRecorder()
    monkeypatch.setattr(mail_queue, "queue_message_mail", mails.mail_of_message)
    return mails


async def failing(
    database: Database,
    percent: int = 50,
    *,
    owner: str | None = None,
    creator: str = "ada",
    status: int | None = 500,
    reason: str | None = None,
) -> WebhookFailing:
    creator_id = (await a_user(database, creator)).id
    return WebhookFailing(
        webhook_id=WEBHOOK,
        owner_id=owner or creator_id,
        creator_id=creator_id,
        percent=percent,
        status=status,
        reason=reason,
    )


async def suspended(database: Database, **changes: int | str | None) -> WebhookSuspended:
    ada = await a_user(database, "ada")
    whose = {"webhook_id": WEBHOOK, "owner_id": ada.id, "creator_id": ada.id}
    return WebhookSuspended(**(whose | {"status": None, "reason": "timeout"} | changes))  # type: ignore[arg-type]


async def recovered(database: Database) -> WebhookRecovered:
    ada = await a_user(database, "ada")
    return WebhookRecovered(webhook_id=WEBHOOK, owner_id=ada.id, creator_id=ada.id)


async def test_that_it_begins_to_fail_is_said_in_the_inbox_only(
    database: Database, mails: MailRecorder
) -> None:
    await publish_events(database, await failing(database, 0))

    assert await mails.received(database, "ada") == [
        ReceivedMessage(
            kind="webhook-failing",
            title=f"The webhook {WEBHOOK} of ada fails",
            body="The last deliveries of this webhook failed. "
            "The last answer had the status 500.\n\n"
            "Its target is now only probed from time to time; what could not be delivered is "
            "sent when it answers again.\n\n"
            f"{PAGE}",
            mail=NO_MAIL,
        )
    ]


@pytest.mark.parametrize("percent", [50, 90])
async def test_on_the_way_to_the_suspension_there_is_a_mail_that_cannot_be_turned_off(
    database: Database, mails: MailRecorder, percent: int
) -> None:
    await publish_events(
        database, await failing(database, percent, status=None, reason="dns-failed")
    )

    assert await mails.received(database, "ada") == [
        ReceivedMessage(
            kind="webhook-failing",
            title=f"The webhook {WEBHOOK} of ada keeps failing and will be suspended",
            body="No delivery of this webhook has succeeded for days. "
            "The last attempt ended with: dns-failed.\n\n"
            f"{percent} percent of the time are over after which it is suspended. "
            "Look at its deliveries for what its target answers.\n\n"
            f"{PAGE}",
        )
    ]


async def test_the_suspension_is_told_by_inbox_and_mail(
    database: Database, mails: MailRecorder
) -> None:
    await publish_events(database, await suspended(database))

    assert await mails.received(database, "ada") == [
        ReceivedMessage(
            kind="webhook-suspended",
            title=f"The webhook {WEBHOOK} of ada is suspended",
            body="Its deliveries failed until it was switched off. "
            "The last attempt ended with: timeout.\n\n"
            "What it would have delivered is still recorded. Enable the webhook once its target "
            "answers again, and recover what was missed.\n\n"
            f"{PAGE}",
        )
    ]


async def test_the_daily_limit_is_told_by_inbox_and_mail(
    database: Database, mails: MailRecorder
) -> None:
    ada = await a_user(database, "ada")
    throttled = WebhookThrottled(webhook_id=WEBHOOK, owner_id=ada.id, creator_id=ada.id, limit=50)
    await publish_events(database, throttled)

    assert await mails.received(database, "ada") == [
        ReceivedMessage(
            kind="webhook-throttled",
            title=f"The webhook {WEBHOOK} of ada has reached its daily limit",
            body="It had 50 deliveries in 24 hours, as many as this hub allows. Until they are over, "
            "what it matches is recorded and not sent.\n\n"
            "Recover what was missed, or let the webhook watch less.\n\n"
            f"{PAGE}",
        )
    ]


async def test_that_it_works_again_is_said_in_the_inbox_only(
    database: Database, mails: MailRecorder
) -> None:
    await publish_events(database, await recovered(database))

    assert await mails.received(database, "ada") == [
        ReceivedMessage(
            kind="webhook-recovered",
            title=f"The webhook {WEBHOOK} of ada works again",
            body=f"Its target answers, and what waited is being delivered.\n\n{PAGE}",
            mail=NO_MAIL,
        )
    ]


async def test_a_target_that_comes_and_goes_is_not_told_of_all_day(
    database: Database, mails: MailRecorder
) -> None:
    for _ in range(3):
        await publish_events(database, await failing(database, 0), await recovered(database))
    titles = await mails.titles(database, "ada")
    clock.move(timedelta(days=1, seconds=1))
    await publish_events(database, await failing(database, 0))

    fails, works = (
        f"The webhook {WEBHOOK} of ada fails",
        f"The webhook {WEBHOOK} of ada works again",
    )
    assert titles == [fails, works]
    assert await mails.titles(database, "ada") == [fails, works, fails]


async def test_of_an_organizations_webhook_its_administrators_are_notified_and_its_creator(
    database: Database, mails: MailRecorder
) -> None:
    engines = await an_organization(
        database,
        "engines",
        members={"ada": Role.write, "bob": Role.admin, "eve": Role.admin, "tom": Role.write},
    )
    await disable(database, "eve")
    await publish_events(database, await failing(database, owner=engines.id))

    received = {
        name: await mails.titles(database, name, "webhook") for name in ("ada", "bob", "eve", "tom")
    }
    title = f"The webhook {WEBHOOK} of engines keeps failing and will be suspended"
    assert received == {"ada": [title], "bob": [title], "eve": [], "tom": []}
    [told] = [each for each in await mails.received(database, "bob") if each.title == title]
    assert told.body.endswith(f"http://hub.test/organizations/engines/settings/webhooks/{WEBHOOK}")


async def test_a_creator_who_left_the_organization_receives_nothing(
    database: Database, mails: MailRecorder
) -> None:
    engines = await an_organization(
        database, "engines", members={"ada": Role.write, "bob": Role.admin}
    )
    ada = await a_user(database, "ada")
    async with database.transaction() as conn:
        await organizations.remove_member(conn, OPERATOR, engines, ada)
    await publish_events(database, await failing(database, owner=engines.id))

    assert await mails.titles(database, "ada", "webhook") == []
    assert len(await mails.titles(database, "bob", "webhook")) == 1
