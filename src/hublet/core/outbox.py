"""Outbox: events commit with the change that causes them; a worker dispatches them as tasks."""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any, ClassVar, TypeVar

import msgspec

from hublet.core import queue
from hublet.core.clock import micros
from hublet.core.database import Connection, Reader, Row
from hublet.core.ids import new_object_id
from hublet.core.tracing import current_traceparent

CHANNEL = "outbox"


class Event:
    """An event that was committed. Subclasses are frozen dataclasses with a `kind`."""

    __slots__ = ()

    kind: ClassVar[str]
    catalogue: ClassVar[dict[str, type["Event"]]] = {}

    def __init_subclass__(cls) -> None:
        # `dataclass(slots=True)` makes the class twice; the second one is the one to keep.
        known = Event.catalogue.setdefault(cls.kind, cls)
        if known.__name__ != cls.__name__:
            raise TypeError(f"{known.__name__} has the kind {cls.kind} already.")
        Event.catalogue[cls.kind] = cls


E = TypeVar("E", bound=Event)


Reaction = Callable[[Connection, E], Awaitable[None]]

# Reactions by the kind of event, each under the name its task carries.
reactions: dict[str, dict[str, Callable[[Connection, Any], Awaitable[None]]]] = {}


# For which events a reaction gets a task, by the kind of the task; without a condition for all.
_conditions: dict[str, Callable[[Any], bool]] = {}


def reacts_to(
    event_type: type[E], *, when: Callable[[E], bool] | None = None
) -> Callable[[Reaction[E]], Reaction[E]]:
    """Run the function once for each such event, whatever crashes in between.

    An event for which `when` is false makes no task: most reactions have to do with few events of
    a kind, and a task costs more than a look.

    The transaction it is given also ends its task, so its writes and its end commit
    together; what must not happen in a transaction it adds to the queue. Its task carries the
    name of the feature and of the function: to rename either takes a migration of `tasks`.
    """

    def register(reaction: Reaction[E]) -> Reaction[E]:
        feature = reaction.__module__.removeprefix("hublet.").partition(".")[0]
        name = f"{feature}.{reaction.__name__}"
        reactions.setdefault(event_type.kind, {})[name] = reaction
        if when is not None:
            _conditions[_task_kind(event_type.kind, name)] = when
        queue.handles(_task_kind(event_type.kind, name), reads=event_type)(reaction)
        return reaction

    return register


# Reactions that belong to the transaction of the event itself, by the kind of event.
_in_transaction: dict[str, list[Callable[[Connection, Any], Awaitable[None]]]] = {}


def reacts_in_transaction_to(event_type: type[E]) -> Callable[[Reaction[E]], Reaction[E]]:
    """Run the function in the very transaction that publishes such an event: both or neither.

    The publisher waits for it, and fails with it: it must be short and must not fail.
    """

    def register(reaction: Reaction[E]) -> Reaction[E]:
        _in_transaction.setdefault(event_type.kind, []).append(reaction)
        return reaction

    return register


def _task_kind(event_kind: str, reaction: str) -> str:
    # One function may react to several kinds, and each is read as another type.
    return f"reaction:{event_kind}:{reaction}"


async def publish(conn: Connection, event: Event) -> None:
    """Commit the event together with the change it describes."""
    await publish_many(conn, [event])


async def publish_many(conn: Connection, events: Iterable[Event]) -> None:
    now, events, trace = micros(), list(events), current_traceparent()
    await conn.execute_many(
        "INSERT INTO outbox (id, kind, body, published_at, trace) VALUES ($1, $2, $3, $4, $5)",
        [
            (new_object_id(), event.kind, msgspec.json.encode(event).decode(), now, trace)
            for event in events
        ],
    )
    for event in events:
        for reaction in _in_transaction.get(event.kind, ()):
            await reaction(conn, event)
    conn.wake(CHANNEL)


async def dispatch(conn: Connection, *, limit: int) -> int:
    """Turn published events into one task per reaction, oldest first; return how many events.

    Kinds that this version does not know stay, for a worker of the version that does.
    """
    rows = await conn.claim(
        """
        WITH oldest AS (
            SELECT id FROM outbox WHERE kind IN each($1) ORDER BY id LIMIT $2 /* claim */
        )
        DELETE FROM outbox WHERE id IN (SELECT id FROM oldest) RETURNING id, kind, body, trace
        """,
        _known_kinds(), limit,
    )  # fmt: skip
    await queue.add_many(
        conn,
        [
            queue.NewTask(
                kind=_task_kind(row["kind"], name),
                body=row["body"],
                key=f"{row['id']}.{name}",
                trace=row["trace"],
            )
            for row in sorted(rows, key=lambda row: str(row["id"]))
            for name in _reactions_to(row)
        ],
    )
    return len(rows)


def _reactions_to(row: Row) -> Iterator[str]:
    kind, event = row["kind"], None
    for name in reactions.get(kind, ()):
        condition = _conditions.get(_task_kind(kind, name))
        if condition is not None:
            # One that cannot be read, as of a newer version, is its task's to fail with: raised here
            # it would hold up all others.
            with suppress(msgspec.DecodeError):
                event = event or msgspec.json.decode(row["body"], type=Event.catalogue[kind])
                if not condition(event):
                    continue
        yield name


async def is_waiting(conn: Reader) -> bool:
    """Tell whether there is an event that this version can dispatch."""
    value = await conn.fetch_value(
        "SELECT 1 FROM outbox WHERE kind IN each($1) LIMIT 1", _known_kinds()
    )
    return value is not None


def _known_kinds() -> str:
    return msgspec.json.encode(list(Event.catalogue)).decode()


async def count_waiting(conn: Reader) -> int:
    count: int = await conn.fetch_value("SELECT count(*) FROM outbox")
    return count
