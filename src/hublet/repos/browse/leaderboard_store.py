"""SQL of leaderboards: what models state as their results for the tasks of a dataset."""

import json
from collections.abc import Iterable

from hublet.core.database import Reader
from hublet.repos.browse.records import LeaderboardQuery
from hublet.repos.browse.store import StatementValues, containing, visible_condition
from hublet.repos.records import EvaluationResult, RankedResult, Reach
from hublet.repos.store import COLUMNS, OWNER, record


async def find_largest_task(
    conn: Reader, dataset_keys: Iterable[str], reach: Reach | None
) -> str | None:
    """Return the task of a dataset that most models within reach state a result for."""
    values = StatementValues()
    task_id: str | None = await conn.fetch_value(
        f"""
        SELECT e.task_id FROM evaluation_results e JOIN repos r ON r.id = e.repo_id
        WHERE e.dataset_key IN {values.put_list(dataset_keys)} AND {visible_condition(values, reach)}
        GROUP BY e.task_id ORDER BY count(DISTINCT e.repo_id) DESC, e.task_id LIMIT 1
        """,
        *values.all,
    )
    return task_id


async def list_evaluations(
    conn: Reader,
    dataset_keys: Iterable[str],
    query: LeaderboardQuery,
    reach: Reach | None,
    *,
    ascending: bool,
    limit: int,
) -> list[RankedResult]:
    """Return the results of one task that are public or within reach, the best first."""
    values = StatementValues()
    conditions = [
        f"e.dataset_key IN {values.put_list(dataset_keys)}",
        f"e.task_id = {values.put(query.task_id)}",
        visible_condition(values, reach),
    ]
    if query.only_roots:
        pattern = values.put(containing('"base_model:'))
        conditions.append(rf"r.tags NOT LIKE {pattern} ESCAPE '\'")
    if query.max_parameters is not None:
        conditions.append(f"r.num_parameters <= {values.put(query.max_parameters)}")
    direction = "ASC" if ascending else "DESC"
    rows = await conn.fetch_all(
        f"""
        SELECT {COLUMNS}, r.num_parameters, e.dataset_key, e.task_id, e.value, e.filename, e.source, e.notes
        FROM evaluation_results e JOIN repos r ON r.id = e.repo_id {OWNER}
        WHERE {" AND ".join(conditions)}
        ORDER BY e.value {direction}, r.id, e.position LIMIT {values.put(limit)}
        """,
        *values.all,
    )
    return [
        RankedResult(
            model=record(row),
            result=EvaluationResult(
                dataset_key=row["dataset_key"],
                task_id=row["task_id"],
                value=row["value"],
                filename=row["filename"],
                source=json.loads(row["source"]),
                notes=row["notes"],
            ),
            parameters=row["num_parameters"],
        )
        for row in rows
    ]
