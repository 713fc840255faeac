"""Service of triggers: turns an event into deliveries, in its transaction or, if many, in batches."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import msgspec

from hublet.accounts.names import name_key
from hublet.core import queue
from hublet.core.database import Connection
from hublet.core.outbox import Event
from hublet.events import RepoCreated, RepoDeleted, RepoSnapshot
from hublet.repos import service as repos
from hublet.repos.names import repo_name_key
from hublet.webhooks.records import (
    UNSENT_REASONS,
    DeliveryState,
    Domain,
    UnsentReason,
    WebhookState,
    may_hear,
    missing_target,
    private_owners_from_text,
)
from hublet.webhooks.triggers import store
from hublet.webhooks.triggers.payload import trigger_of
from hublet.webhooks.triggers.records import Candidate, Expansion, NewDelivery, TriggeredEvent

EXPAND = "webhooks.expand"

# So many deliveries are added in the transaction of the event; more are left to the worker.
INLINE = 200
BATCH = 500


async def record_event(conn: Connection, event: Event) -> None:
    """Store an event that webhooks watch, with one delivery for each of them."""
    trigger = trigger_of(event, conn.hub.settings.base_url)
    if trigger is None:
        return
    if isinstance(event, RepoCreated):
        await store.resolve_missing(conn, _missing_target_of(event.repo), repo_id=event.repo.id)
    candidates = await store.list_watching(conn, trigger.domain, trigger.targets, limit=INLINE + 1)
    if len(candidates) > INLINE:
        stored = await store.add_event(conn, trigger)
        await _queue_expansion(
            conn, Expansion(event_id=stored.id, domain=trigger.domain, targets=trigger.targets)
        )
    elif deliveries := await _new_deliveries(conn, trigger.repo, candidates):
        await store.add_deliveries(conn, await store.add_event(conn, trigger), deliveries)
    if isinstance(event, RepoDeleted):
        await store.mark_missing(conn, event.repo, _missing_target_of(event.repo))


def _missing_target_of(repo: RepoSnapshot) -> str:
    owner, _, name = repo.name.partition("/")
    return missing_target(repo.type, f"{name_key(owner)}/{repo_name_key(name)}")


async def expand(conn: Connection, expansion: Expansion) -> None:
    """Add the deliveries of one batch of webhooks, and leave the rest to the next task."""
    event = await store.find_event(conn, expansion.event_id)
    if event is None or not expansion.targets:
        return
    target, *others = expansion.targets
    candidates = await store.list_watching_after(
        conn,
        Domain(expansion.domain),
        target,
        after=expansion.after,
        before=event.created_at,
        limit=BATCH,
    )
    await _add_deliveries(conn, event, candidates)
    if len(candidates) == BATCH:
        rest = replace(expansion, after=candidates[-1].webhook_id)
    else:
        rest = replace(expansion, targets=tuple(others), after="")
    if rest.targets:
        await _queue_expansion(conn, rest)


async def _add_deliveries(
    conn: Connection, event: TriggeredEvent, candidates: Sequence[Candidate]
) -> None:
    if deliveries := await _new_deliveries(conn, event.repo, candidates):
        await store.add_deliveries(conn, event, deliveries)


async def _queue_expansion(conn: Connection, expansion: Expansion) -> None:
    await queue.add(conn, queue.NewTask(kind=EXPAND, body=msgspec.json.encode(expansion).decode()))


async def _new_deliveries(
    conn: Connection, repo: RepoSnapshot, candidates: Iterable[Candidate]
) -> list[NewDelivery]:
    """Return one delivery for each webhook, however many of its watched items match.

    An owner who may not see the repository gets none, and a webhook whose token could not read it
    neither. Only one that watches this very repository, and so could see it once, gets an unsent
    one that says that the access is gone.
    """
    # Of several matches of one webhook, the one that watches the repository itself is kept.
    chosen = {
        each.webhook_id: each for each in sorted(candidates, key=lambda c: c.target == repo.id)
    }
    if not chosen:
        return []
    seen_by = await repos.who_may_see(conn, repo, {each.owner_id for each in chosen.values()})
    hearing = {
        each.webhook_id
        for each in chosen.values()
        if each.owner_id in seen_by
        and may_hear(private_owners_from_text(each.private_owners), repo)
    }
    return [
        _new_delivery(each, may_see=each.webhook_id in hearing)
        for each in chosen.values()
        if each.webhook_id in hearing or each.target == repo.id
    ]


def _new_delivery(candidate: Candidate, *, may_see: bool) -> NewDelivery:
    reason = (
        UNSENT_REASONS.get(WebhookState(candidate.state)) if may_see else UnsentReason.no_access
    )
    state = DeliveryState.fresh if reason is None else DeliveryState.unsent
    return NewDelivery(webhook_id=candidate.webhook_id, state=state, reason=reason)
