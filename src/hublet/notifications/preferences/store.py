"""SQL of preferences."""

from collections.abc import Collection

import msgspec

from hublet.core.clock import from_micros, micros, to_micros
from hublet.core.database import Connection, Reader, Row
from hublet.notifications.preferences.switches import (
    DEFAULT_PREFERENCES,
    PRODUCT_UPDATES_AFTER,
    PreferenceKey,
    Preferences,
)

_COLUMNS = "user_id, settings, prepaid_amount"


async def find(conn: Reader, user_id: str) -> Preferences:
    row = await conn.fetch_one(
        f"SELECT {_COLUMNS} FROM notification_settings WHERE user_id = $1", user_id
    )
    return _record(row) if row else DEFAULT_PREFERENCES


async def list_of(conn: Reader, user_ids: Collection[str]) -> dict[str, Preferences]:
    """Return the preferences of these users; those who never chose anything are left out."""
    rows = await conn.fetch_all(
        f"SELECT {_COLUMNS} FROM notification_settings WHERE user_id IN each($1)",
        msgspec.json.encode(list(user_ids)).decode(),
    )
    return {row["user_id"]: _record(row) for row in rows}


async def list_page(conn: Reader, *, after: str, limit: int) -> dict[str, Preferences]:
    """Return those who ever chose something, in the order of their ids."""
    rows = await conn.fetch_all(
        f"""
        SELECT {_COLUMNS} FROM notification_settings WHERE user_id > $1
        ORDER BY user_id LIMIT $2
        """,
        after, limit,
    )  # fmt: skip
    return {row["user_id"]: _record(row) for row in rows}


async def save(conn: Connection, user_id: str, choices: Preferences) -> None:
    await conn.execute(
        """
        INSERT INTO notification_settings (user_id, settings, prepaid_amount, updated_at)
        VALUES ($1, $2, $3, $4)
        ON CONFLICT (user_id) DO UPDATE SET settings = excluded.settings,
            prepaid_amount = excluded.prepaid_amount, updated_at = excluded.updated_at
        """,
        user_id, _encode(choices), choices.prepaid_amount, micros(),
    )  # fmt: skip


def _encode(choices: Preferences) -> str:
    saved: dict[str, bool | int] = {str(key): on for key, on in choices.switches.items()}
    if choices.product_updates_after is not None:
        saved[PRODUCT_UPDATES_AFTER] = to_micros(choices.product_updates_after)
    return msgspec.json.encode(saved).decode()


def _record(row: Row) -> Preferences:
    saved: dict[str, bool | int] = msgspec.json.decode(row["settings"])
    moment = saved.pop(PRODUCT_UPDATES_AFTER, None)
    return Preferences(
        switches={PreferenceKey(name): bool(on) for name, on in saved.items()},
        product_updates_after=None if moment is None else from_micros(moment),
        prepaid_amount=row["prepaid_amount"],
    )
