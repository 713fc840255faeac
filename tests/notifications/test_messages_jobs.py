"""What the hub tells about jobs that ended."""

import pytest

from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import OPERATOR, Role
from hublet.core.database import Database
from hublet.events import JobEnded
from hublet.notifications.mail import mail_queue
from hublet.notifications.preferences.switches import PreferenceKey
from notifications.hub_messages import MailRecorder, ReceivedMessage, publish_events
from people import a_user, an_organization
from workers import drain

JOB = "0123456789abcdef01234567"
PAGE = f"http://hub.test/jobs/ada/{JOB}"


@pytest.fixture
def mails(monkeypatch: pytest.MonkeyPatch) -> MailRecorder:
    mails = MailRecorder()
    monkeypatch.setattr(mail_queue, "queue_message_mail", mails.mail_of_message)
    return mails


async def ended(
    database: Database,
    stage: str = "ERROR",
    message: str | None = "exit code 1",
    *,
    name: str | None = None,
    owner_id: str | None = None,
) -> None:
    """Let a job of ada's end; name only what the test is about."""
    ada = await a_user(database, "ada")
    event = JobEnded(
        job_id=JOB,
        owner_id=owner_id or ada.id,
        creator_id=ada.id,
        name=name,
        stage=stage,
        message=message,
    )
    await publish_events(database, event)


async def test_whoever_ran_a_job_is_told_that_it_failed_and_why(
    database: Database, mails: MailRecorder
) -> None:
    await ended(database)

    title = f"The job {JOB} of ada failed"
    body = f"{title}.\n\nThe reason: exit code 1.\n\n{PAGE}"
    assert await mails.received(database, "ada") == [
        ReceivedMessage(kind="job-ended", title=title, body=body, mail=PreferenceKey.job_status)
    ]


async def test_a_job_that_is_done_is_told_by_its_name(
    database: Database, mails: MailRecorder
) -> None:
    await ended(database, stage="COMPLETED", message=None, name="train")

    title = f"The job train ({JOB}) of ada is done"
    assert await mails.received(database, "ada") == [
        ReceivedMessage(
            kind="job-ended",
            title=title,
            body=f"{title}.\n\n{PAGE}",
            mail=PreferenceKey.job_status,
        )
    ]


@pytest.mark.parametrize("stage", ["CANCELED", "DELETED"])
async def test_what_somebody_ended_themselves_is_not_told(
    database: Database, mails: MailRecorder, stage: str
) -> None:
    await ended(database, stage=stage)

    assert await mails.received(database, "ada") == []


async def test_of_an_organizations_job_its_creator_is_notified_while_they_are_a_member(
    database: Database, mails: MailRecorder
) -> None:
    members = {"ada": Role.write, "bob": Role.admin}
    engines = await an_organization(database, "engines", members=members)
    await drain(database)
    before = await mails.received(database, "ada")
    await ended(database, owner_id=engines.id)
    messages = await mails.received(database, "ada")
    assert [each.title for each in messages[len(before) :]] == [f"The job {JOB} of engines failed"]
    others = await mails.received(database, "bob")
    assert [each.kind for each in others if each.kind == "job-ended"] == []

    ada = await a_user(database, "ada")
    async with database.transaction() as conn:
        await organizations.remove_member(conn, OPERATOR, engines, ada)
    await ended(database, owner_id=engines.id)
    assert await mails.received(database, "ada") == messages
