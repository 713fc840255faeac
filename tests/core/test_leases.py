"""Leases of a worker are extended in time, and those that have expired are released."""

from collections.abc import Collection
from datetime import timedelta

import pytest

from hublet.core import clock
from hublet.core.database import Connection, Database, DatabaseUnavailable, Reader
from hublet.core.leases import LeaseKeeper, lease_clock


class NotedLeases:
    """A store that notes what it is asked to do."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[str]]] = []
        self.expired = False
        self.lost: list[str] = []
        self.failure: Exception | None = None

    async def extend(self, _conn: Connection, held: Collection[str]) -> list[str]:
        self.calls.append(("extend", sorted(held)))
        if self.failure is not None:
            raise self.failure
        return self.lost

    async def has_expired(self, _conn: Reader, _held: Collection[str]) -> bool:
        return self.expired

    async def release_expired(self, _conn: Connection, held: Collection[str]) -> None:
        self.calls.append(("release expired", sorted(held)))

    async def release_all(self, _conn: Connection) -> int:
        self.calls.append(("release all", []))
        return 7


@pytest.fixture
def leases() -> NotedLeases:
    return NotedLeases()


def a_keeper(
    database: Database, leases: NotedLeases, held: set[str], *, interval_seconds: float = 0
) -> LeaseKeeper[str]:
    return LeaseKeeper(database, leases, held, interval_seconds=interval_seconds)


async def test_what_is_held_now_is_extended_and_what_is_lost_returned(
    database: Database, leases: NotedLeases
) -> None:
    held: set[str] = set()
    keeper = a_keeper(database, leases, held)
    held.update({"a", "b"})
    leases.lost = ["b"]

    assert await keeper.extend_when_due() == ["b"]
    assert leases.calls == [("extend", ["a", "b"])]


async def test_nothing_is_extended_before_its_interval_has_passed(
    database: Database, leases: NotedLeases
) -> None:
    keeper = a_keeper(database, leases, {"a"}, interval_seconds=60)

    assert await keeper.extend_when_due() == []
    assert leases.calls == []


async def test_a_worker_that_holds_nothing_releases_what_has_expired(
    database: Database, leases: NotedLeases
) -> None:
    leases.expired = True

    await a_keeper(database, leases, set()).extend_when_due()

    assert leases.calls == [("release expired", [])]


async def test_what_is_held_is_extended_before_the_expired_is_released(
    database: Database, leases: NotedLeases
) -> None:
    leases.expired = True

    await a_keeper(database, leases, {"a"}).extend()

    assert leases.calls == [("extend", ["a"]), ("release expired", ["a"])]


async def test_a_failure_to_extend_counts_as_silence(
    database: Database, leases: NotedLeases, monkeypatch: pytest.MonkeyPatch
) -> None:
    leases.failure = DatabaseUnavailable("away")
    keeper = a_keeper(database, leases, {"a"})
    began = clock.monotonic()
    monkeypatch.setattr("hublet.core.leases.monotonic", lambda: began + 20)

    with pytest.raises(DatabaseUnavailable):
        await keeper.extend()
    assert keeper.silent_seconds >= 19
    leases.failure = None
    await keeper.extend()
    assert keeper.silent_seconds == 0


async def test_all_leases_are_handed_back(database: Database, leases: NotedLeases) -> None:
    async with database.transaction() as conn:
        assert await a_keeper(database, leases, {"a"}).hand_back(conn) == 7


def test_a_moved_clock_moves_no_lease() -> None:
    before = lease_clock()
    clock.move(timedelta(days=300))
    try:
        assert lease_clock() - before < 60_000_000
    finally:
        clock.reset()
