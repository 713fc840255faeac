"""Whatever happens in whatever order: counts are what a naive recount gives, lists what a model."""

import asyncio
import shutil
import tempfile
from collections.abc import Coroutine, Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings, strategies
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from conftest import _LEAVE_IT_EMPTY, psql
from hublet.core.config import Settings
from hublet.core.database import open_database
from hublet.core.hub import Hub
from hublet.core.sealing import KeyRing
from hublet.notifications.inbox import read_store, service
from hublet.notifications.records import Involvement, Selection
from notifications.inboxes import an_item, kept_counts, rows_of, true_counts
from people import a_user

T = TypeVar("T")

RING = KeyRing.new()
NAMES = ("ada", "bob", "cleo")
# Where each thread is, by its number: type and place.
PLACES: list[tuple[str, str | None]] = [
    ("model", "a" * 24),
    ("model", "a" * 24),
    ("model", "b" * 24),
    ("dataset", "c" * 24),
    ("post", "d" * 24),
    ("post", None),
    ("paper", None),
    ("blog", None),
]
THREADS = [f"{number:024x}" for number in range(len(PLACES))]

thread_numbers = strategies.integers(0, len(THREADS) - 1)
user_numbers = strategies.integers(0, len(NAMES) - 1)
involvements = strategies.sampled_from(Involvement)
sets_of_users = strategies.sets(user_numbers, min_size=1)


def some(values: Iterable[str]) -> strategies.SearchStrategy[frozenset[str] | None]:
    chosen = strategies.frozensets(strategies.sampled_from(list(values)), min_size=1, max_size=3)
    return strategies.none() | strategies.none() | chosen


