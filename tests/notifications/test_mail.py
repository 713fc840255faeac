"""Mails about what happens in threads, from the event to the file."""

from datetime import timedelta
from typing import Any

import httpx2
import pytest

from community.discussions import a_discussion
from community.public_threads import a_comment, a_thread
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import OPERATOR, Role
from hublet.core import clock
from hublet.core.database import Database, Reader
from hublet.core.mail import MailMessage, mail_folder
from hublet.notifications.mail import mail_queue, sender, store
from hublet.notifications.mail.records import QueuedMail
from hublet.notifications.mail.sender import compose
from hublet.notifications.messages import texts
from hublet.notifications.preferences.switches import PreferenceKey
from mail_servers import MailServer, mail_server, texts_of
from notifications.inboxes import INBOX, MARK
from notifications.mailbox import (
    SIGNATURE,
    letters,
    recipients,
    set_mail,
    subjects,
    waiting,
    watch_as_members,
    with_address,
    without_tokens,
)
from people import Headers, a_user, an_organization, sign_in
from repositories import a_repo, disable
from scratch_database import wait_until
from workers import drain, running_workers

SETTINGS = "/api/settings/notifications"


@pytest.fixture
async def bob(database: Database) -> Headers:
    return await sign_in(database, "bob")


@pytest.fixture(autouse=True)
async def an_engine(client: httpx2.AsyncClient, database: Database, ada: Headers) -> None:
    """Ada can be written to and has a model, whose discussions she hears of."""
    set_mail(database)
    await with_address(database, "ada")
    await a_repo(client, ada, "ada/engine")


async def comment(
    client: httpx2.AsyncClient, headers: Headers, address: str, text: str
) -> dict[str, Any]:
    response = await client.post(f"{address}/comment", headers=headers, json={"comment": text})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def test_a_mail_says_what_happened_why_and_how_to_stop_it(
    client: httpx2.AsyncClient, database: Database, bob: Headers
) -> None:
    address = await a_discussion(
        client, bob, title="Läuft <b>es</b>?", description="See\n\n  <script>1</script> & more"
    )
    await drain(database)

    (letter,) = letters(database)
    details = (await client.get(address, headers=bob)).json()
    event = details["events"][0]["id"]
    text, html = texts_of(letter)
    assert (
        without_tokens(text)
        == f"""\
bob opened this discussion:

See

  <script>1</script> & more

Read it: http://hub.test/ada/engine/discussions/1#{event}

{SIGNATURE}
You get this because you watch ada/engine.
Stop mails of this kind: http://hub.test/unsubscribe/TOKEN
Choose what you get: http://hub.test/settings/notifications
"""
    )
    assert (
        without_tokens(html)
        == f"""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>[ada/engine] Läuft &lt;b&gt;es&lt;/b&gt;? (#1)</title>
</head>
<body style="font-family: sans-serif; max-width: 40em;">
<p><strong>bob</strong> opened this discussion:</p>
<div style="white-space: pre-wrap;">See

  &lt;script&gt;1&lt;/script&gt; &amp; more</div>
<p><a href="http://hub.test/ada/engine/discussions/1#{event}">Read it on the hub</a></p>
<hr>
<p style="color: #666; font-size: smaller;">
You get this because you watch ada/engine.<br>
<a href="http://hub.test/unsubscribe/TOKEN">Stop mails of this kind</a> ·
<a href="http://hub.test/settings/notifications">Choose what you get</a>
</p>
</body>
</html>
"""
    )
    headers = {name: without_tokens(value) for name, value in letter.items()}
    thread = details["id"] if "id" in details else headers["References"][8:32]
    ada_id = (await a_user(database, "ada")).id
    assert headers == {
        "From": "Hublet <hublet@localhost>",
        "To": "ada <ada@example.com>",
        "Subject": "[ada/engine] Läuft <b>es</b>? (#1)",
        "Date": headers["Date"],
        "Message-ID": headers["Message-ID"],
        "Auto-Submitted": "auto-generated",
        "In-Reply-To": f"<thread.{thread}@hub.test>",
        "References": f"<thread.{thread}@hub.test>",
        "List-Unsubscribe": "<http://hub.test/unsubscribe/TOKEN>",
        "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
        "List-ID": "<engine.ada.hub.test>",
        "MIME-Version": "1.0",
        "Content-Type": headers["Content-Type"],
    }
    assert headers["Message-ID"].endswith(f".{ada_id}@hub.test>")
    assert await waiting(database) == 0


