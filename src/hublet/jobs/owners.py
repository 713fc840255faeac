"""Whose jobs a request is about, and what somebody may do with them."""

from hublet.accounts.records import Role
from hublet.core.light_dataclasses import dataclass
from hublet.jobs.records import Job
from hublet.tokens.records import Caller


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
class Standing:
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

    def may_change(self, job: Job, group_role: Role | None) -> bool:
        role = self.role_in(job.resource_group_id, group_role)
        if role is None:
            return False
        # A contributor does with the jobs they created what a writer does with all.
        own = job.creator_id == self.caller.user_id and role.covers(Role.contributor)
        return own or role.covers(Role.write)

    def may_see(self, job: Job, group_role: Role | None) -> bool:
        return self.role_in(job.resource_group_id, group_role) is not None
