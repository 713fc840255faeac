"""Pages of webhooks, rendered: the list, one webhook with its log, one delivery, forms, samples."""

from datetime import UTC, datetime
from urllib.parse import urlencode

from fastapi import Response

from hublet.core.clock import from_micros, micros, to_micros
from hublet.core.dataclasses import dataclass
from hublet.core.errors import HubError, InvalidRequest
from hublet.core.paging import read_cursor, write_cursor
from hublet.web.pages import render, status_of
from hublet.web.webhook_forms import WebhookFields, list_choices
from hublet.web.webhooks.auth import OwnerVisit
from hublet.web.webhooks.health import describe_health
from hublet.web.webhooks.samples import RECEIVERS, sample_payloads
from hublet.web.webhooks.views import (
    DeliveryRow,
    DeliveryView,
    WebhookRow,
    draw_day,
    draw_plots,
)
from hublet.webhooks import service as webhooks
from hublet.webhooks.activity import service as activity
from hublet.webhooks.activity.records import PENDING, DeliveryFilter
from hublet.webhooks.errors import InvalidPeriod
from hublet.webhooks.records import DeliveryState, WebhookAccess, WebhookRecord
from hublet.webhooks.schemas import MAX_SECRET
from hublet.webhooks.sealed_secrets import OVERLAP

_PAGE_SIZE = 50
_DAY = 86_400_000_000
# What the log can be narrowed to, by the words of its address.
STATES: dict[str, tuple[DeliveryState, ...]] = {
    "failed": (DeliveryState.failed,),
    "waiting": PENDING,
    "unsent": (DeliveryState.unsent,),
    "delivered": (DeliveryState.delivered,),
}
EVENTS = ("repo", "repo.content", "repo.config", "discussion", "discussion.comment", "ping")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryQuery:
    """What of the delivery log is shown, as the address says it; times are UTC."""

    state: str = ""
    event: str = ""
    repo: str = ""
    since: str = ""
    until: str = ""

    @property
    def is_narrow(self) -> bool:
        return any((self.state, self.event, self.repo, self.since, self.until))

    def with_state(self, state: str, *, cursor: str = "") -> str:
        """Return the query of the same filters with another state, from a place in the list on."""
        values = {
            "state": state,
            "event": self.event,
            "repo": self.repo,
            "since": self.since,
            "until": self.until,
            "cursor": cursor,
        }
        return urlencode({name: value for name, value in values.items() if value})

    def as_filter(self) -> DeliveryFilter:
        everything = DeliveryFilter()
        if self.state and self.state not in STATES:
            raise InvalidRequest(f"state must be one of {', '.join(STATES)}, or nothing.")
        since = read_moment("since", self.since) if self.since else everything.since
        until = read_moment("until", self.until) if self.until else everything.until
        if until <= since:
            raise InvalidPeriod
        return DeliveryFilter(
            states=STATES.get(self.state, ()),
            scope=self.event,
            repo=self.repo,
            since=since,
            until=until,
        )


EVERYTHING = DeliveryQuery()


def read_moment(field: str, text: str) -> int:
    """Return the microseconds of a time that was typed; one without a zone is UTC."""
    try:
        moment = datetime.fromisoformat(text.strip())
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return to_micros(moment)
    except (ValueError, OverflowError):
        raise InvalidRequest(f"{field} must be a time such as 2026-11-17T09:00.") from None


def write_moment(moment: int) -> str:
    """Return a time as the field of a form takes it, to the minute before."""
    return from_micros(moment).astimezone(UTC).strftime("%Y-%m-%dT%H:%M")


async def show_list(owner: OwnerVisit, *, problem: HubError | None = None) -> Response:
    async with owner.visit.database.read() as conn:
        frame = await owner.get_frame(conn)
        access = await owner.get_access(conn)
        found = await webhooks.list_of(conn, access)
        healths = await activity.list_health(conn, found)
        hours = await activity.list_hours(conn, found)
        version = await activity.get_owner_version(conn, access)
    rows = [
        WebhookRow(
            webhook=each,
            health=describe_health(healths[each.id]),
            day=draw_day(hours.get(each.id, [])),
            newest=healths[each.id].newest,
            path=f"{owner.path}/{each.id}",
        )
        for each in found
    ]
    return await render(
        owner.visit,
        "webhooks/list.html",
        frame=frame,
        status=200 if problem is None else status_of(problem),
        live=f"{owner.path}/events?since={version}",
        owner=owner,
        rows=rows,
        problem=None if problem is None else problem.message,
    )


