"""SQL of lists of jobs: each filter is read by an index that has its jobs in the order of the list.

So a page costs the same however many jobs an owner has had, and however few of them match.
"""

import json
from collections.abc import Iterator

from hublet.core import totals
from hublet.core.database import Reader
from hublet.jobs.records import InitiatorType, JobFilter, JobRecord
from hublet.jobs.store import JOB_COLUMNS, job_record

# Sorts behind every id.
_END = "g"
_IN_OWN_GROUP = """(j.resource_group_id IS NULL OR EXISTS (
    SELECT 1 FROM resource_group_members m
    WHERE m.resource_group_id = j.resource_group_id AND m.user_id = {user}
))"""


class _FilterSql:
    """The conditions of a filter on jobs `j`, with their values."""

    def __init__(self, job_filter: JobFilter) -> None:
        self._filter = job_filter
        self.values: list[object] = []
        self._owner = self.put(job_filter.owner_id)

    def put(self, value: object) -> str:
        self.values.append(value)
        return f"${len(self.values)}"

    def sources(self) -> list[str]:
        """Return what to read, with conditions: together all that match, each in the order of ids."""
        listed, labels = self._filter, sorted(self._filter.labels)
        if listed.initiator is not None and listed.initiator.type is not InitiatorType.user:
            # The partial index serves where its very condition is in the query.
            started = "j.initiator_type <> 'user'"
            return [self._source("jobs j", started, self._stages(), *self._rest(labels))]
        if labels and any(stage.is_terminal for stage in listed.stages):
            # No join: SQLite would be free to begin with the jobs.
            first, *others = labels
            source = "job_labels l CROSS JOIN jobs j"
            has_label = (
                f"j.id = l.job_id AND l.owner_id = {self._owner} AND {self._label('l', first)}"
            )
            return [self._source(source, has_label, self._stages(), *self._rest(others))]
        rest = list(self._rest(labels))
        return [
            self._source("jobs j", f"j.stage = {self.put(stage)}", *rest)
            for stage in dict.fromkeys(listed.stages)
        ]

    def _source(self, source: str, *conditions: str) -> str:
        return f"FROM {source} WHERE j.owner_id = {self._owner} AND {' AND '.join(conditions)}"

    def _stages(self) -> str:
        return f"j.stage IN each({self.put(json.dumps(self._filter.stages))})"

    def _label(self, table: str, label: str) -> str:
        name, _, value = label.partition("=")
        return f"{table}.name = {self.put(name)} AND {table}.value = {self.put(value)}"

    def _rest(self, labels: list[str]) -> Iterator[str]:
        if labels:
            # One condition however many there are: a planner takes too long for one of each.
            is_one = f"o.name || '=' || o.value IN each({self.put(json.dumps(labels))})"
            yield f"""{self.put(len(labels))} = (
                SELECT count(*) FROM job_labels o WHERE o.job_id = j.id AND {is_one}
            )"""
        if not self._filter.sees_every_group:
            yield _IN_OWN_GROUP.format(user=self.put(self._filter.user_id))
        if (started_by := self._filter.initiator) is not None:
            is_type = f"j.initiator_type = {self.put(started_by.type)}"
            yield f"{is_type} AND j.initiator_id = {self.put(started_by.id)}"


async def list_of(
    conn: Reader, job_filter: JobFilter, *, before: str, limit: int
) -> list[JobRecord]:
    """Return jobs, newest first, older than the one of this id; an empty id is newer than any."""
    sql = _FilterSql(job_filter)
    sources = sql.sources()
    position, most = sql.put(before or _END), sql.put(limit)
    # Each part has its own limit, so that none is read to its end.
    parts = " UNION ALL ".join(
        f"""
        SELECT * FROM (
            SELECT {_id_in(each)} AS id {each} AND {_id_in(each)} < {position}
            ORDER BY 1 DESC LIMIT {most}
        ) AS part_{number}
        """
        for number, each in enumerate(sources)
    )
    rows = await conn.fetch_all(
        f"""
        SELECT {JOB_COLUMNS} FROM (
            SELECT id FROM ({parts}) AS parts ORDER BY id DESC LIMIT {most}
        ) AS page JOIN jobs j ON j.id = page.id ORDER BY page.id DESC
        """,
        *sql.values,
    )
    return [job_record(row) for row in rows]


def _id_in(source: str) -> str:
    return "l.job_id" if "job_labels l " in source else "j.id"


async def count_of(conn: Reader, job_filter: JobFilter) -> int:
    """Count what a list with this filter has; labels, and what started a job, are counted one by one."""
    if not job_filter.labels and job_filter.initiator is None:
        return await _count_by_stage(conn, job_filter)
    sql = _FilterSql(job_filter)
    counts = " + ".join(f"(SELECT count(*) {each})" for each in sql.sources())
    count: int = await conn.fetch_value(f"SELECT {counts}", *sql.values)
    return count


async def _count_by_stage(conn: Reader, job_filter: JobFilter) -> int:
    """Read totals, which are kept by stage and, within an owner, by resource group."""
    owner_id = job_filter.owner_id
    kinds = [f"jobs:{stage}" for stage in dict.fromkeys(job_filter.stages)]
    if job_filter.sees_every_group:
        return await totals.read_with_parts(conn, kinds, owner_id)
    rows = await conn.fetch_all(
        "SELECT resource_group_id FROM resource_group_members WHERE user_id = $1",
        job_filter.user_id,
    )
    subjects = [owner_id, *(f"{owner_id}/{row['resource_group_id']}" for row in rows)]
    return sum((await totals.read_many(conn, kinds, subjects)).values())
