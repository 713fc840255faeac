"""Access to jobs: what a caller, or the creator of something, may do with an owner's jobs."""

from hublet.accounts.errors import RoleNeeded, UserNotFound
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import Role, User
from hublet.accounts.resource_groups import service as resource_groups
from hublet.accounts.users import service as accounts
from hublet.core.clock import now
from hublet.core.database import Reader
from hublet.core.light_dataclasses import dataclass
from hublet.jobs.errors import CreatorGone, GroupNotForUsers, GroupRoleNeeded
from hublet.jobs.records import JobRecord
from hublet.tokens.format import TokenKind
from hublet.tokens.records import ALL_SCOPES, Caller, TokenRecord, TokenRole


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A user or an organization."""

    id: str
    name: str
    # Either "user" or "org".
    type: str

    @property
    def is_organization(self) -> bool:
        return self.type == "org"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobAccess:
    """Somebody before the jobs of an owner; whoever has none does not even know of them."""

    owner: Owner
    caller: Caller
    # In the organization; users are the administrators of their own jobs.
    role: Role

    def role_in(self, group_id: str | None, group_role: Role | None) -> Role | None:
        """Return the role that counts: in a resource group only its own members have one.

        An administrator of the organization keeps that role everywhere in it.
        """
        return self.role if group_id is None or self.role is Role.admin else group_role

    def may_change(self, job: JobRecord, group_role: Role | None) -> bool:
        role = self.role_in(job.resource_group_id, group_role)
        if role is None:
            return False
        # A contributor does with the jobs they created what a writer does with all.
        own = job.creator_id == self.caller.user_id and role.covers(Role.contributor)
        return own or role.covers(Role.write)

    def may_see(self, job: JobRecord, group_role: Role | None) -> bool:
        return self.role_in(job.resource_group_id, group_role) is not None


async def check_may_run(conn: Reader, standing: JobAccess, group_id: str | None) -> None:
    """Refuse somebody who may not run jobs there; in a resource group the role there decides."""
    owner = standing.owner
    if group_id is None:
        if not standing.role.covers(Role.contributor):
            raise RoleNeeded(Role.contributor, owner.name)
        return
    if not owner.is_organization:
        raise GroupNotForUsers
    organization = await organizations.get(conn, owner.name)
    user_id = standing.caller.user_id
    role = await resource_groups.role_in(conn, organization, group_id, user_id=user_id)
    if role is None or not role.covers(Role.contributor):
        raise GroupRoleNeeded(Role.contributor)


async def get_creator(conn: Reader, user_id: str) -> Caller:
    """Return a user as a caller with all their rights; nobody whose account is off has any."""
    try:
        user = await accounts.get_user_by_id(conn, user_id)
    except UserNotFound:
        raise CreatorGone from None
    if user.disabled_at is not None:
        raise CreatorGone
    return _caller_for(user)


def _caller_for(user: User) -> Caller:
    # No token was shown: this one is nowhere stored, and its origin created nothing.
    token = TokenRecord(
        id="",
        kind=TokenKind.access,
        user_id=user.id,
        name="",
        role=TokenRole.write,
        hint="",
        created_at=now(),
    )
    return Caller(
        user_id=user.id, user_name=user.name, is_admin=False, token=token, scopes=ALL_SCOPES
    )
