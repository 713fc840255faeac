"""Which papers a request is about, as types that a route names."""

from typing import Annotated

from fastapi import Depends, Query

from hublet.community.papers import service
from hublet.community.papers.days import span_of
from hublet.community.papers.records import Daily, Paper, Sort
from hublet.core.http import Conn

# The address of a paper.
PAPER = "/api/papers/{paper_id}"


async def _asked_paper(conn: Conn, paper_id: str) -> Paper:
    return await service.get(conn, paper_id)


# For routes that change something: the paper is read in their own transaction.
AskedPaper = Annotated[Paper, Depends(_asked_paper)]


async def _asked_daily(  # noqa: PLR0913 - these are the parameters of the public client
    *,
    date: Annotated[str | None, Query(description="A day, as in 2026-11-15.")] = None,
    week: Annotated[str | None, Query(description="A week, as in 2026-W46.")] = None,
    month: Annotated[str | None, Query(description="A month, as in 2026-11.")] = None,
    submitter: Annotated[str, Query(description="Only what this user submitted.")] = "",
    sort: Sort = Sort.newest,
    p: Annotated[int, Query(ge=0, le=10_000, description="The page, from 0.")] = 0,
    limit: Annotated[int, Query(ge=1, le=100)] = 50,
) -> Daily:
    return Daily(
        span=span_of(day=date, week=week, month=month),
        submitter=submitter,
        sort=sort,
        page=p,
        limit=limit,
    )


AskedDaily = Annotated[Daily, Depends(_asked_daily)]
