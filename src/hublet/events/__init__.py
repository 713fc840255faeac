"""The catalogue of facts.

Each one is published in the transaction of the change it tells of. Its docstring is its
documentation: `python -m hublet.events` writes docs/events.md from this package.
"""

from hublet.events.credentials import (
    CredentialCreated,
    CredentialRevoked,
)
from hublet.events.organizations import (
    MemberAdded,
    MemberRemoved,
    MemberRoleChanged,
    OrganizationCreated,
    OrganizationPlanChanged,
    OrganizationUpdated,
    ResourceGroupCreated,
    ResourceGroupDeleted,
    ResourceGroupMemberRemoved,
    ResourceGroupMemberSet,
    ResourceGroupUpdated,
    ServiceAccountCreated,
)
from hublet.events.users import (
    AdministratorChanged,
    EmailAdded,
    EmailRemoved,
    PasswordChanged,
    PrimaryEmailChanged,
    SshKeyAdded,
    SshKeyRemoved,
    UserCreated,
    UserDisabled,
    UserEnabled,
    UserFollowed,
    UserUpdated,
)

__all__ = [
    "AdministratorChanged",
    "CredentialCreated",
    "CredentialRevoked",
    "EmailAdded",
    "EmailRemoved",
    "MemberAdded",
    "MemberRemoved",
    "MemberRoleChanged",
    "OrganizationCreated",
    "OrganizationPlanChanged",
    "OrganizationUpdated",
    "PasswordChanged",
    "PrimaryEmailChanged",
    "ResourceGroupCreated",
    "ResourceGroupDeleted",
    "ResourceGroupMemberRemoved",
    "ResourceGroupMemberSet",
    "ResourceGroupUpdated",
    "ServiceAccountCreated",
    "SshKeyAdded",
    "SshKeyRemoved",
    "UserCreated",
    "UserDisabled",
    "UserEnabled",
    "UserFollowed",
    "UserUpdated",
]