async def test_what_happens_within_the_delay_is_one_mail(
    client: httpx2.AsyncClient, database: Database, bob: Headers
) -> None:
    set_mail(database, delay_seconds=60)
    address = await a_discussion(client, bob)
    await drain(database)
    await comment(client, bob, address, "Second.")
    await client.post(f"{address}/status", headers=bob, json={"status": "closed"})
    await drain(database)
    assert letters(database) == []

    clock.move(timedelta(seconds=61))
    await drain(database)

    (letter,) = letters(database)
    assert (
        texts_of(letter)[0].partition("\nRead it")[0]
        == """\
bob opened this discussion:

It should.

bob commented:

Second.

bob closed it.
"""
    )


async def test_a_later_event_is_another_mail_of_the_same_thread(
    client: httpx2.AsyncClient, database: Database, bob: Headers
) -> None:
    address = await a_discussion(client, bob)
    await drain(database)
    await comment(client, bob, address, "Second.")
    await drain(database)

    first, second = letters(database)
    assert first["References"] == second["References"]
    assert first["Message-ID"] != second["Message-ID"]
    assert first["Subject"] == second["Subject"]
    assert "Second." not in texts_of(first)[0]
    assert "It should." not in texts_of(second)[0]


async def test_what_was_read_meanwhile_is_not_mailed(
    client: httpx2.AsyncClient, database: Database, ada: Headers, bob: Headers
) -> None:
    set_mail(database, delay_seconds=60)
    address = await a_discussion(client, bob)
    await drain(database)
    await client.post(MARK, headers=ada, params={"applyToAll": "true"}, json={})
    clock.move(timedelta(seconds=61))
    await drain(database)
    assert (letters(database), await waiting(database)) == ([], 0)

    await comment(client, bob, address, "Second.")
    await drain(database)
    clock.move(timedelta(seconds=61))
    await drain(database)
    assert len(letters(database)) == 1


async def test_what_was_deleted_meanwhile_is_not_mailed(
    client: httpx2.AsyncClient, database: Database, ada: Headers, bob: Headers
) -> None:
    set_mail(database, delay_seconds=60)
    await a_discussion(client, bob)
    await drain(database)
    await client.delete(INBOX, headers=ada, params={"applyToAll": "true"})

    clock.move(timedelta(seconds=61))
    await drain(database)

    assert (letters(database), await waiting(database)) == ([], 0)


async def test_only_what_came_after_reading_is_mailed(
    client: httpx2.AsyncClient, database: Database, ada: Headers, bob: Headers
) -> None:
    set_mail(database, delay_seconds=60)
    address = await a_discussion(client, bob)
    await drain(database)
    await client.post(MARK, headers=ada, params={"applyToAll": "true"}, json={})
    await comment(client, bob, address, "Second.")
    await drain(database)

    clock.move(timedelta(seconds=61))
    await drain(database)

    (letter,) = letters(database)
    assert texts_of(letter)[0].startswith("bob commented:\n\nSecond.\n")


async def test_mail_comes_without_the_inbox_when_only_mail_is_wanted(
    client: httpx2.AsyncClient, database: Database, ada: Headers, bob: Headers
) -> None:
    off = {"notifications": {"web_discussions_watched": False}}
    await client.patch(SETTINGS, headers=ada, json=off)

    await a_discussion(client, bob)
    await drain(database)

    assert (await client.get(INBOX, headers=ada)).json()["count"]["all"] == 0
    assert recipients(database) == ["ada"]


