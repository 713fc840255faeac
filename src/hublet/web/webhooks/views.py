"""What the pages of webhooks show: plots of a day, deliveries and their attempts, in words."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from markupsafe import Markup

from hublet.core.clock import from_micros, micros
from hublet.core.dataclasses import dataclass
from hublet.core.pages import latency_text, plural
from hublet.web.rendering.code import QUICK_CHARACTERS, highlight_language, plain_lines
from hublet.web.rendering.plots import WIDTH, Bar, Bars, Plot, Series, draw_bars, draw_plot
from hublet.web.webhooks.health import HealthWords
from hublet.webhooks.activity.records import (
    DeliveryDetails,
    DeliveryStatistics,
    DeliverySummary,
    HourCount,
    Latency,
)
from hublet.webhooks.activity.schemas import render_attempt_headers, response_text
from hublet.webhooks.delivery.records import split_url
from hublet.webhooks.records import (
    Attempt,
    DeliveryState,
    Domain,
    GivenUpReason,
    UnsentReason,
    WatchedItem,
    WebhookRecord,
)
from hublet.webhooks.triggers.payload import render_body

_HOUR = 3_600_000_000
_HOURS = 24
_SECOND = 1_000_000
_DOMAINS = {Domain.repo: "changes of repositories", Domain.discussion: "discussions"}
# Why a delivery was not sent, or not again; of others the word itself is shown.
_WHY: dict[str, str] = {
    UnsentReason.disabled: "the webhook was paused",
    UnsentReason.suspended: "the webhook was suspended",
    UnsentReason.throttled: "it was over the daily limit",
    UnsentReason.no_access: "its owner could not see the repository; it is never sent",
    GivenUpReason.exhausted: "every attempt failed",
    GivenUpReason.gone: "the target answered that it is gone for good",
}


def describe_target(webhook: WebhookRecord) -> str:
    """Return where a webhook leads, without what may be secret in an address."""
    if webhook.url is not None:
        return split_url(webhook.url)[0] or ""
    if webhook.job_source_id is not None:
        return f"Starts the job {webhook.job_source_id} again"
    job: Mapping[str, Any] = webhook.job or {}
    return f"Starts a job in {job.get('dockerImage') or job.get('spaceId') or 'a container'}"


def describe_watched(watched: Sequence[WatchedItem], *, most: int = 3) -> str:
    named = [
        f"everything of {each.name}" if each.type.is_account else f"the {each.type} {each.name}"
        for each in watched[:most]
    ]
    if len(watched) > most:
        named.append(plural(len(watched) - most, "more thing"))
    return " and ".join(filter(None, [", ".join(named[:-1]), named[-1]])) if named else "nothing"


def describe_domains(domains: Sequence[Domain]) -> str:
    return " and ".join(_DOMAINS[each] for each in domains)


def draw_day(hours: Sequence[HourCount], *, now: int | None = None) -> Bars:
    """Draw a bar for each of the last 24 hours."""
    latest = (micros() if now is None else now) // _HOUR * _HOUR
    counts = {hour.start: hour for hour in hours}
    starts = [latest - number * _HOUR for number in reversed(range(_HOURS))]
    empty = HourCount(start=0, delivered=0, failed=0)
    return draw_bars(
        "Deliveries of the last 24 hours",
        [
            Bar(start=from_micros(start), ok=hour.delivered, failed=hour.failed)
            for start in starts
            for hour in (counts.get(start, empty),)
        ],
    )


def draw_plots(statistics: DeliveryStatistics) -> list[Plot]:
    """Draw the success rate and the latency of the last 24 hours, by hour."""
    now = micros()
    end = from_micros(now)
    start = end - timedelta(hours=_HOURS)
    rates = [
        (_middle(hour.start, now), 100 * hour.delivered / (hour.delivered + hour.failed))
        for hour in statistics.hours
        if hour.delivered + hour.failed
    ]
    latencies = list(_latencies_by_hour(statistics.latencies, now))
    return [
        draw_plot(
            "Success rate, 24 h",
            [Series(label="Delivered", points=rates, tone="ok")],
            start=start,
            end=end,
            limit=100,
            text=lambda value: f"{value:.3g} %",
        ),
        draw_plot(
            "Latency, 24 h",
            [
                Series(label="p50", points=[(at, fast) for at, fast, _ in latencies]),
                Series(label="p95", points=[(at, slow) for at, _, slow in latencies], tone="warn"),
            ],
            start=start,
            end=end,
            text=_micros_text,
        ),
    ]


def _latencies_by_hour(
    latencies: Sequence[Latency], now: int
) -> Iterator[tuple[datetime, float, float]]:
    by_hour: dict[int, list[int]] = defaultdict(list)
    for each in latencies:
        by_hour[each.started_at // _HOUR * _HOUR].append(each.total)
    for start, totals in sorted(by_hour.items()):
        totals.sort()
        yield _middle(start, now), percentile(totals, 50), percentile(totals, 95)


def percentile(ordered: Sequence[int], percent: int) -> int:
    """Return the nearest-rank percentile of values in ascending order."""
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def _middle(start: int, now: int) -> datetime:
    """Return the middle of an hour; that of the present one may be still to come."""
    return from_micros(min(start + _HOUR // 2, now))


def _micros_text(micros: float) -> str:
    return latency_text(micros / _SECOND)


def render_json(body: bytes) -> Markup:
    """Return JSON with one value a line, in colours unless that would take long."""
    text = json.dumps(json.loads(body), indent=2, ensure_ascii=False)
    is_long = len(text) > QUICK_CHARACTERS
    return Markup("\n").join(plain_lines(text) if is_long else highlight_language(text, "json"))


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookRow:
    """A webhook in a list; its secret is not in it."""

    webhook: WebhookRecord
    health: HealthWords
    day: Bars
    newest: DeliverySummary | None
    path: str

    @property
    def target(self) -> str:
        return describe_target(self.webhook)

    @property
    def watched(self) -> str:
        return describe_watched(self.webhook.watched)

    @property
    def domains(self) -> str:
        return describe_domains(self.webhook.domains)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryRow:
    """A delivery in the log of a webhook."""

    delivery: DeliverySummary

    @property
    def badge(self) -> tuple[str, str]:
        """Its state in a word, and the tone of that."""
        status = "" if self.delivery.status is None else f" {self.delivery.status}"
        if self.delivery.state is DeliveryState.delivered:
            return f"Delivered{status}", "ok"
        if self.delivery.state is DeliveryState.failed:
            return f"Failed{status}", "bad"
        if self.delivery.state is DeliveryState.unsent:
            return f"Unsent{status}", ""
        return f"Waiting{status}", "warn" if self.delivery.attempts else "info"

    @property
    def event(self) -> str:
        event = self.delivery.event
        return "something that its owner could not see" if event is None else event.scope

    @property
    def reason(self) -> str:
        reason = self.delivery.reason
        return _WHY.get(reason or "", reason or "")

    @property
    def may_be_replayed(self) -> bool:
        """Also what was delivered; the service refuses the rest anyway."""
        return not self.delivery.is_pending and self.delivery.reason != UnsentReason.no_access

    @property
    def created_at(self) -> datetime:
        return from_micros(self.delivery.created_at)

    @property
    def next_at(self) -> datetime | None:
        is_retry = self.delivery.is_pending and self.delivery.attempts
        return from_micros(self.delivery.due_at) if is_retry else None


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptPhase:
    """A phase of an attempt: its name, how long it took, and its piece of a bar of 300."""

    name: str
    took: str
    x: float
    width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptView:
    attempt: Attempt
    # As they were sent; of what is secret only that it is there.
    headers: Mapping[str, str]

    @property
    def started_at(self) -> datetime:
        return from_micros(self.attempt.started_at)

    @property
    def succeeded(self) -> bool:
        return self.attempt.reason is None and not self.attempt.detail

    @property
    def took(self) -> str:
        return _micros_text(self.attempt.total_micros)

    @property
    def answer(self) -> str:
        return response_text(self.attempt)

    @property
    def phases(self) -> list[AttemptPhase]:
        attempt = self.attempt
        known = {
            "DNS": attempt.dns_micros,
            "connect": attempt.connect_micros,
            "TLS": attempt.tls_micros,
            "first byte": attempt.first_byte_micros,
        }
        took = {name: length for name, length in known.items() if length is not None}
        took["the rest"] = max(0, attempt.total_micros - sum(took.values()))
        total, x = max(1, sum(took.values())), 0.0
        phases = []
        for name, length in took.items():
            width = WIDTH * length / total
            phases.append(
                AttemptPhase(
                    name=name, took=_micros_text(length), x=round(x, 1), width=round(width, 1)
                )
            )
            x += width
        return phases


@dataclass(frozen=True, kw_only=True)
class DeliveryView:
    """The page of one delivery."""

    details: DeliveryDetails
    webhook: WebhookRecord

    @property
    def row(self) -> DeliveryRow:
        return DeliveryRow(delivery=self.details.summary)

    @cached_property
    def payload(self) -> Markup | None:
        payload = self.details.payload
        return None if payload is None else render_json(render_body(payload, self.webhook.id))

    @property
    def attempts(self) -> list[AttemptView]:
        """The newest first."""
        return [
            AttemptView(
                attempt=each,
                headers=render_attempt_headers(self.details.summary.id, each, self.webhook),
            )
            for each in reversed(self.details.attempts)
        ]
