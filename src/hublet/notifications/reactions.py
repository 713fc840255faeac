"""Reactions of notifications: events become inbox items, messages of the hub, mails and watches."""

from datetime import timedelta

import msgspec

from hublet.accounts.settings import emails
from hublet.core.database import Connection, Database, Reader
from hublet.core.outbox import reacts_to
from hublet.core.queue import NewTask, add, handles, handles_slowly
from hublet.events import (
    AccessDecided,
    AccessEnded,
    AccessRequested,
    CommentCreated,
    CommentUpdated,
    CredentialRevoked,
    EmailAdded,
    EmailVerified,
    JobEnded,
    JoinRequestDeclined,
    JoinRequested,
    MemberAdded,
    MemberRemoved,
    MemberRoleChanged,
    PasswordChanged,
    RepoConfigUpdated,
    RepoContentUpdated,
    RepoDeleted,
    RepoMoved,
    ResourceGroupMemberRemoved,
    SecretDetected,
    ThreadCreated,
    ThreadDeleted,
    ThreadUpdated,
    UserDisabled,
    UserFollowed,
    WebhookFailing,
    WebhookRecovered,
    WebhookSuspended,
    WebhookThrottled,
)
from hublet.notifications import watches_store
from hublet.notifications.mail import links, tags
from hublet.notifications.mail import sender as _mail_sender  # noqa: F401 - importing registers
from hublet.notifications.messages import leaks, store, texts
from hublet.notifications.messages.leaks import LeakSearch
from hublet.notifications.messages.service import notify, notify_by_mail, notify_in_inbox
from hublet.notifications.preferences.switches import PreferenceKey
from hublet.notifications.recipients import cleanup, service
from hublet.notifications.recipients.records import (
    MemberReview,
    RepoReview,
    ThreadActivity,
    ThreadRemoval,
)
from hublet.notifications.records import SubscriptionTarget, WatchType

SEARCH_FOR_LEAKS = "notifications.look-for-credentials"

_DAY = timedelta(days=1)
# Somebody who follows, unfollows and follows again, or asks again, causes one message.
_MONTH = timedelta(days=30)
# Settings of a repository that decide who sees it.
_VISIBILITY_SETTINGS = {"private", "visibility", "resourceGroupId"}


@reacts_to(ThreadCreated)
async def notify_of_thread(conn: Connection, event: ThreadCreated) -> None:
    event_id = event.comment.id if event.comment else None
    await service.notify(
        conn, ThreadActivity(thread_id=event.thread.id, event_id=event_id, actor_id=event.actor_id)
    )


@reacts_to(CommentCreated)
async def notify_of_comment(conn: Connection, event: CommentCreated) -> None:
    await service.record_participation(conn, event.thread.id, event.actor_id)
    await service.notify(
        conn,
        ThreadActivity(
            thread_id=event.thread.id, event_id=event.comment.id, actor_id=event.actor_id
        ),
    )


@reacts_to(CommentUpdated)
async def notify_of_edited_comment(conn: Connection, event: CommentUpdated) -> None:
    activity = ThreadActivity(
        thread_id=event.thread.id, event_id=event.comment.id, actor_id=event.actor_id
    )
    await service.notify_mentioned(conn, activity, event.mentioned_ids)


@reacts_to(ThreadUpdated)
async def notify_of_change(conn: Connection, event: ThreadUpdated) -> None:
    await service.record_participation(conn, event.thread.id, event.actor_id)
    activity = ThreadActivity(
        thread_id=event.thread.id, event_id=event.event_id, actor_id=event.actor_id
    )
    pushed = "content" in event.changed and event.thread.is_pull_request
    if pushed or "status" in event.changed:
        await service.notify(conn, activity)
    else:
        await service.notify_mentioned(conn, activity, event.mentioned_ids)


