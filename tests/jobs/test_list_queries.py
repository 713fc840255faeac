"""A page of jobs is read by an index, whatever it is filtered by, and has what matches and no more."""

import re
from typing import Any

import pytest

from hublet.core.database import Database, Reader
from hublet.jobs import list_store
from hublet.jobs.records import Initiator, InitiatorType, JobFilter, Stage

OWNER = "1" * 24
ACTIVE = (Stage.scheduling, Stage.running)
ALL = tuple(stage for stage in Stage if stage is not Stage.deleted)
SCHEDULE = Initiator(type=InitiatorType.scheduled_job, id="5" * 24)
PLANS = {"sqlite": "EXPLAIN QUERY PLAN", "postgresql": "EXPLAIN"}


class Explainer:
    """A connection that has a statement explained instead of run."""

    def __init__(self, conn: Reader, *, kind: str) -> None:
        self._conn, self._word = conn, PLANS[kind]
        self.plan = ""

    async def fetch_all(self, sql: str, *values: Any) -> list[Any]:
        rows = await self._conn.fetch_all(f"{self._word} {sql}", *values)
        self.plan = "\n".join(str(row[-1]) for row in rows)
        return []


def a_filter(**changes: Any) -> JobFilter:
    defaults: dict[str, Any] = {"stages": ALL, "sees_every_group": True}
    return JobFilter(owner_id=OWNER, user_id=OWNER, **(defaults | changes))


@pytest.mark.parametrize(
    ("wanted", "index", "parts"),
    [
        pytest.param(a_filter(), "jobs_of_owner_by_stage", len(ALL), id="no filter"),
        pytest.param(a_filter(stages=ACTIVE), "jobs_of_owner_by_stage", 2, id="two stages"),
        pytest.param(a_filter(labels={"run=3"}), "job_labels_of_owner", 1, id="a label"),
        pytest.param(
            a_filter(labels={"run=3"}, stages=ACTIVE),
            "jobs_of_owner_by_stage",
            2,
            id="a label of those that run",
        ),
        pytest.param(a_filter(initiator=SCHEDULE), "jobs_of_initiator", 1, id="a schedule"),
        pytest.param(
            a_filter(sees_every_group=False), "jobs_of_owner_by_stage", len(ALL), id="groups"
        ),
    ],
)
async def test_a_page_is_read_from_an_index_in_its_order(
    database: Database, wanted: JobFilter, index: str, parts: int
) -> None:
    async with database.transaction() as conn:
        if database.kind == "postgresql":
            # Tables this small would be read from end to end whatever indexes there are.
            await conn.execute("SET LOCAL enable_seqscan = off")
            await conn.execute("SET LOCAL enable_bitmapscan = off")
            await conn.execute("SET LOCAL enable_sort = off")
        explainer: Any = Explainer(conn, kind=database.kind)
        await list_store.list_of(explainer, wanted, before="a" * 24, limit=10)

    if database.kind == "sqlite":
        searches = re.findall(
            rf"SEARCH [jl] USING (?:COVERING )?INDEX {index} \(.+<\?\)", explainer.plan
        )
        assert len(searches) == parts, explainer.plan
        assert not re.search(r"SCAN [jlo]\b", explainer.plan)
    else:
        assert not re.search(r"Seq Scan on (jobs|job_labels)", explainer.plan), explainer.plan
