"""What can be wrong with a change of one's own account."""

from hublet.core.errors import NotAllowed


class WrongPassword(NotAllowed):
    def __init__(self) -> None:
        super().__init__("currentPassword is not the password of this account.")


class NoPassword(NotAllowed):
    def __init__(self) -> None:
        super().__init__("This account has no password; only a hub administrator can set one.")