@handles(service.NOTIFY, reads=ThreadActivity)
async def notify_next_page(conn: Connection, activity: ThreadActivity) -> None:
    await service.notify(conn, activity)


@reacts_to(ThreadDeleted)
async def remove_thread(conn: Connection, event: ThreadDeleted) -> None:
    await cleanup.remove_thread(conn, ThreadRemoval(thread_id=event.thread.id))


@handles(cleanup.REMOVE_THREAD, reads=ThreadRemoval)
async def remove_thread_next_page(conn: Connection, removal: ThreadRemoval) -> None:
    await cleanup.remove_thread(conn, removal)


@reacts_to(RepoDeleted)
async def review_deleted_repo(conn: Connection, event: RepoDeleted) -> None:
    await cleanup.review_repo(conn, RepoReview(repo_id=event.repo.id))


@reacts_to(RepoConfigUpdated)
async def review_repo(conn: Connection, event: RepoConfigUpdated) -> None:
    if _VISIBILITY_SETTINGS & event.updated_config.keys():
        await cleanup.review_repo(conn, RepoReview(repo_id=event.repo.id))


@reacts_to(RepoMoved)
async def review_moved_repo(conn: Connection, event: RepoMoved) -> None:
    if event.moved_to_owner_id != event.repo.owner_id:
        await cleanup.review_repo(conn, RepoReview(repo_id=event.repo.id))


@handles(cleanup.REVIEW_REPO, reads=RepoReview)
async def review_repo_next_page(conn: Connection, review: RepoReview) -> None:
    await cleanup.review_repo(conn, review)


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
    await cleanup.review_member(conn, review)


@handles(cleanup.REVIEW_MEMBER, reads=MemberReview)
async def review_member_next_page(conn: Connection, review: MemberReview) -> None:
    await cleanup.review_member(conn, review)


@reacts_to(RepoContentUpdated, when=tags.has_new_tags)
async def queue_new_tags(conn: Connection, event: RepoContentUpdated) -> None:
    await tags.queue_new_tags(conn, event)


@reacts_to(EmailAdded)
async def request_verification(conn: Connection, event: EmailAdded) -> None:
    await links.request_verification(conn, email_id=event.email_id, user_id=event.user_id)


@reacts_to(EmailVerified)
async def notify_email_verified(conn: Connection, event: EmailVerified) -> None:
    """Notify of a further address: it could be that of somebody who stole a token."""
    email = await emails.find(conn, event.email_id)
    if email is not None and not email.is_primary:
        await notify(conn, [event.user_id], texts.email_verified(email.address), key=None)


@reacts_to(PasswordChanged)
async def notify_password_changed(conn: Connection, event: PasswordChanged) -> None:
    await notify_by_mail(conn, event.user_id, texts.password_changed(), key=None)


def _may_leak(event: RepoContentUpdated) -> bool:
    return event.may_leak and not event.repo.private


@reacts_to(RepoContentUpdated, when=_may_leak)
async def queue_leak_search(conn: Connection, event: RepoContentUpdated) -> None:
    search = LeakSearch(
        repo_id=event.repo.id, updated_refs=event.updated_refs, head_sha=event.repo.head_sha
    )
    if search.starts:
        await add(conn, NewTask(kind=SEARCH_FOR_LEAKS, body=msgspec.json.encode(search).decode()))


@handles_slowly(SEARCH_FOR_LEAKS, reads=LeakSearch)
async def search_for_leaks(database: Database, search: LeakSearch) -> None:
    await leaks.search_repo(database, search)


@reacts_to(WebhookFailing)
async def notify_webhook_failing(conn: Connection, event: WebhookFailing) -> None:
    """Mail only from the second step on: a first failure may pass, later ones lead to suspension."""
    recipients = await _webhook_recipients(conn, event)
    text = texts.webhook_failing(event, **await _name_webhook(conn, event))
    if event.percent == 0:
        await notify_in_inbox(conn, recipients, text, not_again_within=_DAY)
    else:
        await notify(conn, recipients, text, key=None)


