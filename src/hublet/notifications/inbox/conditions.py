"""What a selection means in SQL: conditions on the rows of `notifications`."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Self

from hublet.notifications.inbox.records import Selection
from hublet.notifications.records import Involvement


@dataclass(frozen=True, slots=True)
class Condition:
    """Parts that all hold, and the values of numbered places, those of earlier parts first."""

    parts: tuple[str, ...] = ()
    values: tuple[Any, ...] = ()

    def also(self, part: str, *values: Any) -> Self:
        """Add a part; each `?` in it is the place of one value."""
        numbers = (f"${number}" for number in count(len(self.values) + 1))
        numbered = re.sub(r"\?", lambda _: next(numbers), part)
        return type(self)((*self.parts, numbered), (*self.values, *values))

    @property
    def sql(self) -> str:
        return " AND ".join(self.parts)


def in_inbox(user_id: str, *, after: Condition | None = None) -> Condition:
    return Condition(values=after.values if after else ()).also("user_id = ?", user_id)


def in_inboxes(user_ids: Iterable[str]) -> Condition:
    return Condition().also("user_id IN each(?)", json.dumps(sorted(user_ids)))


def chosen_by(user_id: str, selection: Selection, *, after: Condition | None = None) -> Condition:
    """Return the condition on the items of one inbox that are selected."""
    condition = in_inbox(user_id, after=after)
    if selection.unread:
        condition = condition.also("NOT read")
    if selection.threads is not None:
        threads = json.dumps(sorted(selection.threads))
        condition = condition.also("thread_id IN each(?)", threads)
    if selection.places is not None:
        condition = _in_one_of(condition, selection.places)
    elif selection.type is not None:
        condition = condition.also(_type_beside(selection), selection.type)
    if selection.least is not Involvement.watched:
        condition = _involved(condition, selection)
    return _in_time(condition, selection)


def _in_time(condition: Condition, selection: Selection) -> Condition:
    if selection.threads is not None:
        # No engine is to look through all that is older instead.
        return condition.also("updated_at + 0 <= ?", selection.until)
    # Also where it excludes nothing: SQLite, which knows no figures of an inbox, would think that
    # "involvement > 0" finds fewer items than "involvement = 1", and sort what it finds.
    return condition.also("updated_at <= ?", selection.until)


def _in_one_of(condition: Condition, places: Iterable[str]) -> Condition:
    # Written out, because PostgreSQL cannot guess how common those of an array are.
    first, *more = sorted(places)
    if more:
        listed = ", ".join("?" for _ in (first, *more))
        return condition.also(f"place_id IN ({listed})", first, *more)
    return condition.also("place_id = ?", first)


def _type_beside(selection: Selection) -> str:
    # Few threads of any type involve somebody, so that index is the better one, and so is the
    # one of threads that are named: an expression keeps both engines from that of types.
    is_free = selection.least is Involvement.watched and selection.threads is None
    return "type = ?" if is_free else "type || '' = ?"


def _involved(condition: Condition, selection: Selection) -> Condition:
    if selection.places is None and selection.threads is None:
        # SQLite takes the index of those who are involved only for its very words.
        condition = condition.also("involvement > 0")
    return condition.also(f"involvement {'=' if selection.exactly else '>='} ?", selection.least)


def in_order(selection: Selection) -> Iterator[Selection]:
    """Split a selection into those of which an index has each in the order of time."""
    if selection.threads is not None:
        yield selection
    elif selection.places is not None:
        for place in sorted(selection.places):
            yield replace(selection, places=frozenset({place}))
    else:
        # `least` of those who merely watch is no condition at all.
        levels = [each for each in Involvement if each >= selection.least > Involvement.watched]
        for level in levels or [selection.least]:
            yield replace(selection, least=level, exactly=True)
