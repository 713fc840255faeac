"""What the hub tells its users after something happened, in the worker."""

from datetime import timedelta

from hublet.core.database import Connection, Reader
from hublet.core.outbox import reacts_to
from hublet.events import (
    AccessDecided,
    AccessEnded,
    AccessRequested,
    CredentialRevoked,
    JobEnded,
    MemberAdded,
    SecretDetected,
    UserDisabled,
    UserFollowed,
    WebhookFailing,
    WebhookRecovered,
    WebhookSuspended,
)
from hublet.notifications.messages import store, texts
from hublet.notifications.messages.service import tell, tell_by_mail, tell_in_inbox
from hublet.notifications.preferences.keys import Key

_DAY = timedelta(days=1)
# Who follows, leaves and follows again, or asks again and again, is heard of once.
_MONTH = timedelta(days=30)


@reacts_to(WebhookFailing)
async def tell_that_a_webhook_fails(conn: Connection, event: WebhookFailing) -> None:
    """Somebody who is told by mail can still prevent the suspension; that it began may pass."""
    people = await _of_webhook(conn, event)
    said = texts.webhook_failing(event, whose=await _name(conn, event.owner_id))
    if event.percent == 0:
        await tell_in_inbox(conn, people, said, not_again_within=_DAY)
    else:
        await tell(conn, people, said, key=None)


@reacts_to(WebhookSuspended)
async def tell_that_a_webhook_is_suspended(conn: Connection, event: WebhookSuspended) -> None:
    said = texts.webhook_suspended(event, whose=await _name(conn, event.owner_id))
    await tell(conn, await _of_webhook(conn, event), said, key=None)


@reacts_to(WebhookRecovered)
async def tell_that_a_webhook_works_again(conn: Connection, event: WebhookRecovered) -> None:
    said = texts.webhook_recovered(event, whose=await _name(conn, event.owner_id))
    await tell_in_inbox(conn, await _of_webhook(conn, event), said, not_again_within=_DAY)


@reacts_to(CredentialRevoked)
async def tell_that_a_credential_is_revoked(conn: Connection, event: CredentialRevoked) -> None:
    if event.reason == "owner":
        return
    people, owner = await _of_credential(conn, event)
    key = Key.secret_detected if event.reason == "reported" else None
    await tell(conn, people, texts.credential_revoked(event, owner=owner), key=key)


@reacts_to(SecretDetected)
async def tell_that_a_credential_is_found(conn: Connection, event: SecretDetected) -> None:
    people, owner = await _of_credential(conn, event)
    said = texts.credential_detected(event, owner=owner)
    # A file that holds it is changed again and again; its owner is told once.
    await tell(conn, people, said, key=Key.secret_detected, not_again_within=_MONTH)


@reacts_to(AccessEnded)
async def tell_that_an_app_lost_its_access(conn: Connection, event: AccessEnded) -> None:
    await tell(conn, [event.user_id], texts.access_ended(event), key=None)


@reacts_to(UserDisabled)
async def tell_that_an_account_is_disabled(conn: Connection, event: UserDisabled) -> None:
    await tell_by_mail(conn, event.user_id, texts.account_disabled(), key=Key.locked_out)


@reacts_to(UserFollowed)
async def tell_of_a_follower(conn: Connection, event: UserFollowed) -> None:
    said = texts.new_follower(follower=await _name(conn, event.follower_id))
    # An organization has followers too, but nobody in particular who would be told.
    await tell(conn, [event.account_id], said, key=Key.user_follows, not_again_within=_MONTH)


@reacts_to(AccessRequested)
async def tell_of_a_request(conn: Connection, event: AccessRequested) -> None:
    # With an automatic gate there is nothing to decide.
    if event.status != "pending":
        return
    people = set(await store.list_who_answer_for(conn, event.repo.owner_id))
    if event.repo.resource_group_id is not None:
        people.update(await store.list_group_administrators(conn, event.repo.resource_group_id))
    said = texts.access_requested(event.repo, requester=await _name(conn, event.user_id))
    key = Key.gated_user_access_request
    await tell(conn, people, said, key=key, not_again_within=_DAY)


@reacts_to(AccessDecided)
async def tell_of_a_decision(conn: Connection, event: AccessDecided) -> None:
    decisions = {"accepted": texts.access_accepted, "rejected": texts.access_rejected}
    decided = decisions.get(event.status)
    if decided is not None:
        key = Key.gated_user_access_request
        await tell(conn, [event.user_id], decided(event.repo), key=key)


@reacts_to(MemberAdded)
async def tell_of_an_organization(conn: Connection, event: MemberAdded) -> None:
    if event.actor_id == event.user_id:
        return
    by = None if event.actor_id is None else await _name(conn, event.actor_id)
    organization = await _name(conn, event.organization_id)
    said = texts.added_to_organization(organization=organization, role=event.role, by=by)
    await tell(conn, [event.user_id], said, key=Key.org_request)


@reacts_to(JobEnded)
async def tell_that_a_job_ended(conn: Connection, event: JobEnded) -> None:
    """Whoever asked for it hears of it; of one that was cancelled they know already."""
    if event.stage not in texts.ENDINGS_OF_JOBS:
        return
    is_own = event.owner_id == event.creator_id
    if is_own or await store.is_member(conn, event.owner_id, user_id=event.creator_id):
        said = texts.job_ended(event, owner=await _name(conn, event.owner_id))
        await tell(conn, [event.creator_id], said, key=Key.job_status)


async def _of_credential(
    conn: Reader, event: CredentialRevoked | SecretDetected
) -> tuple[list[str], str | None]:
    """Return who is to hear of a credential, and whose it is unless that is the one who hears."""
    people = await store.list_who_answer_for(conn, event.user_id)
    return people, None if event.user_id in people else await _name(conn, event.user_id)


async def _of_webhook(
    conn: Reader, event: WebhookFailing | WebhookSuspended | WebhookRecovered
) -> set[str]:
    """Return whom a webhook's troubles concern: its owner, or the administrators, and its creator.

    A creator who has left the organization hears nothing of it any more.
    """
    people = set(await store.list_who_answer_for(conn, event.owner_id))
    if await store.is_member(conn, event.owner_id, user_id=event.creator_id):
        people.add(event.creator_id)
    return people


async def _name(conn: Reader, account_id: str) -> str:
    return await store.name_of(conn, account_id) or "somebody"
