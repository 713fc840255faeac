"""Nothing that is done in a large inbox looks at more of it than in a small one."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from hublet.core.database import Database
from hublet.notifications.inbox import read_store, service
from hublet.notifications.records import Involvement, Selection
from notifications.inboxes import MENTIONED, PARTICIPATING, WATCHED, an_item, true_counts
from notifications.query_costs import measured
from people import a_user

SMALL, LARGE = 500, 4000
# So many items, the oldest, are of another sort than all the others.
OLD = 60
COMMON, RARE, RARER = "a" * 24, "b" * 24, "c" * 24


Rows = list[tuple[Any, ...]]


def old_and_rare(user_id: str, size: int) -> Rows:
    """What filters name is all at the far end, and only an index finds it without a search."""
    rows: Rows = []
    for place in range(size):
        thread = f"{place:024x}"
        if place >= OLD:
            rows.append((user_id, thread, "model", COMMON, WATCHED, True, place))
            continue
        kind, where = ("kernel", RARE) if place % 2 else ("post", RARER)
        involvement = MENTIONED if place % 3 else PARTICIPATING
        rows.append((user_id, thread, kind, where, involvement, False, place))
    return rows


def everywhere(user_id: str, size: int) -> Rows:
    """What filters name is everywhere, and only an index has it in order without sorting."""
    places = (("kernel", RARE), ("post", RARER), ("model", COMMON))
    return [
        (user_id, f"{n:024x}", *places[n % 3], Involvement(n // 3 % 3), n // 9 % 2 == 0, n)
        for n in range(size)
    ]


async def fill(database: Database, spread: Callable[[str, int], Rows]) -> tuple[str, str]:
    """Two users, one with a small inbox and one with a large one."""
    small, large = await a_user(database, "ada"), await a_user(database, "bob")
    async with database.transaction() as conn:
        for user_id, size in ((small.id, SMALL), (large.id, LARGE)):
            await conn.execute("INSERT INTO inboxes VALUES ($1, 1, $2)", user_id, size)
            await conn.execute_many(
                """
                INSERT INTO notifications
                    (user_id, thread_id, type, place_id, involvement, read, updated_at)
                VALUES ($1, $2, $3, $4, $5, $6, $7)
                """,
                spread(user_id, size),
            )
    counts = await true_counts(database)
    async with database.transaction() as conn:
        await conn.execute_many(
            "INSERT INTO notification_counts VALUES ($1, $2, $3, $4, $5)",
            [(*facet, *tally) for facet, tally in counts.items()],
        )
        if database.kind == "postgresql":
            for table in (*(f"notifications_{n}" for n in range(32)), "notification_counts"):
                # A statistic of its own, in the middle of a change, would count what goes as gone.
                await conn.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
                await conn.execute(f"ANALYZE {table}")
    return small.id, large.id


@pytest.fixture(params=[old_and_rare, everywhere])
async def users(request: pytest.FixtureRequest, database: Database) -> tuple[str, str]:
    return await fill(database, request.param)


@pytest.fixture
async def sparse_users(database: Database) -> tuple[str, str]:
    return await fill(database, old_and_rare)


def places(*ids: str) -> frozenset[str]:
    return frozenset(ids)


FILTERS = {
    "unread": Selection(unread=True),
    "a type": Selection(type="kernel"),
    "unread of a type": Selection(type="kernel", unread=True),
    "a place": Selection(places=places(RARE)),
    "unread in a place": Selection(places=places(RARE), unread=True),
    "two places": Selection(places=places(RARE, RARER)),
    "unread in two places": Selection(places=places(RARE, RARER), unread=True),
    "a type and a place": Selection(type="kernel", places=places(RARE)),
    "participating": Selection(least=PARTICIPATING),
    "unread and participating": Selection(least=PARTICIPATING, unread=True),
    "mentions": Selection(least=MENTIONED),
    "unread mentions": Selection(least=MENTIONED, unread=True),
    "mentions in a type": Selection(least=MENTIONED, type="kernel"),
    "no part in a common type": Selection(least=PARTICIPATING, type="model"),
    "mentions in a place": Selection(least=MENTIONED, places=places(RARE)),
    "a thread": Selection(threads=frozenset({f"{1:024x}"})),
    "threads": Selection(threads=frozenset({f"{n:024x}" for n in range(9)})),
    "thread and type": Selection(threads=frozenset({f"{1:024x}"}), type="kernel"),
}
ALL = FILTERS | {"no filter": Selection()}


def is_more(large: int, small: int) -> bool:
    # An index is a tree, and a larger one may be a step deeper; each part of a page may give one.
    return large > small * 1.2 + 60


async def effort_of_page(
    database: Database, user_id: str, selection: Selection, *, skip: int = 0
) -> int:
    async with measured(database) as (conn, effort):
        listed = await read_store.read_page_of(conn, user_id, selection, skip=skip)
        assert len(listed.entries) <= read_store.PAGE
    spent: int = effort.spent
    return spent


async def test_a_page_of_a_large_inbox_costs_what_one_of_a_small_one_does(
    database: Database, users: tuple[str, str]
) -> None:
    costly = {}
    for name, selection in ALL.items():
        small, large = [await effort_of_page(database, user, selection) for user in users]
        if is_more(large, small):
            costly[name] = (small, large)
    assert costly == {}


async def test_a_page_behind_the_end_costs_nothing(
    database: Database, users: tuple[str, str]
) -> None:
    costly = {}
    for name, selection in ALL.items():
        first = await effort_of_page(database, users[1], selection)
        last = await effort_of_page(database, users[1], selection, skip=2**50)
        # Which it is takes a step or two itself.
        if last > first + 5:
            costly[name] = (first, last)
    assert costly == {}


async def test_a_bound_costs_what_is_newer_and_no_more(
    database: Database, users: tuple[str, str]
) -> None:
    costly = {}
    for name, selection in ALL.items():
        small, large = [
            await effort_of_page(database, user, replace(selection, until=size - 10))
            for user, size in zip(users, (SMALL, LARGE), strict=True)
        ]
        if is_more(large, small):
            costly[name] = (small, large)
    assert costly == {}


async def effort_of_change(
    database: Database, user_id: str, selection: Selection, change: str
) -> tuple[int, int]:
    """Return the effort, and how many items changed."""
    async with measured(database) as (conn, effort):
        bound = await service.limit_to_now(conn, user_id, selection)
        if change == "mark":
            changed = await service.mark(conn, user_id, bound, read=True)
        else:
            changed = await service.delete(conn, user_id, bound)
    return effort.spent, changed


@pytest.mark.parametrize("change", ["mark", "delete"])
async def test_a_change_of_what_a_filter_finds_costs_what_it_finds(
    database: Database, sparse_users: tuple[str, str], change: str
) -> None:
    costly = {}
    for name, selection in FILTERS.items():
        (small, changed), (large, changed_in_large) = [
            await effort_of_change(database, user, selection, change) for user in sparse_users
        ]
        assert changed == changed_in_large
        if is_more(large, small):
            costly[name] = (small, large)
    assert costly == {}


async def test_an_arrival_costs_the_same_whatever_is_there(
    database: Database, sparse_users: tuple[str, str]
) -> None:
    spent = []
    for user in sparse_users:
        async with measured(database) as (conn, effort):
            await service.deliver(conn, an_item(f"{1:024x}"), {user: WATCHED})
            await service.remove_thread(conn, thread_id=f"{1:024x}", user_ids=[user])
            await service.remove_place(conn, RARE, user_ids=[user])
            await service.list_users_with(conn, thread_id=f"{2:024x}", after="", limit=9)
            await service.list_users_with(conn, place_id=RARE, after="", limit=9)
        spent.append(effort.spent)

    assert not is_more(spent[1], spent[0]), spent
