"""Messages of the hub that users received, by inbox and by mail."""

from dataclasses import dataclass
from typing import Any

from hublet.core.database import Connection, Database
from hublet.core.outbox import Event, publish
from hublet.notifications.preferences.switches import PreferenceKey
from people import a_user
from workers import drain

# Instead of a key, for what was not mailed at all.
NO_MAIL = "no mail"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedMessage:
    """A message as its recipient sees it; `mail` is the preference that decides the mail."""

    kind: str
    title: str
    body: str
    in_inbox: bool = True
    mail: PreferenceKey | str | None = None


class MailRecorder:
    """Replaces the mail queue, and records the mails that are requested."""

    def __init__(self) -> None:
        self.requested: list[tuple[str, str, PreferenceKey | None]] = []

    async def mail_of_message(
        self, _conn: Connection, *, message_id: str, user_id: str, key: PreferenceKey | None
    ) -> None:
        self.requested.append((message_id, user_id, key))

    def of(self, message_id: str, user_id: str) -> PreferenceKey | str | None:
        found = [
            key for about, user, key in self.requested if (about, user) == (message_id, user_id)
        ]
        assert len(found) < 2, "Nobody gets the same mail twice."
        return found[0] if found else NO_MAIL

    async def received(self, database: Database, name: str) -> list[ReceivedMessage]:
        """Return the messages of a user, oldest first."""
        user_id = (await a_user(database, name)).id
        return [
            ReceivedMessage(
                kind=row["kind"],
                title=row["title"],
                body=row["body"],
                in_inbox=bool(row["in_inbox"]),
                mail=self.of(row["id"], user_id),
            )
            for row in await _messages(database, user_id)
        ]

    async def titles(self, database: Database, name: str, kind: str = "") -> list[str]:
        """Return the titles of a user's messages of this kind."""
        return [
            each.title for each in await self.received(database, name) if each.kind.startswith(kind)
        ]


async def _messages(database: Database, user_id: str) -> Any:
    async with database.read() as conn:
        return await conn.fetch_all(
            """
            SELECT m.id, m.kind, m.title, m.body, n.thread_id IS NOT NULL AS in_inbox
            FROM messages m LEFT JOIN notifications n
            ON n.thread_id = m.id AND n.user_id = m.user_id AND n.type = 'post' AND NOT n.read
            WHERE m.user_id = $1 ORDER BY m.id
            """,
            user_id,
        )


async def publish_events(database: Database, *events: Event) -> None:
    """Commit events, and let the worker react to them."""
    async with database.transaction() as conn:
        for event in events:
            await publish(conn, event)
    await drain(database)
