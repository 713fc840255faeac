"""What can be wrong with an account as a caller describes it."""

from hublet.core.errors import Conflict, InvalidRequest, NotAllowed, NotFound


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
