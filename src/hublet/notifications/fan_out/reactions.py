"""What inboxes hear of after something happened, in the worker."""

from hublet.core.database import Connection
from hublet.core.outbox import reacts_to
from hublet.core.queue import handles
from hublet.events import (
    CommentCreated,
    CommentUpdated,
    MemberRemoved,
    MemberRoleChanged,
    RepoConfigUpdated,
    RepoDeleted,
    RepoMoved,
    ResourceGroupMemberRemoved,
    ThreadCreated,
    ThreadDeleted,
    ThreadUpdated,
)
from hublet.notifications.fan_out import clearing, service
from hublet.notifications.fan_out.records import MemberReview, News, RepoReview, ThreadGone

# Settings of a repository that decide who sees it.
_DECIDING = {"private", "visibility", "resourceGroupId"}


@reacts_to(ThreadCreated)
async def tell_of_thread(conn: Connection, event: ThreadCreated) -> None:
    event_id = event.comment.id if event.comment else None
    await service.tell(
        conn, News(thread_id=event.thread.id, event_id=event_id, actor_id=event.actor_id)
    )


@reacts_to(CommentCreated)
async def tell_of_comment(conn: Connection, event: CommentCreated) -> None:
    await service.note_actor(conn, event.thread.id, event.actor_id)
    await service.tell(
        conn, News(thread_id=event.thread.id, event_id=event.comment.id, actor_id=event.actor_id)
    )


@reacts_to(CommentUpdated)
async def tell_of_edited_comment(conn: Connection, event: CommentUpdated) -> None:
    news = News(thread_id=event.thread.id, event_id=event.comment.id, actor_id=event.actor_id)
    await service.tell_mentioned(conn, news, event.mentioned_ids)


@reacts_to(ThreadUpdated)
async def tell_of_change(conn: Connection, event: ThreadUpdated) -> None:
    await service.note_actor(conn, event.thread.id, event.actor_id)
    news = News(thread_id=event.thread.id, event_id=event.event_id, actor_id=event.actor_id)
    pushed = "content" in event.changed and event.thread.is_pull_request
    if pushed or "status" in event.changed:
        await service.tell(conn, news)
    else:
        await service.tell_mentioned(conn, news, event.mentioned_ids)


@handles(service.TELL, reads=News)
async def tell_more(conn: Connection, news: News) -> None:
    await service.tell(conn, news)


@reacts_to(ThreadDeleted)
async def forget_thread(conn: Connection, event: ThreadDeleted) -> None:
    await clearing.forget_thread(conn, ThreadGone(thread_id=event.thread.id))


@handles(clearing.FORGET_THREAD, reads=ThreadGone)
async def forget_thread_further(conn: Connection, gone: ThreadGone) -> None:
    await clearing.forget_thread(conn, gone)


@reacts_to(RepoDeleted)
async def forget_repo(conn: Connection, event: RepoDeleted) -> None:
    await clearing.review_repo(conn, RepoReview(repo_id=event.repo.id))


@reacts_to(RepoConfigUpdated)
async def review_repo(conn: Connection, event: RepoConfigUpdated) -> None:
    if _DECIDING & event.updated_config.keys():
        await clearing.review_repo(conn, RepoReview(repo_id=event.repo.id))


@reacts_to(RepoMoved)
async def review_moved_repo(conn: Connection, event: RepoMoved) -> None:
    if event.moved_to_owner_id != event.repo.owner_id:
        await clearing.review_repo(conn, RepoReview(repo_id=event.repo.id))


@handles(clearing.REVIEW_REPO, reads=RepoReview)
async def review_repo_further(conn: Connection, review: RepoReview) -> None:
    await clearing.review_repo(conn, review)


@reacts_to(MemberRemoved)
async def review_former_member(conn: Connection, event: MemberRemoved) -> None:
    await _review_member(conn, event)


@reacts_to(MemberRoleChanged)
async def review_member(conn: Connection, event: MemberRoleChanged) -> None:
    # An administrator sees every resource group, other members only their own.
    await _review_member(conn, event)


@reacts_to(ResourceGroupMemberRemoved)
async def review_group_member(conn: Connection, event: ResourceGroupMemberRemoved) -> None:
    await _review_member(conn, event)


async def _review_member(
    conn: Connection, event: MemberRemoved | MemberRoleChanged | ResourceGroupMemberRemoved
) -> None:
    review = MemberReview(user_id=event.user_id, organization_id=event.organization_id)
    await clearing.review_member(conn, review)


@handles(clearing.REVIEW_MEMBER, reads=MemberReview)
async def review_member_further(conn: Connection, review: MemberReview) -> None:
    await clearing.review_member(conn, review)
