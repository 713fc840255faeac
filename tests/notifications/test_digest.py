"""The daily digest of papers."""

from datetime import UTC, datetime, time, timedelta
from typing import Any

import httpx2
import pytest

from hublet.core import clock
from hublet.core.database import Database
from hublet.notifications.mail import digest
from mail_servers import texts_of
from notifications.mailbox import (
    SIGNATURE,
    letters,
    recipients,
    set_mail,
    waiting,
    with_address,
    without_tokens,
)
from people import Headers, a_user, sign_in
from workers import drain

SETTINGS = "/api/settings/notifications"
DAY = timedelta(days=1)


def move_to(hour: int, *, days: int = 0) -> None:
    """Move the clock to this hour of today, or of a later day."""
    day = clock.now().date() + days * DAY
    clock.move(datetime.combine(day, time(hour, 1), UTC) - clock.now())


async def subscribe(client: httpx2.AsyncClient, database: Database, *names: str) -> None:
    for name in names:
        headers = await sign_in(database, name)
        body = {"notifications": {"daily_papers_digest": True}}
        assert (await client.patch(SETTINGS, headers=headers, json=body)).status_code == 200


async def submit(client: httpx2.AsyncClient, headers: Headers, paper_id: str, **body: Any) -> None:
    asked = {
        "id": paper_id,
        "title": f"On {paper_id}",
        "summary": "It is shown that\nengines compute.",
        "authors": ["Ada Lovelace", "Charles Babbage"],
    }
    response = await client.post("/api/papers/index", headers=headers, json=asked | body)
    assert response.status_code < 300, response.text


async def plan(database: Database) -> None:
    async with database.transaction() as conn:
        await digest.schedule(conn)


async def pass_days(database: Database, count: int = 1) -> None:
    """Let the digest of each coming day become due, and the worker work."""
    for _ in range(count):
        move_to(8, days=1)
        await drain(database)


@pytest.fixture(autouse=True)
async def a_morning(database: Database) -> None:
    """It is seven o'clock; the first digest is due in an hour."""
    set_mail(database)
    move_to(7, days=1)
    await plan(database)


async def test_the_papers_of_the_day_before_come_at_the_hour(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await with_address(database, "bob")
    await subscribe(client, database, "bob")
    await submit(client, ada, "2611.00001", title="Engines <i>think</i>")
    await submit(client, ada, "2611.00002", summary="word " * 100)
    day = clock.now().date().isoformat()
    await drain(database)
    move_to(7, days=1)
    await drain(database)
    assert letters(database) == []

    move_to(8)
    await drain(database)

    (letter,) = letters(database)
    assert letter["Subject"] == f"Papers of {day}"
    text, html = texts_of(letter)
    assert (
        without_tokens(text)
        == f"""\
Papers of {day}

On 2611.00002
Ada Lovelace, Charles Babbage
http://hub.test/papers/2611.00002

{("word " * 80).strip()} …

Engines <i>think</i>
Ada Lovelace, Charles Babbage
http://hub.test/papers/2611.00001

It is shown that engines compute.


{SIGNATURE}
You get this because you asked for the daily digest of papers.
Stop mails of this kind: http://hub.test/unsubscribe/TOKEN
Choose what you get: http://hub.test/settings/notifications
"""
    )
    assert '<a href="http://hub.test/papers/2611.00001">Engines &lt;i&gt;think' in html


async def test_only_those_who_want_it_get_it(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await with_address(database, "bob", "carl", "dora")
    await subscribe(client, database, "bob", "dora")
    dora = await sign_in(database, "dora")
    off = {"notifications": {"daily_papers_digest": False}}
    await client.patch(SETTINGS, headers=dora, json=off)
    await submit(client, ada, "2611.00001")

    await pass_days(database)

    assert recipients(database) == ["bob"]


async def test_a_day_without_papers_has_no_digest(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await with_address(database, "bob")
    await subscribe(client, database, "bob")
    await pass_days(database, 2)
    assert letters(database) == []

    await submit(client, ada, "2611.00001")
    await pass_days(database, 3)
    assert len(letters(database)) == 1


async def test_each_day_has_its_own(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await with_address(database, "bob")
    await subscribe(client, database, "bob")
    days = []
    for number in range(3):
        days.append(clock.now().date().isoformat())
        await submit(client, ada, f"2611.0000{number}")
        await pass_days(database)

    assert [str(letter["Subject"]) for letter in letters(database)] == [
        f"Papers of {day}" for day in days
    ]


async def test_however_often_a_hub_starts_a_day_has_one_digest(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await with_address(database, "bob")
    await subscribe(client, database, "bob")
    await submit(client, ada, "2611.00001")
    await plan(database)
    await pass_days(database)
    for _ in range(3):
        await plan(database)
        await drain(database)

    assert len(letters(database)) == 1


async def test_a_hub_that_was_off_at_the_hour_sends_it_late_but_only_that_of_yesterday(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await with_address(database, "bob")
    await subscribe(client, database, "bob")
    await submit(client, ada, "2611.00001")
    clock.move(3 * DAY)
    yesterday = clock.now().date().isoformat()
    await submit(client, ada, "2611.00002")
    move_to(20, days=1)

    await plan(database)
    await drain(database)

    assert [str(letter["Subject"]) for letter in letters(database)] == [f"Papers of {yesterday}"]


async def test_another_hour_holds_from_the_next_digest_on(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await with_address(database, "bob")
    await subscribe(client, database, "bob")
    set_mail(database, digest_hour=20)
    await plan(database)
    for number in range(2):
        await submit(client, ada, f"2611.0000{number}")
        move_to(8, days=1)
        await drain(database)
        assert len(letters(database)) == number
        move_to(20)
        await drain(database)
        assert len(letters(database)) == number + 1


async def test_many_get_it_in_batches(
    client: httpx2.AsyncClient, database: Database, ada: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digest, "BATCH", 3)
    names = [f"user-{number}" for number in range(7)]
    await with_address(database, *names)
    await subscribe(client, database, *names)
    await submit(client, ada, "2611.00001")
    go_on, pages = digest.mail_page, list[str]()

    async def going_on(conn: Any, *, day: str, after: str) -> None:
        pages.append(after)
        await go_on(conn, day=day, after=after)

    monkeypatch.setattr(digest, "mail_page", going_on)
    await pass_days(database)

    ids = sorted([(await a_user(database, name)).id for name in names])
    assert pages == ["", ids[2], ids[5]]
    assert recipients(database) == names
    assert await waiting(database) == 0


async def test_a_paper_that_is_gone_before_the_mail_is_written_is_not_in_it(
    client: httpx2.AsyncClient, database: Database, ada: Headers, admin: Headers
) -> None:
    await with_address(database, "bob")
    await subscribe(client, database, "bob")
    await submit(client, ada, "2611.00001")
    day = clock.now().date().isoformat()
    move_to(8, days=1)
    async with database.transaction() as conn:
        await digest.mail_page(conn, day=day, after="")
    await client.delete("/api/papers/2611.00001", headers=admin)

    await drain(database)

    assert (letters(database), await waiting(database)) == ([], 0)
