"""SQL of lists of repositories and of download counts.

Public repositories have an index for each order, and so have the private ones of each owner, of which
only those of a caller's own owners are read: a page costs the same however many repositories a hub has. A tag, a link or a range
of parameters that few repositories match is read by its own index; one that many match is looked for
along the order, where a page is soon full. So it is with parts of names.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from hublet.accounts.names import name_key
from hublet.accounts.records import Role
from hublet.core import totals
from hublet.core.database import Reader
from hublet.core.dataclasses import dataclass
from hublet.repos.browse.records import (
    ListOrder,
    ListPosition,
    ListSort,
    OwnerListPosition,
    RepoFilter,
)
from hublet.repos.names import repo_name_key
from hublet.repos.records import LinkKind, Reach, Repo, RepoType
from hublet.repos.store import COLUMNS, OWNER, record

# So many owners have a part of their own in the statement of a list.
_MOST_PARTS = 20


class StatementValues:
    """Values of a statement under construction, each with its number."""

    def __init__(self) -> None:
        self.all: list[object] = []

    def put(self, value: object) -> str:
        self.all.append(value)
        return f"${len(self.all)}"

    def put_list(self, values: Iterable[str]) -> str:
        return f"each({self.put(json.dumps(list(values)))})"


async def roles_of_user(conn: Reader, user_id: str) -> dict[str, Role]:
    """Return a user's roles by the id of the organization."""
    rows = await conn.fetch_all(
        "SELECT organization_id, role FROM memberships WHERE user_id = $1", user_id
    )
    return {row["organization_id"]: Role(row["role"]) for row in rows}


async def list_of_type(
    conn: Reader,
    filters: RepoFilter,
    reach: Reach | None,
    *,
    order: ListOrder,
    after: ListPosition | None,
    limit: int,
) -> list[Repo]:
    """Return public repositories, and private ones within reach."""
    values = StatementValues()
    most = values.put(limit)
    public, private = (
        filters if ids is None else replace(filters, candidate_ids=ids)
        for ids in (filters.public_ids, filters.private_ids)
    )

    def part_of(among: RepoFilter) -> _ListPart:
        return _list_part(values, among, order, after)

    shared = part_of(public)
    parts = [shared.having("r.visibility = 'public'")]
    if reach is not None:
        hidden = shared if private is public else part_of(private)
        parts += map(hidden.having, _private_parts(values, reach, private))
    # Each part has its own limit, so that none is read to its end.
    union = " UNION ALL ".join(
        f"SELECT * FROM ({part} LIMIT {most}) AS part_{number}" for number, part in enumerate(parts)
    )
    rows = await conn.fetch_all(
        f"""
        SELECT {COLUMNS} FROM ({union}) AS r {OWNER}
        ORDER BY {_sorting(f"r.{order.sort}", order)} LIMIT {most}
        """,
        *values.all,
    )
    return [record(row) for row in rows]


@dataclass(frozen=True, slots=True)
class _ListPart:
    """What the statements of a list have in common that read one part of it."""

    conditions: Sequence[str]
    sorting: str

    def having(self, condition: str) -> str:
        where = " AND ".join([condition, *self.conditions])
        return f"SELECT r.* FROM repos r WHERE {where} ORDER BY {self.sorting}"


def _list_part(
    values: StatementValues, filters: RepoFilter, order: ListOrder, after: ListPosition | None
) -> _ListPart:
    key = _key(filters, order)
    conditions = [*_conditions(values, filters), *_after_position(values, key, order, after)]
    return _ListPart(conditions, _sorting(key, order))


def _private_parts(values: StatementValues, reach: Reach, filters: RepoFilter) -> list[str]:
    """Return the conditions of private repositories: a part for each owner, whose index has the order.

    They are read together and sorted where they are few, or of one owner; and of whoever belongs to
    very many organizations, most of which have few.
    """
    owners = sorted({*reach.readable, *reach.where_created})
    if len(owners) > _MOST_PARTS or filters.candidate_ids is not None or filters.author:
        conditions = [_reach_condition(values, reach)]
    else:
        conditions = [_owner_condition(values, reach, owner) for owner in owners]
    return [f"r.visibility <> 'public' AND {condition}" for condition in conditions]


async def list_visible(conn: Reader, repo_ids: Iterable[str], reach: Reach | None) -> list[Repo]:
    """Return those of these repositories that are public or within reach."""
    values = StatementValues()
    named = f"r.id IN {values.put_list(repo_ids)}"
    rows = await conn.fetch_all(
        f"""
        SELECT {COLUMNS} FROM repos r {OWNER}
        WHERE {named} AND {visible_condition(values, reach)}
        """,
        *values.all,
    )
    return [record(row) for row in rows]


async def list_visible_ids(
    conn: Reader, repo_ids: Iterable[str], reach: Reach | None, filters: RepoFilter
) -> dict[str, bool]:
    """Return the ids of `list_visible`, each with whether it is gated; no card is read."""
    values = StatementValues()
    conditions = [f"r.id IN {values.put_list(repo_ids)}", *_conditions(values, filters)]
    conditions.append(visible_condition(values, reach))
    rows = await conn.fetch_all(
        f"SELECT r.id, r.gated FROM repos r WHERE {' AND '.join(conditions)}", *values.all
    )
    return {row["id"]: row["gated"] is not None for row in rows}


