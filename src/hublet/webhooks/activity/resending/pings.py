"""What a ping tells of: nothing, about a repository that its receiver may know."""

from hublet.core.database import Connection, Reader
from hublet.core.ids import new_object_id
from hublet.events import RepoSnapshot
from hublet.repos import service as repos
from hublet.repos import store as repos_store
from hublet.repos.records import Repo, RepoType
from hublet.webhooks.activity.resending import store
from hublet.webhooks.delivery.records import DeliveryState
from hublet.webhooks.records import Domain, Watched, Webhook
from hublet.webhooks.triggers import payload
from hublet.webhooks.triggers import store as triggers
from hublet.webhooks.triggers.records import NewDelivery, Trigger

SCOPE = "ping"
ACTION = "update"

# Client contract 2.1: the public receiver takes no other types.
_TYPES = (RepoType.model, RepoType.dataset, RepoType.space)
# So many of an account's repositories are looked at for one that may be seen.
_LOOKED_AT = 20


async def add(conn: Connection, webhook: Webhook) -> str:
    """Add the delivery of a ping; return its id."""
    repo = await _repo_of(conn, webhook)
    shown = {"repo": payload.render_repo(repo, conn.hub.settings.base_url)}
    trigger = Trigger(
        domain=Domain.repo,
        scope=SCOPE,
        action=ACTION,
        repo=repo,
        targets=(),
        payload=payload.render(SCOPE, ACTION, shown),
    )
    delivery = NewDelivery(webhook_id=webhook.id, state=DeliveryState.fresh, ping=True)
    [delivery_id] = await triggers.add_deliveries(
        conn, await triggers.add_event(conn, trigger), [delivery]
    )
    return delivery_id


async def _repo_of(conn: Reader, webhook: Webhook) -> RepoSnapshot:
    for watched in webhook.watched:
        found = await _candidates(conn, watched)
        for repo in map(repos.snapshot, found):
            if await repos.who_may_see(conn, repo, [webhook.owner_id]):
                return repo
    return _made_up(webhook)


async def _candidates(conn: Reader, watched: Watched) -> list[Repo]:
    if not watched.type.is_account:
        repo = await repos_store.find(conn, watched.target)
        return [] if repo is None else [repo]
    found = [
        repo
        for each in _TYPES
        for repo in await store.list_newest_repos(conn, watched.target, each, limit=_LOOKED_AT)
    ]
    return sorted(found, key=lambda repo: repo.created_at, reverse=True)


def _made_up(webhook: Webhook) -> RepoSnapshot:
    """Return a repository that does not exist, under the first name that is watched."""
    first = webhook.watched[0]
    return RepoSnapshot(
        id=new_object_id(),
        type=RepoType.model if first.type.is_account else first.type,
        name=f"{first.name}/ping" if first.type.is_account else first.name,
        owner_id=first.account_id or webhook.owner_id,
        private=False,
    )
