"""Access to jobs: who may see, run and change those of an owner, and what a creator may mount."""

from collections.abc import Sequence

from hublet.accounts.access import effective_role
from hublet.accounts.errors import (
    OrganizationNotFound,
    ResourceGroupNotFound,
    RoleNeeded,
)
from hublet.accounts.names import name_key
from hublet.accounts.organizations import service as organizations
from hublet.accounts.organizations import store as memberships
from hublet.accounts.records import Owner, OwnerType, ResourceGroupRecord, Role
from hublet.accounts.resource_groups import service as resource_groups
from hublet.core.database import Reader
from hublet.core.dataclasses import dataclass
from hublet.jobs import store
from hublet.jobs.errors import (
    CreatorGone,
    GroupNotForUsers,
    GroupNotFound,
    GroupRoleNeeded,
    NamespaceNotFound,
    RightsGone,
    SpaceNotFound,
    VolumeNotFound,
    VolumeNotWritable,
)
from hublet.jobs.records import Initiator, JobFilter, JobRecord, Mount, Stage
from hublet.repos import service as repos
from hublet.repos.errors import AccessNotGranted, RepoMoved, RepoNotFound, RightNeeded
from hublet.repos.records import Repo, RepoAddress, RepoType, Right
from hublet.tokens.delegations import Delegation, find_delegate
from hublet.tokens.errors import OrganizationRefused, ScopeNeeded
from hublet.tokens.records import Caller, Scope

# Deleted jobs are listed only when their stage is asked for.
_LISTED_STAGES = tuple(stage for stage in Stage if stage is not Stage.deleted)
# That a form offers.
_MOST_GROUPS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class JobAccess:
    """The access of a caller to an owner's jobs; nobody without it learns that there are any."""

    owner: Owner
    caller: Caller
    # In the organization; users are the administrators of their own jobs.
    role: Role
    # Whether one of the public clients calls, which read more of a record (decision 0028).
    for_public_client: bool = False

    def may_change(self, creator_id: str, role: Role | None) -> bool:
        """Tell whether a role allows to change what this creator made, a job or a scheduled job."""
        # A contributor does with the jobs they created what a writer does with all.
        is_own = creator_id == self.caller.user_id
        return role is not None and role.covers(Role.contributor if is_own else Role.write)


def filter_for(
    access: JobAccess,
    *,
    stages: Sequence[Stage] = (),
    labels: frozenset[str] = frozenset(),
    initiator: Initiator | None = None,
) -> JobFilter:
    """Return the filter of a list: what the caller sees of the owner's jobs, and no more."""
    return JobFilter(
        owner_id=access.owner.id,
        user_id=access.caller.user_id,
        sees_every_group=access.role is Role.admin,
        stages=tuple(stages) or _LISTED_STAGES,
        labels=labels,
        initiator=initiator,
    )


async def get_access(conn: Reader, caller: Caller, name: str) -> JobAccess:
    """Return the caller's access to the jobs under a name; NamespaceNotFound: they have none."""
    access = await _get_access(conn, caller, name)
    if not caller.may(Scope.jobs, on=access.owner.id):
        raise ScopeNeeded([Scope.jobs])
    return access


async def sees_jobs(conn: Reader, caller: Caller, name: str) -> bool:
    """Tell whether the caller has access to the jobs under a name."""
    try:
        await get_access(conn, caller, name)
    except (NamespaceNotFound, OrganizationRefused, ScopeNeeded):
        return False
    return True


async def get_access_of_creator(conn: Reader, creator: Caller, owner_id: str) -> JobAccess:
    """Return the access of somebody in whose name the hub acts, by the id of the owner."""
    owner = await store.find_owner(conn, owner_id)
    if owner is None:
        raise NamespaceNotFound(owner_id)
    return await _get_access(conn, creator, owner.name)


async def _get_access(conn: Reader, caller: Caller, name: str) -> JobAccess:
    if name_key(name) == name_key(caller.user_name):
        owner = Owner(id=caller.user_id, name=caller.user_name, type=OwnerType.user)
        return JobAccess(owner=owner, caller=caller, role=Role.admin)
    try:
        organization = await organizations.get(conn, name)
    except OrganizationNotFound:
        raise NamespaceNotFound(name) from None
    caller.check_reaches(organization.id)
    role = await memberships.role_of(conn, organization.id, user_id=caller.user_id)
    if role is None:
        raise NamespaceNotFound(name)
    owner = Owner(id=organization.id, name=organization.name, type=OwnerType.organization)
    return JobAccess(owner=owner, caller=caller, role=role)