async def list_group_ids(conn: Reader, reach: Reach) -> list[str]:
    """Return the resource groups whose private repositories are within reach."""
    values = StatementValues()
    owners = values.put_list({*reach.readable, *reach.where_created})
    rows = await conn.fetch_all(
        f"""
        SELECT g.id FROM resource_groups g WHERE g.organization_id IN {owners}
          AND (g.organization_id IN {values.put_list(reach.administered)}
               OR g.id IN (SELECT m.resource_group_id FROM resource_group_members m
                           WHERE m.user_id = {values.put(reach.user_id)}))
        ORDER BY g.id
        """,
        *values.all,
    )
    return [row["id"] for row in rows]


async def list_linking(
    conn: Reader, names: Mapping[str, Sequence[str]], reach: Reach | None, *, limit: int
) -> dict[str, list[str]]:
    """Return the spaces whose cards name these models, by the model's id; the oldest first."""
    values = StatementValues()
    visible, most = visible_condition(values, reach), values.put(limit)
    parts = [
        f"""
        SELECT * FROM (
            SELECT CAST({values.put(repo_id)} AS TEXT) AS target_id, r.id,
                coalesce(owning_user.name, owning_org.name) || '/' || r.name AS name
            FROM repos r {OWNER} WHERE r.id IN
                (SELECT l.repo_id {_links(values, RepoType.space, LinkKind.model, targets)})
            AND {visible} ORDER BY r.id LIMIT {most}
        ) AS part
        """
        for repo_id, targets in names.items()
    ]
    found: dict[str, list[str]] = {repo_id: [] for repo_id in names}
    for row in await conn.fetch_all(" UNION ALL ".join(parts), *values.all):
        found[row["target_id"]].append(row["name"])
    return found


async def count_children(
    conn: Reader, names: Mapping[str, Sequence[str]], reach: Reach | None, *, most: int
) -> dict[str, int]:
    """Return how many models name these as their base, by id, counted up to a limit."""
    values = StatementValues()
    visible, limit = visible_condition(values, reach), values.put(most)
    parts = [
        f"""
        SELECT CAST({values.put(repo_id)} AS TEXT) AS target_id, count(*) AS children FROM (
            SELECT r.id FROM repos r WHERE r.id IN
                (SELECT l.repo_id {_links(values, RepoType.model, LinkKind.base_model, targets)})
            AND {visible} LIMIT {limit}
        ) AS part
        """
        for repo_id, targets in names.items()
    ]
    rows = await conn.fetch_all(" UNION ALL ".join(parts), *values.all)
    return {row["target_id"]: row["children"] for row in rows}


async def list_of_owner(
    conn: Reader, owner_id: str, reach: Reach, *, after: OwnerListPosition, limit: int
) -> list[Repo]:
    """Return an owner's repositories of all types, by type, the oldest first."""
    values = StatementValues()
    owner, most = values.put(owner_id), values.put(limit)
    position = ", ".join(values.put(value) for value in (after.type, after.value, after.repo_id))
    rows = await conn.fetch_all(
        f"""
        SELECT {COLUMNS} FROM repos r {OWNER}
        WHERE r.owner_id = {owner} AND (r.type, r.created_at, r.id) > ({position})
          AND {visible_condition(values, reach)}
        ORDER BY r.type, r.created_at, r.id LIMIT {most}
        """,
        *values.all,
    )
    return [record(row) for row in rows]


async def size_of_owner(conn: Reader, owner_id: str) -> int:
    """Return how many bytes all repositories of an owner have together."""
    return await totals.read(conn, "repo_bytes", owner_id)


def _key(filters: RepoFilter, order: ListOrder) -> str:
    # The plus sign keeps both engines from the index of this order: it is not by owner, nor by what
    # few repositories match, and they would search all repositories for those.
    by_owner = filters.author and order.sort is not ListSort.creation
    return (
        f"+r.{order.sort}" if by_owner or filters.candidate_ids is not None else f"r.{order.sort}"
    )


def _sorting(key: str, order: ListOrder) -> str:
    direction = "ASC" if order.ascending else "DESC"
    return f"{key} {direction}, r.id {direction}"


def _after_position(
    values: StatementValues, key: str, order: ListOrder, after: ListPosition | None
) -> list[str]:
    if after is None:
        return []
    position = f"({values.put(after.value)}, {values.put(after.repo_id)})"
    return [f"({key}, r.id) {'>' if order.ascending else '<'} {position}"]


