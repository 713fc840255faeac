"""Who was notified of a thread, and what users do that decides it."""

from dataclasses import dataclass
from typing import Any

import httpx2

from community.public_threads import thread_id
from hublet.core.clock import micros
from hublet.core.database import Database
from hublet.core.ids import new_object_id
from hublet.notifications import watches as watching
from hublet.notifications.preferences import service as preferences
from hublet.notifications.preferences.switches import PreferenceKey
from hublet.notifications.records import Involvement, MuteType, SubscriptionTarget, WatchType
from people import a_user, sign_in
from workers import drain


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A thread, and what users do about it."""

    client: httpx2.AsyncClient
    database: Database
    address: str
    thread_id: str
    repo_id: str = ""

    async def user_id(self, name: str) -> str:
        return (await a_user(self.database, name)).id

    async def post(self, name: str, path: str, **body: Any) -> dict[str, Any]:
        """Let somebody post to the thread's address; return the answer."""
        headers = await sign_in(self.database, name)
        response = await self.client.post(f"{self.address}{path}", headers=headers, json=body)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    async def comment(self, name: str, text: str = "I see.") -> str:
        """Let somebody comment; return the comment's id."""
        comment_id: str = (await self.post(name, "/comment", comment=text))["newMessage"]["id"]
        return comment_id

    async def watch(self, name: str, type_: str, target_id: str) -> None:
        user_id = await self.user_id(name)
        target = SubscriptionTarget(type=WatchType(type_), id=target_id)
        async with self.database.transaction() as conn:
            await watching.watch(conn, user_id=user_id, delete=[], add=[target])

    async def mute(self, name: str, type_: str) -> None:
        """Let somebody mute the thread, or its repository."""
        user_id = await self.user_id(name)
        target_id = self.thread_id if type_ == "thread" else self.repo_id
        target = SubscriptionTarget(type=MuteType(type_), id=target_id)
        async with self.database.transaction() as conn:
            await watching.mute(conn, user_id=user_id, delete=[], add=[target])

    async def switch_off(self, name: str, *keys: str) -> None:
        user_id = await self.user_id(name)
        async with self.database.transaction() as conn:
            for key in keys:
                await preferences.turn_off(conn, user_id, PreferenceKey(key))

    async def settle(self) -> None:
        """Let the worker notify everybody, and delete all notifications."""
        await drain(self.database)
        async with self.database.transaction() as conn:
            for table in ("notifications", "notification_counts", "inboxes", "mails"):
                await conn.execute(f"DELETE FROM {table}")

    async def notified(self) -> dict[str, str]:
        """Return who has the thread unread in the inbox, and their involvement."""
        await drain(self.database)
        return await in_inboxes(self.database, self.thread_id)

    async def mailed(self) -> dict[str, str]:
        """Return to whom a mail about the thread is queued, and by which preference."""
        await drain(self.database)
        async with self.database.read() as conn:
            rows = await conn.fetch_all(
                "SELECT u.name, m.key FROM mails m JOIN users u ON u.id = m.user_id "
                "WHERE m.about = $1",
                self.thread_id,
            )
        return {row["name"]: row["key"] for row in rows}

    async def leads_to(self, name: str) -> str | None:
        """Return the event that somebody's item leads to."""
        async with self.database.read() as conn:
            found: str | None = await conn.fetch_value(
                "SELECT event_id FROM notifications WHERE thread_id = $1 AND user_id = $2",
                self.thread_id,
                await self.user_id(name),
            )
        return found


async def in_inboxes(database: Database, about: str) -> dict[str, str]:
    async with database.read() as conn:
        rows = await conn.fetch_all(
            "SELECT u.name, n.involvement FROM notifications n JOIN users u ON u.id = n.user_id "
            "WHERE n.thread_id = $1 AND NOT n.read",
            about,
        )
    return {row["name"]: Involvement(row["involvement"]).name for row in rows}


async def a_stage(
    client: httpx2.AsyncClient, database: Database, address: str, *, repo_id: str = ""
) -> Stage:
    """Return the thread at this address, of which everybody was notified so far."""
    stage = Stage(
        client=client,
        database=database,
        address=address,
        thread_id=await thread_id(client, address),
        repo_id=repo_id,
    )
    await stage.settle()
    return stage


async def a_crowd(database: Database, count: int, *, watching: str) -> list[str]:
    """Return the ids of so many new users, all of whom watch the repository with this id."""
    ids, now = sorted(new_object_id() for _ in range(count)), micros()
    async with database.transaction() as conn:
        await conn.execute_many(
            "INSERT INTO users (id, name, fullname, type, is_admin, created_at) "
            "VALUES ($1, $1, $1, 'user', FALSE, $2)",
            [(user_id, now) for user_id in ids],
        )
        await conn.execute_many(
            "INSERT INTO watches (user_id, type, target_id, since) VALUES ($1, 'repo', $2, $3)",
            [(user_id, watching, now) for user_id in ids],
        )
    return ids