async def role_in_group(conn: Reader, access: JobAccess, group_id: str | None) -> Role | None:
    """Return the role that counts for a job in a resource group, or in none; None: no access."""
    group_role = None
    if group_id is not None:
        group_role = await memberships.group_role_of(conn, group_id, user_id=access.caller.user_id)
    return effective_role(
        organization=access.role, resource_group_id=group_id, resource_group=group_role
    )


async def check_may_run(conn: Reader, access: JobAccess, group_id: str | None) -> None:
    """Refuse somebody who may not run jobs there; in a resource group the role there decides."""
    owner = access.owner
    if group_id is None:
        if not access.role.covers(Role.contributor):
            raise RoleNeeded(Role.contributor, owner.name)
        return
    if not owner.is_organization:
        raise GroupNotForUsers
    try:
        await resource_groups.get(conn, await organizations.get(conn, owner.name), group_id)
    except ResourceGroupNotFound:
        raise GroupNotFound(group_id, owner.name) from None
    role = await role_in_group(conn, access, group_id)
    if role is None or not role.covers(Role.contributor):
        raise GroupRoleNeeded(Role.contributor)


async def list_groups_to_run_in(conn: Reader, access: JobAccess) -> list[ResourceGroupRecord]:
    """Return the resource groups in which the caller may run jobs; users have none."""
    if not access.owner.is_organization:
        return []
    organization = await organizations.get(conn, access.owner.name)
    groups = await resource_groups.list_visible(
        conn, organization, user_id=access.caller.user_id, after="", limit=_MOST_GROUPS
    )
    roles = {group.id: await role_in_group(conn, access, group.id) for group in groups}
    return [
        group
        for group in groups
        if (role := roles[group.id]) is not None and role.covers(Role.contributor)
    ]


async def may_run(conn: Reader, access: JobAccess) -> bool:
    """Tell whether the caller may run jobs of this owner, in a resource group or in none."""
    if access.role.covers(Role.contributor):
        return True
    return bool(await list_groups_to_run_in(conn, access))


async def get_creator(conn: Reader, user_id: str) -> Caller:
    """Return a user as a caller with all their rights; CreatorGone when the account is off."""
    return await get_delegate(conn, Delegation(user_id=user_id))


async def get_delegate(conn: Reader, delegation: Delegation) -> Caller:
    """Return the caller in whose name the hub acts, with no more rights than were granted then."""
    delegate = await find_delegate(conn, delegation)
    if delegate is None:
        raise CreatorGone
    return delegate


async def get_delegated_access(conn: Reader, delegation: Delegation, owner_id: str) -> JobAccess:
    """Return the access with which the hub acts later in somebody's name.

    It has no more rights than were granted then, and none that the user has lost since. Raises
    CreatorGone, RightsGone, and ScopeNeeded when jobs of this owner were never granted.
    """
    delegate = await get_delegate(conn, delegation)
    try:
        access = await get_access_of_creator(conn, delegate, owner_id)
    except (NamespaceNotFound, OrganizationRefused):
        raise RightsGone from None
    if not access.caller.may(Scope.jobs, on=owner_id):
        raise ScopeNeeded([Scope.jobs])
    return access


async def get_delegate_of_job(conn: Reader, job: JobRecord) -> Caller:
    """Return the caller in whose name a job runs, if they may still run jobs there."""
    access = await get_delegated_access(conn, job.delegation, job.owner_id)
    await check_may_run(conn, access, job.resource_group_id)
    return access.caller


async def get_mounted(conn: Reader, creator: Caller, place: int, mount: Mount) -> Repo:
    """Return the repository of the volume in this place, if the creator may mount it so."""
    repo = await find_mounted(conn, creator, mount)
    if repo is None:
        raise VolumeNotFound(place, mount.type, mount.source)
    if not mount.read_only and not await repos.may(conn, creator, repo, Right.write):
        raise VolumeNotWritable(place, mount.source)
    return repo


async def find_mounted(conn: Reader, creator: Caller, mount: Mount) -> Repo | None:
    """Return the repository of a volume if the creator may read it."""
    return await _find_readable(conn, creator, RepoType(mount.type), mount.source)


async def get_space(conn: Reader, creator: Caller, name: str) -> Repo:
    """Return the space that a job runs, if the creator may read it."""
    space = await _find_readable(conn, creator, RepoType.space, name)
    if space is None:
        raise SpaceNotFound(name)
    return space


async def _find_readable(conn: Reader, creator: Caller, kind: RepoType, source: str) -> Repo | None:
    namespace, _, name = source.partition("/")
    address = RepoAddress(type=kind, namespace=namespace, name=name)
    try:
        return await repos.get(conn, creator, address, Right.read)
    except (RepoNotFound, RepoMoved, AccessNotGranted, OrganizationRefused, RightNeeded):
        return None
