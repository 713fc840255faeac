"""Rules of SSH: who may attach to a job, and what the audit log records of it."""

import hmac

from hublet.accounts.access import effective_role
from hublet.accounts.organizations import audit_store as audit
from hublet.accounts.organizations import security_store
from hublet.accounts.organizations import store as memberships
from hublet.accounts.records import Actor, Role, is_within
from hublet.accounts.settings import store as keys
from hublet.core.database import Connection, Reader
from hublet.gateway import store
from hublet.gateway.records import Guest, KeyHolder, RunningJob
from hublet.jobs import store as jobs

SSH_OPENED = "job.ssh"
# Id that nothing has: a refusal makes the same queries, whatever it is that is missing.
_NOTHING = "-"


async def admit(
    conn: Reader, job_id: str, *, fingerprint: str, data: str, address: str
) -> Guest | None:
    """Return the guest for a key, if the job runs, has SSH, and the key's user may write to it.

    None for every other case, so that nobody learns which jobs and keys exist.
    """
    holder = await store.find_key_holder(conn, fingerprint)
    running = await store.find_running(conn, job_id)
    role = await _role(conn, holder, running)
    is_reached = await _is_reached(conn, holder, running, address)
    if holder is None or running is None or role is None or not role.covers(Role.write):
        return None
    if not is_reached or not running.job.spec.ssh or not hmac.compare_digest(holder.data, data):
        return None
    return Guest(holder=holder, running=running, fingerprint=fingerprint, address=address)


async def _is_reached(
    conn: Reader, holder: KeyHolder | None, running: RunningJob | None, address: str
) -> bool:
    """Tell whether the job's organization is reached from this address, by its networks."""
    limits = await security_store.limits_of_user(conn, holder.user_id if holder else _NOTHING)
    owner_id = running.job.owner_id if running else _NOTHING
    return all(
        is_within(address, limit.ip_ranges or ())
        for limit in limits
        if limit.organization_id == owner_id
    )


async def _role(conn: Reader, holder: KeyHolder | None, running: RunningJob | None) -> Role | None:
    user_id = holder.user_id if holder else _NOTHING
    owner_id = running.job.owner_id if running else _NOTHING
    group_id = running.job.resource_group_id if running else None
    role = await memberships.role_of(conn, owner_id, user_id=user_id)
    in_group = await memberships.group_role_of(conn, group_id or _NOTHING, user_id=user_id)
    if owner_id == user_id:
        return Role.admin
    return effective_role(organization=role, resource_group_id=group_id, resource_group=in_group)


async def record_session(conn: Connection, guest: Guest, *, address: str) -> None:
    """Store that the key was used, and in the audit log of an organization who opened SSH to its job."""
    await keys.set_ssh_key_used(conn, guest.fingerprint)
    job = guest.running.job
    owner = await jobs.find_owner(conn, job.owner_id)
    if owner is None or not owner.is_organization:
        return
    actor = Actor(id=guest.holder.user_id, name=guest.holder.user_name, address=address)
    await audit.record(
        conn, job.owner_id, actor, SSH_OPENED, target=job.id, details={"key": guest.fingerprint}
    )