async def test_a_kind_that_was_switched_off_meanwhile_is_not_mailed(
    client: httpx2.AsyncClient, database: Database, ada: Headers, bob: Headers
) -> None:
    set_mail(database, delay_seconds=60)
    await a_discussion(client, bob)
    await drain(database)
    off = {"notifications": {"discussions_watched": False}}
    await client.patch(SETTINGS, headers=ada, json=off)

    clock.move(timedelta(seconds=61))
    await drain(database)

    assert (letters(database), await waiting(database)) == ([], 0)


async def test_only_verified_primary_addresses_of_people_are_written_to(
    client: httpx2.AsyncClient, database: Database, bob: Headers
) -> None:
    await with_address(database, "carl", verified=False)
    await with_address(database, "dora", "emil")
    await a_user(database, "fred")
    await disable(database, "emil")
    names = ("carl", "dora", "emil", "fred")

    await a_discussion(client, bob, description=" ".join(f"@{name}" for name in names))
    await drain(database)

    assert subjects(database, "emil") == [texts.account_disabled().title]
    assert recipients(database) == ["ada", "dora", "emil"]
    assert subjects(database, "dora") == ["[ada/engine] Does it run? (#1)"]
    dora = texts_of(letters(database, "dora")[0])[0]
    assert "You get this because you take part in it or were mentioned in it.\n" in dora
    assert await waiting(database) == 0


async def test_many_mails_of_one_event_go_over_one_connection(
    client: httpx2.AsyncClient, database: Database, bob: Headers
) -> None:
    names = [f"user-{number}" for number in range(5)]
    await with_address(database, *names)

    async with mail_server() as server:
        set_mail(database, smtp_url=server.url())
        await a_discussion(client, bob, description=" ".join(f"@{name}" for name in names))
        await drain(database)

    # Ada watches, the others were mentioned: two kinds of mails, two batches.
    assert server.connections == 2
    assert sorted(envelope.rcpt_tos[0] for envelope in server.envelopes) == [
        "ada@example.com",
        *(f"{name}@example.com" for name in names),
    ]
    assert await waiting(database) == 0


async def test_a_mail_that_has_to_wait_does_not_hold_up_the_others(
    client: httpx2.AsyncClient, database: Database, bob: Headers
) -> None:
    await with_address(database, "carl", "dora")

    async with mail_server(answers={"RCPT": ["450 later"]}) as server:
        set_mail(database, smtp_url=server.url())
        await mail_three(client, database, bob)
        assert (len(server.envelopes), await waiting(database)) == (2, 1)
        clock.move(timedelta(seconds=30))
        await drain(database)
        assert (len(server.envelopes), await waiting(database)) == (3, 0)


async def test_when_the_connection_is_lost_the_whole_batch_waits(
    client: httpx2.AsyncClient, database: Database, bob: Headers
) -> None:
    await with_address(database, "carl", "dora")

    async with mail_server(answers={"MAIL": [""]}) as server:
        set_mail(database, smtp_url=server.url())
        await mail_three(client, database, bob)
        assert (len(server.envelopes), await waiting(database)) == (0, 3)
        clock.move(timedelta(seconds=30))
        await drain(database)
        assert (len(server.envelopes), await waiting(database)) == (3, 0)


async def mail_three(client: httpx2.AsyncClient, database: Database, headers: Headers) -> None:
    """Have ada, carl and dora notified of a discussion in one batch."""
    await a_discussion(client, headers)
    ids = [(await a_user(database, name)).id for name in ("ada", "carl", "dora")]
    async with database.transaction() as conn:
        await conn.execute("DELETE FROM outbox")
        thread_id = await conn.fetch_value("SELECT id FROM threads")
        await mail_queue.queue_thread_mail(
            conn,
            thread_id=thread_id,
            event_id=await conn.fetch_value("SELECT id FROM comments"),
            recipients=dict.fromkeys(ids, PreferenceKey.discussions_watched),
        )
    await drain(database)


