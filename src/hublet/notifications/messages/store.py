"""SQL of messages of the hub, and of their recipients."""

import json
from collections.abc import Collection, Iterable

from hublet.core.clock import from_micros, to_micros
from hublet.core.database import Connection, Reader
from hublet.notifications.records import HubMessage, MessageText

# Who can be notified: people who can still sign in.
_PEOPLE = "u.type = 'user' AND u.disabled_at IS NULL"


async def add_many(conn: Connection, messages: Iterable[HubMessage]) -> None:
    await conn.execute_many(
        """
        INSERT INTO messages (id, user_id, kind, title, body, created_at)
        VALUES ($1, $2, $3, $4, $5, $6)
        """,
        [
            (
                each.id, each.user_id, each.text.kind, each.text.title, each.text.body,
                to_micros(each.created_at),
            )
            for each in messages
        ],
    )  # fmt: skip


async def find(conn: Reader, message_id: str, *, user_id: str) -> HubMessage | None:
    row = await conn.fetch_one(
        "SELECT kind, title, body, created_at FROM messages WHERE id = $1 AND user_id = $2",
        message_id, user_id,
    )  # fmt: skip
    if row is None:
        return None
    return HubMessage(
        id=message_id,
        user_id=user_id,
        text=MessageText(kind=row["kind"], title=row["title"], body=row["body"]),
        created_at=from_micros(row["created_at"]),
    )


async def list_notified(
    conn: Reader, text: MessageText, user_ids: Collection[str], *, since: int
) -> frozenset[str]:
    """Return those who got the same message since a moment."""
    rows = await conn.fetch_all(
        """
        SELECT user_id FROM messages
        WHERE user_id IN each($1) AND id >= $2 AND created_at >= $3 AND kind = $4 AND title = $5
        """,
        json.dumps(list(user_ids)), f"{since // 1_000_000:08x}", since, text.kind, text.title,
    )  # fmt: skip
    return frozenset(row["user_id"] for row in rows)


async def list_people(conn: Reader, user_ids: Collection[str]) -> list[str]:
    """Return those of these users who are people and not disabled, in the order of ids."""
    rows = await conn.fetch_all(
        f"SELECT u.id FROM users u WHERE u.id IN each($1) AND {_PEOPLE} ORDER BY u.id",
        json.dumps(list(user_ids)),
    )
    return [row["id"] for row in rows]


async def list_responsible(conn: Reader, account_id: str) -> list[str]:
    """Return the people behind an account.

    For a person that is the person; for an organization, and for a service account of one, its
    administrators.
    """
    rows = await conn.fetch_all(
        f"""
        SELECT u.id FROM users u WHERE u.id = $1 AND {_PEOPLE}
        UNION
        SELECT u.id FROM memberships m JOIN users u ON u.id = m.user_id
        WHERE m.role = 'admin' AND {_PEOPLE} AND m.organization_id IN (
            $1, (SELECT organization_id FROM users WHERE id = $1)
        )
        """,
        account_id,
    )
    return [row["id"] for row in rows]


async def list_group_administrators(conn: Reader, resource_group_id: str) -> list[str]:
    rows = await conn.fetch_all(
        f"""
        SELECT u.id FROM resource_group_members g JOIN users u ON u.id = g.user_id
        WHERE g.resource_group_id = $1 AND g.role = 'admin' AND {_PEOPLE}
        """,
        resource_group_id,
    )
    return [row["id"] for row in rows]


async def is_member(conn: Reader, organization_id: str, *, user_id: str) -> bool:
    found = await conn.fetch_value(
        "SELECT 1 FROM memberships WHERE organization_id = $1 AND user_id = $2",
        organization_id, user_id,
    )  # fmt: skip
    return found is not None


async def name_of(conn: Reader, account_id: str) -> str | None:
    """Return the name of a user or an organization."""
    name: str | None = await conn.fetch_value("SELECT name FROM owners WHERE id = $1", account_id)
    return name


async def is_organization(conn: Reader, account_id: str) -> bool:
    found = await conn.fetch_value("SELECT 1 FROM organizations WHERE id = $1", account_id)
    return found is not None
