"""Whether a delivery may go now, whatever was true when it was caused."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from hublet.core.database import Reader
from hublet.events import RepoSnapshot
from hublet.repos import service as repos
from hublet.repos import store as repo_rows
from hublet.webhooks.delivery.records import Delivery, Unsent
from hublet.webhooks.delivery.targets.records import Target
from hublet.webhooks.records import State

_WHY_NOT = {State.disabled: Unsent.disabled, State.suspended: Unsent.suspended}


async def refusals(
    conn: Reader, deliveries: Iterable[Delivery], targets: Mapping[str, Target]
) -> dict[str, Unsent]:
    """Return the deliveries, by id, that must not be sent, and why; a ping asks for no state."""
    refused: dict[str, Unsent] = {}
    private: dict[str, list[Delivery]] = {}
    for each in deliveries:
        state = targets[each.webhook_id].state
        if state is not State.enabled and not each.ping:
            refused[each.id] = _WHY_NOT[state]
        elif each.happening.repo.private:
            private.setdefault(each.happening.id, []).append(each)
    for group in private.values():
        repo = await _as_it_is_now(conn, group[0].happening.repo)
        owners = {targets[each.webhook_id].owner_id for each in group}
        seen_by = await repos.who_may_see(conn, repo, owners)
        for each in group:
            if targets[each.webhook_id].owner_id not in seen_by:
                refused[each.id] = Unsent.no_access
    return refused


async def _as_it_is_now(conn: Reader, then: RepoSnapshot) -> RepoSnapshot:
    """Return who owns a repository now; one that is gone is still private to whom it was."""
    repo = await repo_rows.find(conn, then.id)
    if repo is None:
        return then
    return replace(
        then,
        owner_id=repo.owner_id,
        private=repo.is_private,
        resource_group_id=repo.resource_group_id,
    )