async def test_two_workers_send_each_mail_once(
    client: httpx2.AsyncClient, database: Database, bob: Headers
) -> None:
    names = [f"user-{number}" for number in range(6)]
    await with_address(database, *names)

    async with mail_server() as server:
        set_mail(database, smtp_url=server.url())
        async with running_workers(database, 2):
            for name in names:
                await a_discussion(client, bob, description=f"@{name}")
            await wait_until(lambda: has_sent(database, server, 2 * len(names)))

    assert sorted(envelope.rcpt_tos[0] for envelope in server.envelopes) == sorted(
        ["ada@example.com"] * len(names) + [f"{name}@example.com" for name in names]
    )


async def has_sent(database: Database, server: MailServer, count: int) -> bool:
    return len(server.envelopes) >= count and await waiting(database) == 0


async def test_a_long_text_is_cut_and_many_events_are_the_last_ones(
    client: httpx2.AsyncClient, database: Database, bob: Headers
) -> None:
    address = await a_discussion(client, bob, description="x" * 10_001)
    await forget(database)
    async with database.read() as conn:
        thread_id = await conn.fetch_value("SELECT id FROM threads")
        first = await conn.fetch_value("SELECT id FROM comments")
    await mail_to_ada(database, thread_id, first)
    await drain(database)
    events = [
        (await comment(client, bob, address, f"Number {number}."))["newMessage"]["id"]
        for number in range(21)
    ]
    await mail_to_ada(database, thread_id, " ".join(events))
    await drain(database)

    long, many = [texts_of(letter)[0] for letter in letters(database)]
    assert f"{'x' * 10_000} …\n" in long
    assert many.count("bob commented:") == 20
    assert "Number 0." not in many


@pytest.mark.parametrize(
    ("kind", "subject", "link"),
    [
        ("post", "[ada] A post to talk about", "/posts/ada/{slug}"),
        ("blog", "[ada] A blog to talk about", "/blog/ada/{slug}"),
        ("paper", "[papers] Notes on the Engine", "/papers/2401.12345"),
    ],
)
async def test_posts_blogs_and_papers_are_mailed_about_as_well(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    bob: Headers,
    *,
    kind: str,
    subject: str,
    link: str,
) -> None:
    address = await a_thread(client, ada, kind, text="Look, @carl.")
    await with_address(database, "carl")
    comment_id = await a_comment(client, bob, address, "I agree.")
    await drain(database)

    (letter,) = letters(database, "ada")
    assert letter["Subject"] == subject
    place = "http://hub.test" + link.format(slug=address.rpartition("/")[2])
    assert texts_of(letter)[0].startswith(
        f"bob commented:\n\nI agree.\n\nRead it: {place}#{comment_id}\n"
    )


@pytest.mark.parametrize(
    ("kind", "did", "link"),
    [
        ("post", "ada published this post", "/posts/ada/{slug}"),
        ("blog", "ada published this blog", "/blog/ada/{slug}"),
        ("paper", "somebody submitted this paper", "/papers/2401.12345"),
    ],
)
async def test_who_is_mentioned_in_a_new_post_blog_or_paper_reads_it_in_the_mail(
    client: httpx2.AsyncClient, database: Database, ada: Headers, *, kind: str, did: str, link: str
) -> None:
    await with_address(database, "carl")
    address = await a_thread(client, ada, kind, text="Look, @carl.")
    await drain(database)

    (letter,) = letters(database, "carl")
    place = "http://hub.test" + link.format(slug=address.rpartition("/")[2])
    assert texts_of(letter)[0].startswith(f"{did}:\n\nLook, @carl.\n\nRead it: {place}\n")


SECRET = "/api/models/engines/secret/discussions"


async def leave(_client: httpx2.AsyncClient, database: Database, _headers: Headers) -> None:
    ada = await a_user(database, "ada")
    async with database.transaction() as conn:
        engines = await organizations.get(conn, "engines")
        await organizations.remove_member(conn, OPERATOR, engines, ada)


async def hide(client: httpx2.AsyncClient, _database: Database, headers: Headers) -> None:
    events = (await client.get(f"{SECRET}/1", headers=headers)).json()["events"]
    await client.post(f"{SECRET}/1/comment/{events[0]['id']}/hide", headers=headers)