async def show_webhook(
    owner: OwnerVisit,
    webhook_id: str,
    *,
    query: DeliveryQuery = EVERYTHING,
    cursor: str = "",
    problem: HubError | None = None,
    secret: str | None = None,
) -> Response:
    """Show a webhook; `secret` is a new one, shown this once."""
    try:
        filters = query.as_filter()
        before = read_cursor(cursor) if cursor else ""
    except InvalidRequest as error:
        query, filters, before, problem = EVERYTHING, DeliveryFilter(), "", error
    async with owner.visit.database.read() as conn:
        frame = await owner.get_frame(conn)
        webhook = await webhooks.get(conn, await owner.get_access(conn), webhook_id)
        health = (await activity.list_health(conn, [webhook]))[webhook.id]
        statistics = await activity.get_statistics(conn, webhook)
        summary = await activity.get_activity(conn, webhook)
        log = await activity.list_deliveries(
            conn, webhook, filters, before=before, limit=_PAGE_SIZE + 1
        )
    shown = log.deliveries[:_PAGE_SIZE]
    last = shown[-1].id if len(log.deliveries) > _PAGE_SIZE else log.stopped_at
    # Not the address of the request: a form may have been sent to another one.
    path = f"{owner.path}/{webhook.id}"
    here = f"{path}?{query.with_state(query.state)}"
    older = query.with_state(query.state, cursor=write_cursor(last)) if last else None
    counts = statistics.counts
    return await render(
        owner.visit,
        "webhooks/webhook.html",
        frame=frame,
        status=200 if problem is None else status_of(problem),
        live=f"{owner.path}/{webhook.id}/events?since={statistics.version}",
        owner=owner,
        webhook=webhook,
        row=WebhookRow(
            webhook=webhook,
            health=describe_health(
                health, last=statistics.newest_attempt, throttled=summary.is_throttled
            ),
            day=draw_day(statistics.hours),
            newest=health.newest,
            path=path,
        ),
        here=here,
        plots=draw_plots(statistics),
        summary=summary,
        query=query,
        events=EVENTS,
        counts={
            state: sum(counts.get(each, 0) for each in states) for state, states in STATES.items()
        },
        total=sum(counts.values()),
        rows=[DeliveryRow(delivery=each) for each in shown],
        newer=here if before else None,
        older=older and f"{path}?{older}",
        # What failed first, if it still does; a day otherwise.
        since=write_moment(health.target.failing_since or micros() - _DAY),
        overlap_hours=int(OVERLAP.total_seconds() // 3600),
        max_secret=MAX_SECRET,
        secret=secret,
        problem=None if problem is None else problem.message,
    )


async def show_delivery(
    owner: OwnerVisit, webhook_id: str, delivery_id: str, *, problem: HubError | None = None
) -> Response:
    async with owner.visit.database.read() as conn:
        frame = await owner.get_frame(conn)
        access = await owner.get_access(conn)
        webhook = await webhooks.get(conn, access, webhook_id)
        details = await activity.get_delivery(conn, webhook, delivery_id)
        version = await activity.get_version(conn, webhook)
    return await render(
        owner.visit,
        "webhooks/delivery.html",
        frame=frame,
        status=200 if problem is None else status_of(problem),
        live=f"{owner.path}/{webhook.id}/events?since={version}",
        owner=owner,
        path=f"{owner.path}/{webhook.id}",
        jobs=f"/jobs/{access.owner.name}",
        view=DeliveryView(details=details, webhook=webhook),
        problem=None if problem is None else problem.message,
    )


async def show_form(
    owner: OwnerVisit,
    fields: WebhookFields,
    *,
    webhook: WebhookRecord | None = None,
    problem: HubError | None = None,
) -> Response:
    """Show the form of a new webhook, or of one that is to change."""
    async with owner.visit.database.read() as conn:
        frame = await owner.get_frame(conn)
        access: WebhookAccess = await owner.get_access(conn)
        choices = await list_choices(conn, access, fields)
    return await render(
        owner.visit,
        "webhooks/form.html",
        frame=frame,
        status=200 if problem is None else status_of(problem),
        owner=owner,
        webhook=webhook,
        fields=fields,
        choices=choices,
        max_secret=MAX_SECRET,
        problem=None if problem is None else problem.message,
    )


async def show_samples(owner: OwnerVisit, webhook_id: str) -> Response:
    async with owner.visit.database.read() as conn:
        frame = await owner.get_frame(conn)
        webhook = await webhooks.get(conn, await owner.get_access(conn), webhook_id)
    return await render(
        owner.visit,
        "webhooks/samples.html",
        frame=frame,
        owner=owner,
        webhook=webhook,
        path=f"{owner.path}/{webhook.id}",
        samples=sample_payloads(webhook, owner.visit.settings.base_url),
        receivers=RECEIVERS,
    )
