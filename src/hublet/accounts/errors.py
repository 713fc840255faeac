"""Errors of accounts: users, organizations, resource groups and settings of a user.

InvalidRequest  400
├── InvalidName
├── InvalidEmail
├── WeakPassword
├── InvalidSshKey
├── NotForServiceAccounts
├── CannotFollowYourself
├── TooManyEmails
├── TooManySshKeys
├── InvalidJoinRequest
├── InvalidNetworkSecurity
├── InvalidEmailDomain
├── InvalidSocialHandle
├── NoSuchRole
├── TooManyInvitations
└── NotAnImage
NotAllowed  403
├── RoleNeeded
├── PlanNeeded
├── InvitationTooNarrow
├── WrongPassword
└── NoPassword
NotFound  404
├── UserNotFound
├── OrganizationNotFound
├── NotAMember
├── EmailNotFound
├── SshKeyNotFound
├── AccountNotFound
├── ResourceGroupNotFound
├── NotInResourceGroup
├── JoinRequestNotFound
├── EmailDomainNotFound
├── InvitationNotFound
└── ServiceAccountNotFound
Conflict  409
├── NameTaken
├── EmailTaken
├── LastAdministrator
├── LastHubAdministrator
├── AlreadyMember
├── EmailNotVerified
├── EmailIsPrimary
├── SshKeyTaken
├── WouldLockOut
├── GroupProvisioned
├── ResourceGroupNameTaken
└── ResourceGroupInUse
TooLarge  413
└── ImageTooLarge
"""

from hublet.core.errors import Conflict, InvalidRequest, NotAllowed, NotFound, TooLarge


class InvalidName(InvalidRequest):
    pass


class InvalidEmail(InvalidRequest):
    pass


class WeakPassword(InvalidRequest):
    pass


class InvalidSshKey(InvalidRequest):
    pass


class NameTaken(Conflict):
    def __init__(self, name: str) -> None:
        super().__init__(f"The name {name} is taken.")


class EmailTaken(Conflict):
    def __init__(self, address: str) -> None:
        super().__init__(f"The e-mail address {address} belongs to an account already.")


class UserNotFound(NotFound):
    def __init__(self, name: str) -> None:
        super().__init__(f"There is no user {name}.")


class OrganizationNotFound(NotFound):
    def __init__(self, name: str) -> None:
        super().__init__(f"There is no organization {name}.")


class NotAMember(NotFound):
    def __init__(self, user: str, organization: str) -> None:
        super().__init__(f"{user} is not a member of {organization}.")


class InvalidJoinRequest(InvalidRequest):
    pass


class InvalidNetworkSecurity(InvalidRequest):
    pass


class InvalidEmailDomain(InvalidRequest):
    pass


class InvalidSocialHandle(InvalidRequest):
    pass


class NoSuchRole(InvalidRequest):
    pass


class EmailDomainNotFound(NotFound):
    def __init__(self, domain: str, organization: str) -> None:
        super().__init__(f"{domain} is no e-mail domain of {organization}.")


class WouldLockOut(Conflict):
    def __init__(self, address: str) -> None:
        super().__init__(
            f"Your own address, {address}, is in none of the ipRanges: you would lock yourself out. "
            "Add it, or a network that it is in."
        )


class GroupProvisioned(Conflict):
    def __init__(self, group: str) -> None:
        super().__init__(
            f"The members of {group} come from an identity provider (SCIM): "
            "others cannot join it by themselves."
        )


class JoinRequestNotFound(NotFound):
    def __init__(self, user: str, organization: str) -> None:
        super().__init__(f"{user} does not ask to join {organization}.")


class RoleNeeded(NotAllowed):
    def __init__(self, role: str, organization: str) -> None:
        super().__init__(f"This needs the role {role} in the organization {organization}.")


class PlanNeeded(NotAllowed):
    def __init__(self, what: str, plan: str, organization: str) -> None:
        super().__init__(
            f"{what} need the plan {plan} or a larger one, which {organization} does not have."
        )


