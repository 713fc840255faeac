"""Checks of what waits to be done."""

from datetime import timedelta

from hublet.cli.doctor import store
from hublet.cli.doctor.findings import Finding, ok, problem, warning
from hublet.cli.durations import in_words
from hublet.core import outbox, queue
from hublet.core.clock import micros
from hublet.core.database import Reader

# A worker looks every second or so; what waits longer has none.
_PATIENCE = timedelta(minutes=1)
_START_A_WORKER = "Is a hub running? Start hublet serve, or hublet worker on PostgreSQL."
_SHOWN = 3


async def events(conn: Reader) -> Finding:
    count = await outbox.count_waiting(conn)
    age = _age(await store.oldest_event(conn))
    if age > _PATIENCE:
        found = f"{count} wait, the oldest for {in_words(age)}."
        return warning("events", found, _START_A_WORKER)
    return ok("events", f"{count} wait to be handed on.")


async def tasks(conn: Reader) -> Finding:
    count = await queue.count_waiting(conn)
    if parked := await queue.count_parked(conn):
        return await _parked(conn, parked)
    age = _age(await queue.next_due(conn))
    if age > _PATIENCE:
        found = f"{count} wait, one of them overdue for {in_words(age)}."
        return warning("tasks", found, _START_A_WORKER)
    return ok("tasks", f"{count} wait, none is parked.")


async def webhooks(conn: Reader) -> Finding:
    age = _age(await store.oldest_fresh_delivery(conn))
    if age > _PATIENCE:
        found = f"Deliveries wait, the oldest for {in_words(age)}."
        return warning("webhooks", found, _START_A_WORKER)
    total, failing, suspended = await store.count_webhooks(conn)
    found = f"{total} there, {failing} failing, {suspended} suspended after failure."
    if suspended:
        advice = "Their owners were told; enabling one clears it, and recover sends what it missed."
        return warning("webhooks", found, advice)
    return ok("webhooks", found)


async def _parked(conn: Reader, count: int) -> Finding:
    shown = await queue.list_parked(conn, limit=_SHOWN)
    errors = "; ".join(f"{task.kind}: {task.error}" for task in shown)
    more = f"; and {count - len(shown)} more" if count > len(shown) else ""
    return problem(
        "tasks",
        f"{count} failed too often and are parked ({errors}{more}).",
        "Mend the cause, then run hublet task retry --all; hublet task list shows them.",
    )


def _age(since: int | None) -> timedelta:
    return timedelta() if since is None else timedelta(microseconds=micros() - since)
