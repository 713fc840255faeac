"""SQL conditions: of a selection of items, and of whether a user may see a repository."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Self

from hublet.accounts.records import Role
from hublet.core.database import Row
from hublet.events import RepoSnapshot
from hublet.notifications.records import Involvement, Selection
from hublet.repos.access import role_in_repo


@dataclass(frozen=True, slots=True)
class Condition:
    """Parts joined by AND, and the values of their numbered parameters."""

    parts: tuple[str, ...] = ()
    values: tuple[Any, ...] = ()

    def also(self, part: str, *values: Any) -> Self:
        """Add a part; each `?` in it is the parameter of one value."""
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
    if selection.except_owners:
        condition = _not_of(condition, selection.except_owners)
    return _in_time(condition, selection)


def _not_of(condition: Condition, owners: Iterable[str]) -> Condition:
    """Leave out what is in repositories of these owners, and what they published."""
    listed = json.dumps(sorted(owners))
    return condition.also(
        """
        (place_id IS NULL OR place_id NOT IN each(?)
         AND place_id NOT IN (SELECT id FROM repos WHERE owner_id IN each(?)))
        """,
        listed,
        listed,
    )


def _in_time(condition: Condition, selection: Selection) -> Condition:
    if selection.threads is not None:
        # Keeps both engines from scanning all that is older instead.
        return condition.also("updated_at + 0 <= ?", selection.until)
    # Also where it excludes nothing: SQLite, which has no statistics of one inbox, would assume
    # that "involvement > 0" finds fewer items than "involvement = 1", and sort what it finds.
    return condition.also("updated_at <= ?", selection.until)


def _in_one_of(condition: Condition, places: Iterable[str]) -> Condition:
    # Written out, because PostgreSQL cannot estimate how common those of an array are.
    first, *more = sorted(places)
    if more:
        listed = ", ".join("?" for _ in (first, *more))
        return condition.also(f"place_id IN ({listed})", first, *more)
    return condition.also("place_id = ?", first)


def _type_beside(selection: Selection) -> str:
    # A user is involved in few threads of any type, so that index is the better one, and so is the
    # one of named threads: an expression keeps both engines from the index of types.
    is_free = selection.least is Involvement.watched and selection.threads is None
    return "type = ?" if is_free else "type || '' = ?"


def _involved(condition: Condition, selection: Selection) -> Condition:
    if selection.places is None and selection.threads is None:
        # SQLite uses the partial index only when its very condition is in the query.
        condition = condition.also("involvement > 0")
    return condition.also(f"involvement {'=' if selection.exactly else '>='} ?", selection.least)


def split_in_order(selection: Selection) -> Iterator[Selection]:
    """Split a selection into those of which an index has each in the order of time."""
    if selection.threads is not None:
        yield selection
    elif selection.places is not None:
        for place in sorted(selection.places):
            yield replace(selection, places=frozenset({place}))
    else:
        # `least` at its lowest level is no condition at all.
        levels = [each for each in Involvement if each >= selection.least > Involvement.watched]
        for level in levels or [selection.least]:
            yield replace(selection, least=level, exactly=True)


# For a statement in which repositories are called `r` and the user's id is the first value.
REPO_COLUMNS = """
    r.id AS repo_id, r.type AS repo_type, r.name AS repo_name, r.owner_id AS repo_owner_id,
    r.visibility, r.resource_group_id, m.role AS organization_role, g.role AS group_role
"""
ROLE_JOINS = """
    LEFT JOIN memberships m ON m.organization_id = r.owner_id AND m.user_id = $1
    LEFT JOIN resource_group_members g
        ON g.resource_group_id = r.resource_group_id AND g.user_id = $1
"""


def may_see(row: Row, user_id: str) -> bool:
    """Tell whether a user may see the repository in a row, as `repos.service.who_may_see` does."""
    if row["visibility"] == "public" or row["repo_owner_id"] == user_id:
        return True
    repo = RepoSnapshot(
        id=row["repo_id"],
        type=row["repo_type"],
        name=row["repo_name"],
        owner_id=row["repo_owner_id"],
        private=True,
        resource_group_id=row["resource_group_id"],
    )
    organization, group = _role(row["organization_role"]), _role(row["group_role"])
    return role_in_repo(repo, organization=organization, group=group) is not None


def _role(name: str | None) -> Role | None:
    return Role(name) if name else None