@reacts_to(WebhookSuspended)
async def notify_webhook_suspended(conn: Connection, event: WebhookSuspended) -> None:
    text = texts.webhook_suspended(event, **await _name_webhook(conn, event))
    await notify(conn, await _webhook_recipients(conn, event), text, key=None)


@reacts_to(WebhookThrottled)
async def notify_webhook_throttled(conn: Connection, event: WebhookThrottled) -> None:
    text = texts.webhook_throttled(event, **await _name_webhook(conn, event))
    await notify(conn, await _webhook_recipients(conn, event), text, key=None)


@reacts_to(WebhookRecovered)
async def notify_webhook_recovered(conn: Connection, event: WebhookRecovered) -> None:
    text = texts.webhook_recovered(event, **await _name_webhook(conn, event))
    await notify_in_inbox(conn, await _webhook_recipients(conn, event), text, not_again_within=_DAY)


@reacts_to(CredentialRevoked)
async def notify_credential_revoked(conn: Connection, event: CredentialRevoked) -> None:
    if event.reason == "owner":
        return
    recipients, owner = await _credential_recipients(conn, event)
    key = PreferenceKey.secret_detected if event.reason == "reported" else None
    await notify(conn, recipients, texts.credential_revoked(event, owner=owner), key=key)


@reacts_to(SecretDetected)
async def notify_credential_leaked(conn: Connection, event: SecretDetected) -> None:
    recipients, owner = await _credential_recipients(conn, event)
    text = texts.credential_detected(event, owner=owner)
    # A file that contains it may change often; its owner is notified once.
    await notify(conn, recipients, text, key=PreferenceKey.secret_detected, not_again_within=_MONTH)


@reacts_to(AccessEnded)
async def notify_app_access_ended(conn: Connection, event: AccessEnded) -> None:
    await notify(conn, [event.user_id], texts.access_ended(event), key=None)


@reacts_to(UserDisabled)
async def notify_account_disabled(conn: Connection, event: UserDisabled) -> None:
    await notify_by_mail(
        conn, event.user_id, texts.account_disabled(), key=PreferenceKey.locked_out
    )


@reacts_to(UserFollowed)
async def notify_new_follower(conn: Connection, event: UserFollowed) -> None:
    text = texts.new_follower(follower=await _account_name(conn, event.follower_id))
    # Also sent for organizations, of which `notify` makes nothing: they are no person.
    await notify(
        conn, [event.account_id], text, key=PreferenceKey.user_follows, not_again_within=_MONTH
    )


@reacts_to(AccessRequested)
async def notify_access_requested(conn: Connection, event: AccessRequested) -> None:
    # With an automatic gate there is nothing to decide.
    if event.status != "pending":
        return
    recipients = set(await store.list_responsible(conn, event.repo.owner_id))
    if event.repo.resource_group_id is not None:
        recipients.update(await store.list_group_administrators(conn, event.repo.resource_group_id))
    text = texts.access_requested(
        event.repo,
        requester=await _account_name(conn, event.user_id),
        base_url=conn.hub.settings.base_url,
    )
    key = PreferenceKey.gated_user_access_request
    await notify(conn, recipients, text, key=key, not_again_within=_DAY)


@reacts_to(AccessDecided)
async def notify_access_decided(conn: Connection, event: AccessDecided) -> None:
    decisions = {"accepted": texts.access_accepted, "rejected": texts.access_rejected}
    decided = decisions.get(event.status)
    if decided is not None:
        key = PreferenceKey.gated_user_access_request
        text = decided(event.repo, conn.hub.settings.base_url)
        await notify(conn, [event.user_id], text, key=key)