def _conditions(values: StatementValues, filters: RepoFilter) -> list[str]:
    if filters.candidate_ids is not None:
        # All are of the type: a second look at it would tempt SQLite to an index that begins with it.
        conditions = [f"r.id IN {values.put_list(filters.candidate_ids)}"]
    else:
        conditions = [f"r.type = {values.put(filters.type)}"]
    if filters.author:
        author = values.put(name_key(filters.author))
        conditions.append(f"r.owner_id = (SELECT account_id FROM names WHERE key = {author})")
    if filters.owner_ids is not None:
        conditions.append(f"r.owner_id IN {values.put_list(filters.owner_ids)}")
    if filters.gated is not None:
        conditions.append(f"r.gated IS {'NOT NULL' if filters.gated else 'NULL'}")
    for word in filters.words:
        pattern = values.put(containing(repo_name_key(word)))
        owner = "(SELECT n.key FROM names n WHERE n.account_id = r.owner_id)"
        conditions.append(rf"{owner} || '/' || r.name_key LIKE {pattern} ESCAPE '\'")
    if filters.name_part:
        pattern = values.put(containing(repo_name_key(filters.name_part)))
        conditions.append(rf"r.name_key LIKE {pattern} ESCAPE '\'")
    for tag in filters.tags:
        # Tags are kept as JSON, whose letters are all ASCII: both engines lower them alike.
        pattern = values.put(containing(json.dumps(tag).lower()))
        conditions.append(rf"lower(r.tags) LIKE {pattern} ESCAPE '\'")
    return [
        *conditions,
        *_link_conditions(values, filters),
        *_parameter_conditions(values, filters),
    ]


def _link_conditions(values: StatementValues, filters: RepoFilter) -> list[str]:
    found = (_links(values, filters.type, link.kind, link.targets) for link in filters.links)
    return [f"EXISTS (SELECT 1 {each} AND l.repo_id = r.id)" for each in found]


def _links(
    values: StatementValues,
    type: RepoType,  # noqa: A002 - the column
    kind: LinkKind,
    targets: Sequence[str],
) -> str:
    key = f"l.type = {values.put(type)} AND l.kind = {values.put(kind)}"
    return f"FROM repo_links l WHERE {key} AND l.target IN {values.put_list(targets)}"


def _parameter_conditions(values: StatementValues, filters: RepoFilter) -> list[str]:
    wanted = filters.parameters
    if wanted is None:
        return []
    # The plus sign keeps both engines from the index of parameters: many have so many.
    between = f"+r.num_parameters BETWEEN {values.put(wanted.least)} AND {values.put(wanted.most)}"
    # The gate of a gated model guards its files, and so what their headers say.
    return [between, "r.gated IS NULL"]


def containing(text: str) -> str:
    for special in r"\%_":
        text = text.replace(special, f"\\{special}")
    return f"%{text}%"


def visible_condition(values: StatementValues, reach: Reach | None) -> str:
    """Return the condition for repositories `r` that are public or within reach."""
    if reach is None:
        return "r.visibility = 'public'"
    return f"(r.visibility = 'public' OR ({_reach_condition(values, reach)}))"


def _reach_condition(values: StatementValues, reach: Reach) -> str:
    owners = values.put_list({*reach.readable, *reach.where_created})
    readable, created = values.put_list(reach.readable), values.put_list(reach.where_created)
    return f"""
        r.owner_id IN {owners}
        AND (r.owner_id IN {readable}
             OR (r.owner_id IN {created} AND r.created_with = {values.put(reach.created_with)}))
        AND (r.owner_id IN {values.put_list(reach.administered)}
             OR {_group_condition(values, reach)})
    """


def _owner_condition(values: StatementValues, reach: Reach, owner_id: str) -> str:
    """Return what `_reach_condition` says of one owner's repositories.

    It names the owner once: told twice, PostgreSQL expects next to no rows, and sorts them all.
    """
    conditions = [f"r.owner_id = {values.put(owner_id)}"]
    if owner_id not in reach.readable:
        conditions.append(f"r.created_with = {values.put(reach.created_with)}")
    if owner_id not in reach.administered:
        conditions.append(f"({_group_condition(values, reach)})")
    return " AND ".join(conditions)


def _group_condition(values: StatementValues, reach: Reach) -> str:
    return f"""
        r.resource_group_id IS NULL
        OR r.resource_group_id IN (SELECT m.resource_group_id FROM resource_group_members m
                                   WHERE m.user_id = {values.put(reach.user_id)})
    """


async def list_trending(conn: Reader, type: RepoType, *, limit: int) -> list[Repo]:  # noqa: A002
    """Return public repositories, those with the highest score first, then the most liked."""
    listed = list[Repo]()
    for condition, order in (
        ("r.trending_score > 0", "r.trending_score DESC, r.id DESC"),
        ("r.trending_score = 0", "r.likes DESC, r.id DESC"),
    ):
        rows = await conn.fetch_all(
            f"""
            SELECT {COLUMNS} FROM repos r {OWNER}
            WHERE r.type = $1 AND r.visibility = 'public' AND {condition}
            ORDER BY {order} LIMIT $2
            """,
            type, limit - len(listed),
        )  # fmt: skip
        listed += [record(row) for row in rows]
        if len(listed) >= limit:
            break
    return listed
