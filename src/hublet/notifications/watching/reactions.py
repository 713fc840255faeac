"""What begins and ends watching without anybody asking for it."""

from hublet.core.database import Connection
from hublet.core.outbox import reacts_to
from hublet.events import MemberAdded, MemberRemoved, RepoDeleted
from hublet.notifications.watching import store
from hublet.notifications.watching.records import Target, WatchType


@reacts_to(MemberAdded)
async def watch_organization(conn: Connection, event: MemberAdded) -> None:
    await store.add_membership(conn, event.organization_id, user_id=event.user_id)


@reacts_to(MemberRemoved)
async def leave_organization(conn: Connection, event: MemberRemoved) -> None:
    organization = Target(type=WatchType.org, id=event.organization_id)
    await store.remove_watches(conn, [organization], user_id=event.user_id)


@reacts_to(RepoDeleted)
async def forget_repo(conn: Connection, event: RepoDeleted) -> None:
    await store.forget(conn, event.repo.id)
