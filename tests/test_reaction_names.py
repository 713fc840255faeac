"""Tasks that wait in the database carry names of reactions: none may change without a migration."""

import json

import hublet.app
import hublet.worker
from hublet.core.database import Connection, Database
from hublet.core.database.migrations import known_migrations
from hublet.core.queue import handlers

# Whoever changes a line here renames the tasks that wait, in a migration; see 0018.
NAMES = """
access.ended:notifications.notify_app_access_ended
comment.created:notifications.notify_of_comment
comment.updated:notifications.notify_of_edited_comment
credential.detected:notifications.notify_credential_leaked
credential.revoked:accounts.record_revocation
credential.revoked:notifications.notify_credential_revoked
credentials.reported:oauth.expire_reported
job.ended:notifications.notify_job_ended
organization.join-request-declined:notifications.notify_join_request_declined
organization.join-requested:notifications.notify_join_requested
organization.member-added:notifications.notify_member_added
organization.member-added:notifications.watch_organization
organization.member-removed:notifications.review_former_member
organization.member-removed:notifications.unwatch_organization
organization.member-role-changed:notifications.review_member
repo.access-decided:notifications.notify_access_decided
repo.access-requested:notifications.notify_access_requested
repo.config-updated:notifications.review_repo
repo.content-updated:community.queue_pushed_commits
repo.content-updated:notifications.queue_leak_search
repo.content-updated:notifications.queue_new_tags
repo.content-updated:repos.plan_packing
repo.deleted:notifications.review_deleted_repo
repo.deleted:notifications.unwatch_repo
repo.moved:notifications.review_moved_repo
resource-group.member-removed:notifications.review_group_member
thread.created:notifications.notify_of_thread
thread.deleted:notifications.remove_thread
thread.updated:notifications.notify_of_change
user.created:scim.queue_invitations_of_new_user
user.disabled:notifications.notify_account_disabled
user.email-added:notifications.request_verification
user.email-verified:notifications.notify_email_verified
user.email-verified:scim.queue_invitations_of_verified_email
user.followed:notifications.notify_new_follower
user.password-changed:notifications.notify_password_changed
webhook.failing:notifications.notify_webhook_failing
webhook.recovered:notifications.notify_webhook_recovered
webhook.suspended:notifications.notify_webhook_suspended
webhook.throttled:notifications.notify_webhook_throttled
"""

# Of version 0.1, before 0018.
FORMER_NAMES = """
access.ended:notifications.messages.tell_that_an_app_lost_its_access
comment.created:notifications.fan_out.tell_of_comment
comment.updated:notifications.fan_out.tell_of_edited_comment
credential.detected:notifications.messages.tell_that_a_credential_is_found
credential.revoked:accounts.audit.record_revocation
credential.revoked:notifications.messages.tell_that_a_credential_is_revoked
credentials.reported:oauth.apps.secrets.expire_reported
job.ended:notifications.messages.tell_that_a_job_ended
organization.member-added:notifications.messages.tell_of_an_organization
organization.member-added:notifications.watching.watch_organization
organization.member-removed:notifications.fan_out.review_former_member
organization.member-removed:notifications.watching.leave_organization
organization.member-role-changed:notifications.fan_out.review_member
repo.access-decided:notifications.messages.tell_of_a_decision
repo.access-requested:notifications.messages.tell_of_a_request
repo.config-updated:notifications.fan_out.review_repo
repo.content-updated:community.discussions.pull_requests.look_at_pull_requests
repo.content-updated:notifications.mail.begin_with_tags
repo.content-updated:notifications.messages.leaks.plan_a_look
repo.content-updated:repos.maintenance.plan_packing
repo.deleted:notifications.fan_out.forget_repo
repo.deleted:notifications.watching.forget_repo
repo.moved:notifications.fan_out.review_moved_repo
resource-group.member-removed:notifications.fan_out.review_group_member
thread.created:notifications.fan_out.tell_of_thread
thread.deleted:notifications.fan_out.forget_thread
thread.updated:notifications.fan_out.tell_of_change
user.created:scim.let_in_new_user
user.disabled:notifications.messages.tell_that_an_account_is_disabled
user.email-added:notifications.mail.ask_for_proof
user.email-verified:scim.let_in_owner_of_address
user.followed:notifications.messages.tell_of_a_follower
webhook.failing:notifications.messages.tell_that_a_webhook_fails
webhook.recovered:notifications.messages.tell_that_a_webhook_works_again
webhook.suspended:notifications.messages.tell_that_a_webhook_is_suspended
"""


def test_reactions_keep_the_names_that_tasks_carry() -> None:
    assert hublet.app
    assert hublet.worker
    found = {kind for kind in handlers if kind.startswith("reaction:")}
    assert found == {f"reaction:{name}" for name in NAMES.split()}


async def test_tasks_that_wait_under_a_former_name_find_their_handler(database: Database) -> None:
    former = [f"reaction:{name}" for name in FORMER_NAMES.split()]
    async with database.transaction() as conn:
        await add_tasks(conn, [*former, "mail.send"])
        await conn.apply(migration("reaction_names"))
        rows = await conn.fetch_all("SELECT kind FROM tasks")
    kinds = [row["kind"] for row in rows]
    assert len(set(kinds)) == len(former) + 1
    assert [kind for kind in kinds if kind not in handlers and kind != "mail.send"] == []


def migration(name: str) -> str:
    return next(each.script for each in known_migrations() if each.name == name)


async def add_tasks(conn: Connection, kinds: list[str]) -> None:
    await conn.execute_many(
        """
        INSERT INTO tasks (id, kind, slow, body, created_at, due_at, attempts)
        VALUES ($1, $2, $3, $4, 0, 0, 0)
        """,
        [(str(number), kind, False, json.dumps({})) for number, kind in enumerate(kinds)],
    )