class NotForServiceAccounts(InvalidRequest):
    def __init__(self, account: str, rule: str) -> None:
        super().__init__(f"{account} is a service account: {rule}.")


class CannotFollowYourself(InvalidRequest):
    def __init__(self) -> None:
        super().__init__("You cannot follow yourself.")


class LastAdministrator(Conflict):
    def __init__(self, organization: str) -> None:
        super().__init__(
            f"{organization} would be left without an administrator: make somebody else one first."
        )


class LastHubAdministrator(Conflict):
    def __init__(self) -> None:
        super().__init__(
            "The hub would be left without an administrator: make somebody else one first."
        )


class AlreadyMember(Conflict):
    def __init__(self, user: str, organization: str) -> None:
        super().__init__(f"{user} is a member of {organization} already.")


class InvitationNotFound(NotFound):
    """The same for one that never was, was used or revoked, is too old, or has lost its creator."""

    def __init__(self) -> None:
        super().__init__("This invitation does not work any more. Ask for another one.")


class InvitationTooNarrow(NotAllowed):
    """Its creator may add people to an organization, but not to the hub."""

    def __init__(self) -> None:
        super().__init__(
            "This invitation is for people who have an account here. "
            "Only an administrator of this hub can invite others."
        )


class TooManyInvitations(InvalidRequest):
    def __init__(self, limit: int) -> None:
        super().__init__(f"At most {limit} invitations can be open at a time: revoke some first.")


class WrongPassword(NotAllowed):
    def __init__(self) -> None:
        super().__init__("currentPassword is not the password of this account.")


class NoPassword(NotAllowed):
    def __init__(self) -> None:
        super().__init__("This account has no password; only a hub administrator can set one.")


class EmailNotFound(NotFound):
    def __init__(self, email_id: str) -> None:
        super().__init__(f"There is no e-mail address {email_id} of yours.")


class EmailNotVerified(Conflict):
    def __init__(self, address: str) -> None:
        super().__init__(f"{address} is not verified; only a verified address can be primary.")


class EmailIsPrimary(Conflict):
    def __init__(self, address: str) -> None:
        super().__init__(
            f"{address} is the primary address; make another one primary before removing it."
        )


class TooManyEmails(InvalidRequest):
    def __init__(self, limit: int) -> None:
        super().__init__(f"An account has at most {limit} e-mail addresses.")


class SshKeyNotFound(NotFound):
    def __init__(self, key_id: str) -> None:
        super().__init__(f"There is no SSH key {key_id} of yours.")


class SshKeyTaken(Conflict):
    def __init__(self, fingerprint: str) -> None:
        super().__init__(f"The SSH key {fingerprint} belongs to an account already.")


class TooManySshKeys(InvalidRequest):
    def __init__(self, limit: int) -> None:
        super().__init__(f"An account has at most {limit} SSH keys.")


class AccountNotFound(NotFound):
    def __init__(self, account_id: str) -> None:
        super().__init__(f"There is no account {account_id}.")


class NotAnImage(InvalidRequest):
    def __init__(self) -> None:
        super().__init__("The body must be a PNG, JPEG, GIF or WebP image.")


class ImageTooLarge(TooLarge):
    def __init__(self, limit: int) -> None:
        super().__init__(f"A picture must have at most {limit} bytes.")


class ResourceGroupNotFound(NotFound):
    def __init__(self, group_id: str) -> None:
        super().__init__(f"There is no resource group {group_id}.")


class ResourceGroupNameTaken(Conflict):
    def __init__(self, name: str) -> None:
        super().__init__(f"The organization has a resource group {name} already.")


class ResourceGroupInUse(Conflict):
    """Deleting the group would open what is in it to the whole organization."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} still has repositories or collections: take them out or delete them first."
        )


class NotInResourceGroup(NotFound):
    def __init__(self, user: str, group: str) -> None:
        super().__init__(f"{user} is not a member of the resource group {group}.")


class ServiceAccountNotFound(NotFound):
    def __init__(self, account_id: str) -> None:
        super().__init__(f"There is no service account {account_id}.")