@reacts_to(MemberAdded)
async def notify_member_added(conn: Connection, event: MemberAdded) -> None:
    if event.actor_id == event.user_id:
        return
    by = None if event.actor_id is None else await _account_name(conn, event.actor_id)
    organization = await _account_name(conn, event.organization_id)
    text = texts.added_to_organization(organization=organization, role=event.role, by=by)
    await notify(conn, [event.user_id], text, key=PreferenceKey.org_request)


@reacts_to(JoinRequested)
async def notify_join_requested(conn: Connection, event: JoinRequested) -> None:
    text = texts.join_requested(
        organization=await _account_name(conn, event.organization_id),
        requester=await _account_name(conn, event.user_id),
        message=event.message,
        base_url=conn.hub.settings.base_url,
    )
    recipients = await store.list_responsible(conn, event.organization_id)
    await notify(conn, recipients, text, key=PreferenceKey.org_request, not_again_within=_DAY)


@reacts_to(JoinRequestDeclined)
async def notify_join_request_declined(conn: Connection, event: JoinRequestDeclined) -> None:
    organization = await _account_name(conn, event.organization_id)
    text = texts.join_request_declined(organization=organization, reason=event.reason)
    await notify(conn, [event.user_id], text, key=PreferenceKey.org_request)


@reacts_to(JobEnded)
async def notify_job_ended(conn: Connection, event: JobEnded) -> None:
    """Notify the creator, unless the job was cancelled: that is known."""
    if event.stage not in texts.JOB_ENDINGS:
        return
    is_own = event.owner_id == event.creator_id
    if is_own or await store.is_member(conn, event.owner_id, user_id=event.creator_id):
        owner, base_url = await _account_name(conn, event.owner_id), conn.hub.settings.base_url
        text = texts.job_ended(event, owner=owner, base_url=base_url)
        await notify(conn, [event.creator_id], text, key=PreferenceKey.job_status)


async def _credential_recipients(
    conn: Reader, event: CredentialRevoked | SecretDetected
) -> tuple[list[str], str | None]:
    """Return the recipients, and the credential's owner unless that is the recipient."""
    recipients = await store.list_responsible(conn, event.user_id)
    return recipients, None if event.user_id in recipients else await _account_name(
        conn, event.user_id
    )


_WebhookEvent = WebhookFailing | WebhookSuspended | WebhookThrottled | WebhookRecovered


async def _name_webhook(conn: Reader, event: _WebhookEvent) -> dict[str, str]:
    """Return whose webhook it is, and where its page is."""
    whose = await _account_name(conn, event.owner_id)
    is_organization = await store.is_organization(conn, event.owner_id)
    place = f"/organizations/{whose}" if is_organization else ""
    url = f"{conn.hub.settings.base_url}{place}/settings/webhooks/{event.webhook_id}"
    return {"whose": whose, "url": url}


async def _webhook_recipients(conn: Reader, event: _WebhookEvent) -> set[str]:
    """Return the recipients: the webhook's owner, or the administrators, and its creator.

    A creator who has left the organization is not notified any more.
    """
    recipients = set(await store.list_responsible(conn, event.owner_id))
    if await store.is_member(conn, event.owner_id, user_id=event.creator_id):
        recipients.add(event.creator_id)
    return recipients


async def _account_name(conn: Reader, account_id: str) -> str:
    return await store.name_of(conn, account_id) or "somebody"


@reacts_to(MemberAdded)
async def watch_organization(conn: Connection, event: MemberAdded) -> None:
    await watches_store.watch_as_member(conn, event.organization_id, user_id=event.user_id)


@reacts_to(MemberRemoved)
async def unwatch_organization(conn: Connection, event: MemberRemoved) -> None:
    organization = SubscriptionTarget(type=WatchType.org, id=event.organization_id)
    await watches_store.remove_watches(conn, [organization], user_id=event.user_id)


@reacts_to(RepoDeleted)
async def unwatch_repo(conn: Connection, event: RepoDeleted) -> None:
    await watches_store.remove_all_watches(conn, event.repo.id)
