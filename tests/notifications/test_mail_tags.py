"""Mails about new tags."""

import json
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from hublet.accounts.records import Role
from hublet.core import clock
from hublet.core.database import Database
from hublet.events import RepoContentUpdated, UpdatedRef
from hublet.notifications.mail import tags
from hublet.repos import service as repos
from hublet.repos import store as repo_rows
from mail_servers import texts_of
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
from workers import drain

ENGINE = "/api/models/ada/engine"


@pytest.fixture(autouse=True)
async def an_engine(client: httpx2.AsyncClient, database: Database, ada: Headers) -> str:
    """Ada has a model; she and bob can be written to."""
    set_mail(database)
    await with_address(database, "ada", "bob")
    return await a_repo(client, ada, "ada/engine")


async def change(
    client: httpx2.AsyncClient, database: Database, name: str, path: str, body: dict[str, Any]
) -> None:
    headers = await sign_in(database, name)
    response = await client.patch(f"/api/settings/{path}", headers=headers, json=body)
    assert response.status_code == 200, response.text


async def watch(
    client: httpx2.AsyncClient, database: Database, name: str, target: str, kind: str = "repo"
) -> None:
    await change(client, database, name, "watch", {"add": [{"id": target, "type": kind}]})


async def tag(client: httpx2.AsyncClient, headers: Headers, name: str, path: str = ENGINE) -> None:
    response = await client.post(f"{path}/tag/main", headers=headers, json={"tag": name})
    assert response.status_code == 200, response.text


async def test_who_watches_a_repository_is_notified_of_its_new_tag(
    client: httpx2.AsyncClient, database: Database, ada: Headers, an_engine: str
) -> None:
    await watch(client, database, "bob", an_engine)
    await watch(client, database, "ada", an_engine)
    await tag(client, ada, "v1.0")
    await drain(database)

    (letter,) = letters(database)
    assert letter["To"] == "bob <bob@example.com>"
    assert letter["Subject"] == "[ada/engine] New tag v1.0"
    assert letter["List-ID"] == "<engine.ada.hub.test>"
    text, html = texts_of(letter)
    assert without_tokens(text) == (
        f"""\
ada/engine has a new tag:

v1.0
http://hub.test/ada/engine/tree/v1.0


{SIGNATURE}
You get this because you watch ada/engine.
Stop mails of this kind: http://hub.test/unsubscribe/TOKEN
Choose what you get: http://hub.test/settings/notifications
"""
    )
    assert '<li><a href="http://hub.test/ada/engine/tree/v1.0">v1.0</a></li>' in html


async def test_tags_within_the_delay_are_one_mail(
    client: httpx2.AsyncClient, database: Database, ada: Headers, an_engine: str
) -> None:
    set_mail(database, delay_seconds=60)
    await watch(client, database, "bob", an_engine)
    for name in ("v1.0", "v1.1", "v1.2"):
        await tag(client, ada, name)
        await drain(database)
    await client.delete(f"{ENGINE}/tag/v1.1", headers=ada)
    assert await waiting(database) == 1
    clock.move(timedelta(seconds=61))
    await drain(database)

    assert subjects(database, "bob") == ["[ada/engine] New tags v1.0, v1.2"]


async def test_a_tag_that_is_gone_again_is_not_mailed(
    client: httpx2.AsyncClient, database: Database, ada: Headers, an_engine: str
) -> None:
    await watch(client, database, "bob", an_engine)
    await tag(client, ada, "v1.0")
    await client.delete(f"{ENGINE}/tag/v1.0", headers=ada)
    await drain(database)

    assert (letters(database), await waiting(database)) == ([], 0)


async def test_branches_and_commits_are_no_tags(
    client: httpx2.AsyncClient, database: Database, ada: Headers, an_engine: str
) -> None:
    await watch(client, database, "bob", an_engine)
    response = await client.post(f"{ENGINE}/branch/refs", headers=ada, json={})
    assert response.status_code == 200
    await drain(database)

    assert letters(database) == []


async def test_who_watches_the_owner_is_notified_of_it_unless_they_said_otherwise(
    client: httpx2.AsyncClient, database: Database, ada: Headers, an_engine: str
) -> None:
    names = ("carl", "dora", "emil", "fred")
    await with_address(database, *names)
    ada_id = (await a_user(database, "ada")).id
    for name in ("bob", *names):
        await watch(client, database, name, ada_id, "user")
    off = {"notifications": {"repo_release": False}}
    await change(client, database, "carl", "notifications", off)
    mute = {"add": [{"id": an_engine, "type": "repo"}]}
    await change(client, database, "dora", "mute", mute)
    await drain(database)
    told_before = recipients(database)
    await disable(database, "emil")
    await tag(client, ada, "v1.0")
    await drain(database)

    assert told_before == []
    mailed_to = [
        name for name in ("bob", *names) if "[ada/engine] New tag v1.0" in subjects(database, name)
    ]
    assert mailed_to == ["bob", "fred"]


async def test_nobody_is_notified_of_tags_that_they_may_not_see(
    client: httpx2.AsyncClient, database: Database, ada: Headers, admin: Headers
) -> None:
    members = {"ada": Role.admin, "bob": Role.read}
    engines = await an_organization(database, "engines", members=members)
    await watch_as_members(database, engines.id, *members)
    secret = await a_repo(client, ada, "engines/secret", private=True)
    await with_address(database, "carl")
    carl = await a_user(database, "carl")
    async with database.transaction() as conn:
        await conn.execute(
            "INSERT INTO watches (user_id, type, target_id, since) VALUES ($1, 'repo', $2, 0)",
            carl.id, secret,
        )  # fmt: skip
        await conn.execute("DELETE FROM outbox")
    await tag(client, ada, "v1.0", "/api/models/engines/secret")
    await drain(database)

    assert recipients(database) == ["bob"]


async def test_many_are_notified_of_it_in_batches(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    an_engine: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tags, "BATCH", 2)
    names = [f"user-{number}" for number in range(5)]
    await with_address(database, *names)
    for name in names:
        await watch(client, database, name, an_engine)
    await tag(client, ada, "v1.0")
    await drain(database)

    assert recipients(database) == names


async def test_only_some_of_very_many_tags_are_named(
    client: httpx2.AsyncClient, database: Database, an_engine: str
) -> None:
    updates = [UpdatedRef(ref=f"refs/tags/v{n}", old_sha=None, new_sha="a") for n in range(25)]
    updates.insert(0, UpdatedRef(ref="refs/tags/moved", old_sha="a", new_sha="b"))
    updates.insert(0, UpdatedRef(ref="refs/tags/gone", old_sha="a", new_sha=None))
    updates.insert(0, UpdatedRef(ref="refs/heads/v0", old_sha=None, new_sha="a"))
    async with database.transaction() as conn:
        repo = await repo_rows.find(conn, an_engine)
        assert repo is not None
        snapshot = repos.snapshot(repo)
        event = RepoContentUpdated(repo=snapshot, updated_refs=tuple(updates), actor_id="eve")
        await tags.queue_new_tags(conn, event)
        body = await conn.fetch_value("SELECT body FROM tasks WHERE kind = $1", tags.NOTIFY_OF_TAGS)

    assert json.loads(body) == {
        "repo_id": an_engine,
        "actor_id": "eve",
        "tags": [f"v{number}" for number in range(20)],
        "after": "",
    }
