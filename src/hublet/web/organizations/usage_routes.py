"""HTTP for the usage of an organization: storage and jobs, now and over time."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from fastapi import Response

from hublet.core.clock import from_micros, now, to_micros
from hublet.core.pages import PageRouter, bytes_text
from hublet.jobs import statistics_store as jobs
from hublet.jobs.records import DailyJobUsage
from hublet.repos import settings as repo_settings
from hublet.repos import usage_store
from hublet.repos.records import Repo, RepoType
from hublet.web.auth import SignedInVisit
from hublet.web.organizations.pages import SETTINGS, open_settings, render_settings
from hublet.web.rendering.plots import Bar, Bars, Plot, Series, draw_bars, draw_plot
from hublet.web.repo_head import path_of

router = PageRouter()

_DAY = timedelta(days=1)
_DAY_MICROS = 86_400_000_000
# How far back plots go.
_DAYS = 30
_MOST_REPOS = 100


@router.get(f"{SETTINGS}/usage")
async def get_organization_usage_page(visit: SignedInVisit, organization: str) -> Response:
    """Show what the organization's repositories hold, and which jobs it ran, over time."""
    end = now()
    since = end.replace(hour=0, minute=0, second=0, microsecond=0) - (_DAYS - 1) * _DAY
    async with visit.database.read() as conn:
        head = await open_settings(conn, visit, organization, "usage")
        owner_id = head.organization.id
        storage = await repo_settings.get_owner_storage(conn, visit.person, organization)
        repos = await usage_store.list_raw_by_repo(conn, owner_id)
        growth = await usage_store.list_daily_growth(conn, owner_id)
        daily = await jobs.list_daily_usage(conn, owner_id, since=to_micros(since))
    limit = visit.settings.limits.owner_bytes
    return await render_settings(
        visit,
        head,
        storage=storage,
        limit=limit,
        kinds=_by_kind(repos),
        repos=[(repo, path_of(repo), size) for repo, size in repos[:_MOST_REPOS]],
        repo_count=len(repos),
        storage_plot=_storage_plot(growth, since, end, limit=limit),
        job_bars=_job_bars(daily, since),
        hours_plot=_hours_plot(daily, since, end),
        days=_DAYS,
    )


def _by_kind(repos: Sequence[tuple[Repo, int]]) -> list[tuple[RepoType, int, int]]:
    """Return how many repositories of each type there are, and how many bytes they hold."""
    return [
        (type_, len(sizes), sum(sizes))
        for type_ in RepoType
        if (sizes := [size for repo, size in repos if repo.type is type_])
    ]


def _days_from(since: datetime) -> range:
    """Return the days of the plots, counted from 1970 as the stores count them."""
    first = to_micros(since) // _DAY_MICROS
    return range(first, first + _DAYS)


def _storage_plot(
    growth: Sequence[tuple[int, int]], since: datetime, end: datetime, *, limit: int | None
) -> Plot:
    """Draw how what is held now came together; what was deleted since is not known any more."""
    points = [
        (from_micros((day + 1) * _DAY_MICROS), float(sum(size for at, size in growth if at <= day)))
        for day in _days_from(since)
    ]
    # The last day is not over.
    points[-1] = (end, points[-1][1])
    series = Series(label="Held", points=points)
    return draw_plot("Storage", [series], start=since, end=end, limit=limit, text=bytes_text)


def _job_bars(daily: Sequence[DailyJobUsage], since: datetime) -> Bars:
    by_day = {each.day: each for each in daily}
    bars = [
        Bar(
            start=from_micros(day * _DAY_MICROS),
            ok=by_day[day].jobs - by_day[day].failed if day in by_day else 0,
            failed=by_day[day].failed if day in by_day else 0,
        )
        for day in _days_from(since)
    ]
    return draw_bars(f"Jobs of the last {_DAYS} days", bars)


def _hours_plot(daily: Sequence[DailyJobUsage], since: datetime, end: datetime) -> Plot:
    hours = {each.day: each.running_seconds / 3600 for each in daily}
    points = [
        (min(from_micros((day + 1) * _DAY_MICROS), end), hours.get(day, 0.0))
        for day in _days_from(since)
    ]
    series = Series(label="Hours", points=points)
    return draw_plot(
        "Running time of jobs, by day", [series], start=since, end=end, text=_hours_text
    )


def _hours_text(hours: float) -> str:
    return f"{hours:.3g} h"
