"""Service of preferences: reads and updates them, and says who wants a notification."""

from collections.abc import Collection
from dataclasses import replace

from pydantic import MISSING

from hublet.core.database import Connection, Reader
from hublet.notifications.errors import PrepaidAmountNeeded
from hublet.notifications.preferences import store
from hublet.notifications.preferences.schemas import UpdateNotificationSettings
from hublet.notifications.preferences.switches import (
    DEFAULT_PREFERENCES,
    PreferenceKey,
    Preferences,
)


async def who_wants(conn: Reader, key: PreferenceKey, user_ids: Collection[str]) -> frozenset[str]:
    """Return those of these users who have this key switched on."""
    chosen = await list_choices(conn, user_ids)
    return frozenset(each for each in user_ids if chosen[each].wants(key))


async def list_choices(conn: Reader, user_ids: Collection[str]) -> dict[str, Preferences]:
    """Return by user what they switched on and off."""
    chosen = await store.list_of(conn, user_ids)
    return {each: chosen.get(each, DEFAULT_PREFERENCES) for each in user_ids}


async def list_wanting(
    conn: Reader, key: PreferenceKey, *, after: str, limit: int
) -> tuple[list[str], str | None]:
    """Return those who switched a key on, of a page of users, and where the next page begins.

    The pages have only users who ever chose something: only for keys that are off by default.
    """
    page = await store.list_page(conn, after=after, limit=limit)
    wanting = [user_id for user_id, choices in page.items() if choices.wants(key)]
    return wanting, max(page) if len(page) == limit else None


async def get(conn: Reader, user_id: str) -> Preferences:
    return await store.find(conn, user_id)


async def update(
    conn: Connection, user_id: str, request: UpdateNotificationSettings
) -> Preferences:
    """Change the preferences that are named and keep the rest."""
    before = await _lock(conn, user_id)
    moment, amount = request.notifications.product_updates_after, request.prepaidAmount
    after = Preferences(
        switches={**before.switches, **request.notifications.switches()},
        product_updates_after=before.product_updates_after if moment is MISSING else moment,
        prepaid_amount=before.prepaid_amount if amount is MISSING else amount,
    )
    if not after.wants(PreferenceKey.launch_prepaid_credits):
        after = replace(after, prepaid_amount=None)
    elif not (after.prepaid_amount or "").strip():
        raise PrepaidAmountNeeded
    await store.save(conn, user_id, after)
    return after


async def turn_off(conn: Connection, user_id: str, key: PreferenceKey) -> None:
    """Switch one key off, as a link in a mail does; it may be off already."""
    before = await _lock(conn, user_id)
    if before.wants(key):
        await store.save(conn, user_id, replace(before, switches={**before.switches, key: False}))


async def _lock(conn: Connection, user_id: str) -> Preferences:
    """Lock the preferences of a user until the transaction ends, and return them."""
    await conn.lock(f"notification settings of {user_id}")
    return await store.find(conn, user_id)