async def delete(client: httpx2.AsyncClient, _database: Database, headers: Headers) -> None:
    body = {"organization": "engines", "name": "secret"}
    await client.request("DELETE", "/api/repos/delete", headers=headers, json=body)


async def forget(database: Database) -> None:
    """Let nobody react to what happened so far."""
    async with database.transaction() as conn:
        await conn.execute("DELETE FROM outbox")


@pytest.mark.parametrize("lose_sight", [leave, hide, delete])
async def test_who_lost_sight_of_it_meanwhile_gets_no_mail(
    client: httpx2.AsyncClient, database: Database, bob: Headers, lose_sight: Any
) -> None:
    members = {"ada": Role.read, "bob": Role.admin}
    engines = await an_organization(database, "engines", members=members)
    await forget(database)
    await watch_as_members(database, engines.id, *members)
    await a_repo(client, bob, "engines/secret", private=True)
    set_mail(database, delay_seconds=60)
    await a_discussion(client, bob, SECRET)
    await drain(database)
    assert await waiting(database) == 1

    # Nobody clears the inbox: what counts is what is true when the mail is written.
    await lose_sight(client, database, bob)
    await forget(database)
    clock.move(timedelta(seconds=61))
    await drain(database)

    assert (letters(database), await waiting(database)) == ([], 0)


async def mail_to_ada(database: Database, thread_id: str, event_id: str) -> None:
    ada = await a_user(database, "ada")
    async with database.transaction() as conn:
        # Only what the test asks for is mailed.
        await conn.execute("DELETE FROM outbox")
        await mail_queue.queue_thread_mail(
            conn,
            thread_id=thread_id,
            event_id=event_id,
            recipients={ada.id: PreferenceKey.discussions_watched},
        )


async def test_an_event_while_a_mail_is_being_sent_opens_another(
    client: httpx2.AsyncClient, database: Database, bob: Headers
) -> None:
    address = await a_discussion(client, bob)
    second = (await comment(client, bob, address, "Second."))["newMessage"]["id"]
    third = (await comment(client, bob, address, "Third."))["newMessage"]["id"]
    async with database.read() as conn:
        thread_id = await conn.fetch_value("SELECT id FROM threads")

    await mail_to_ada(database, thread_id, second)
    async with database.transaction() as conn:
        mail_id = await conn.fetch_value("SELECT id FROM mails")
        (closed,) = await store.close(conn, [mail_id])
    await mail_to_ada(database, thread_id, third)
    await drain(database)

    assert closed.events == (second,)
    lines = [texts_of(letter)[0].split("\n")[2] for letter in letters(database)]
    assert lines == ["Second.", "Third."]


async def test_a_task_that_runs_twice_sends_once(
    client: httpx2.AsyncClient, database: Database, bob: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    await a_discussion(client, bob)
    sent: list[str] = []
    send = sender.send

    async def sending_twice(database: Database, mail_ids: list[str]) -> None:
        sent.extend(mail_ids)
        await send(database, mail_ids)
        for path in mail_folder(database.hub.settings).iterdir():
            path.unlink()
        await send(database, mail_ids)

    monkeypatch.setattr(sender, "send", sending_twice)
    await drain(database)

    assert len(sent) == 1
    assert letters(database) == []


async def test_a_mail_that_cannot_be_written_does_not_hold_up_the_others(
    client: httpx2.AsyncClient, database: Database, bob: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    await with_address(database, "carl", "dora")
    ada = await a_user(database, "ada")

    async def composing(conn: Reader, mail: QueuedMail) -> MailMessage | None:
        if mail.user_id == ada.id:
            raise ValueError("A template is broken.")
        return await compose(conn, mail)

    monkeypatch.setattr(sender, "compose", composing)
    await a_discussion(client, bob, description="@carl @dora")
    await drain(database)
    assert recipients(database) == ["carl", "dora"]
    assert await waiting(database) == 1

    monkeypatch.undo()
    clock.move(timedelta(seconds=10))
    await drain(database)
    assert recipients(database) == ["ada", "carl", "dora"]
    assert await waiting(database) == 0
