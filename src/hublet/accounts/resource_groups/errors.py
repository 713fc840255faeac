"""What can be wrong with a resource group as a caller describes it."""

from hublet.core.errors import Conflict, NotFound


class ResourceGroupNotFound(NotFound):
    def __init__(self, group_id: str) -> None:
        super().__init__(f"There is no resource group {group_id}.")


class ResourceGroupNameTaken(Conflict):
    def __init__(self, name: str) -> None:
        super().__init__(f"The organization has a resource group {name} already.")


class ResourceGroupInUse(Conflict):
    """Without its group, what lies in it would be open to the whole organization."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} still has repositories: take them out or delete them first.")


class NotInResourceGroup(NotFound):
    def __init__(self, user: str, group: str) -> None:
        super().__init__(f"{user} is not a member of the resource group {group}.")