# A bound is drawn as a share of the times that were ever assigned.
bounds = strategies.none() | strategies.none() | strategies.floats(0, 1)
selections = strategies.builds(
    Selection,
    type=strategies.sampled_from([None, None, "model", "post", "paper", "kernel"]),
    places=some(sorted({place for _, place in PLACES if place})),
    threads=some(THREADS),
    least=involvements,
    unread=strategies.booleans(),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What the model knows of an item."""

    type: str
    place: str | None
    involvement: Involvement
    read: bool
    at: int
    event: str | None
    last_event: str | None


def matches(selection: Selection, thread: str, row: Row) -> bool:
    """Tell what a selection means, as simply as it can be said."""
    return (
        # Places are all of one type, which is looked at where they are found.
        (selection.type in {None, row.type} or selection.places is not None)
        and (selection.places is None or row.place in selection.places)
        and (selection.threads is None or thread in selection.threads)
        and row.involvement >= selection.least
        and not (selection.unread and row.read)
        and row.at <= selection.until
    )


class Inboxes(RuleBasedStateMachine):
    template: Path
    url: str | None

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.stack = AsyncExitStack()
        self.model: dict[int, dict[str, Row]] = {number: {} for number in range(len(NAMES))}
        self.times: list[int] = [0]
        self.events = 0
        self.run(self.open())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    async def open(self) -> None:
        folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        if self.url is None:
            shutil.copy(self.template, folder / "hub.db")
        plain = Settings()
        place = replace(plain.database, data_dir=folder, url=self.url, pool_size=2)
        hub = Hub(settings=replace(plain, database=place), keys=RING)
        self.database = await self.stack.enter_async_context(open_database(hub))
        self.users = [(await a_user(self.database, name)).id for name in NAMES]

    def teardown(self) -> None:
        self.run(self.stack.aclose())
        if self.url is not None:
            self.run(psql(self.url, _LEAVE_IT_EMPTY))
        self.runner.close()

    async def do(self, change: Any, *arguments: Any, **named: Any) -> Any:
        async with self.database.transaction() as conn:
            return await change(conn, *arguments, **named)

    @rule(
        thread=thread_numbers,
        to=strategies.dictionaries(user_numbers, involvements, min_size=1),
        has_event=strategies.booleans(),
    )
    def deliver(self, thread: int, to: dict[int, Involvement], *, has_event: bool) -> None:
        self.events += 1
        event = f"e{self.events}" if has_event else None
        type, place = PLACES[thread]  # noqa: A001 - the column's name
        item = an_item(THREADS[thread], type=type, place_id=place, event_id=event)
        recipients = {self.users[user]: involvement for user, involvement in to.items()}
        self.run(self.do(service.deliver, item, recipients))
        for user, involvement in to.items():
            self._arrive(user, item, involvement)

    def _arrive(self, user: int, item: Any, involvement: Involvement) -> None:
        newest = self.run(rows_of(self.database, self.users[user]))[0]
        before = self.model[user].get(item.thread_id)
        latest = max((row.at for row in self.model[user].values()), default=0)
        assert newest["thread_id"] == item.thread_id
        assert newest["updated_at"] > latest
        self.times.append(newest["updated_at"])
        keeps = before is not None and not before.read
        self.model[user][item.thread_id] = Row(
            type=item.type,
            place=item.place_id,
            involvement=max(involvement, before.involvement) if before else involvement,
            read=False,
            at=newest["updated_at"],
            event=before.event if before and keeps else item.event_id,
            last_event=item.event_id,
        )

    @rule(thread=thread_numbers, user=user_numbers, involvement=involvements)
    def involve(self, thread: int, user: int, involvement: Involvement) -> None:
        self.run(self.do(service.involve, THREADS[thread], self.users[user], involvement))
        row = self.model[user].get(THREADS[thread])
        if row is not None:
            grown = max(row.involvement, involvement)
            self.model[user][THREADS[thread]] = replace(row, involvement=grown)

    @rule(thread=thread_numbers, users=sets_of_users)
    def remove(self, thread: int, users: set[int]) -> None:
        ids = [self.users[user] for user in users]
        self.run(self.do(service.remove_thread, thread_id=THREADS[thread], user_ids=ids))
        for user in users:
            self.model[user].pop(THREADS[thread], None)

    @rule(thread=thread_numbers, users=sets_of_users)
    def remove_place(self, thread: int, users: set[int]) -> None:
        place = PLACES[thread][1] or "e" * 24
        ids = [self.users[user] for user in users]
        self.run(self.do(service.remove_place, place, user_ids=ids))
        for user in users:
            rows = self.model[user]
            self.model[user] = {t: row for t, row in rows.items() if row.place != place}

    def bound(self, selection: Selection, share: float | None) -> Selection:
        if share is None:
            return selection
        place = round(share * (len(self.times) - 1))
        return replace(selection, until=sorted(self.times)[place])

    def matching(self, user: int, selection: Selection) -> dict[str, Row]:
        return {t: row for t, row in self.model[user].items() if matches(selection, t, row)}

    @rule(user=user_numbers, selection=selections, share=bounds, read=strategies.booleans())
    def mark(self, user: int, selection: Selection, share: float | None, *, read: bool) -> None:
        selection = self.bound(selection, share)
        found = self.matching(user, selection)
        differing = {t: row for t, row in found.items() if row.read is not read}
        changed = self.run(self.do(service.mark, self.users[user], selection, read=read))
        assert changed == len(differing)
        for thread, row in differing.items():
            event = row.event if read else row.last_event
            self.model[user][thread] = replace(row, read=read, event=event)

    @rule(user=user_numbers, selection=selections, share=bounds)
    def delete(self, user: int, selection: Selection, share: float | None) -> None:
        selection = self.bound(selection, share)
        found = self.matching(user, selection)
        assert self.run(self.do(service.delete, self.users[user], selection)) == len(found)
        for thread in found:
            del self.model[user][thread]

    @rule(user=user_numbers, selection=selections, share=bounds, skip=strategies.integers(0, 3))
    def look(self, user: int, selection: Selection, share: float | None, skip: int) -> None:
        selection = self.bound(selection, share)
        listed = self.run(self._page(user, selection, skip))
        found = self.matching(user, selection)
        either = self.matching(user, replace(selection, unread=False))
        newest_first = sorted(found, key=lambda thread: -found[thread].at)
        assert [entry.thread_id for entry in listed.entries] == newest_first[skip:]
        assert listed.total == len(either)
        assert listed.unread == sum(not row.read for row in either.values())

    async def _page(self, user: int, selection: Selection, skip: int) -> Any:
        async with self.database.read() as conn:
            return await read_store.read_page_of(conn, self.users[user], selection, skip=skip)

    @invariant()
    def counts_are_what_a_recount_gives(self) -> None:
        assert self.run(kept_counts(self.database)) == self.run(true_counts(self.database))

    @invariant()
    def inboxes_hold_what_the_model_holds(self) -> None:
        for user, user_id in enumerate(self.users):
            rows = self.run(rows_of(self.database, user_id))
            assert {row["thread_id"]: _known(row) for row in rows} == self.model[user]


def _known(row: dict[str, Any]) -> Row:
    return Row(
        type=row["type"],
        place=row["place_id"],
        involvement=Involvement(row["involvement"]),
        read=row["read"],
        at=row["updated_at"],
        event=row["event_id"],
        last_event=row["last_event_id"],
    )


@pytest.mark.parametrize(("engine", "examples"), [("sqlite", 25), ("postgresql", 8)])
def test_inboxes_agree_with_a_naive_model(
    engine: str, examples: int, request: pytest.FixtureRequest, sqlite_template: Path
) -> None:
    url = None if engine == "sqlite" else request.getfixturevalue("migrated_postgresql")

    class OnThisEngine(Inboxes):
        pass

    OnThisEngine.template, OnThisEngine.url = sqlite_template, url
    run_state_machine_as_test(
        OnThisEngine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )
