"""What can be wrong with a link from a mail."""

from hublet.core.errors import NotFound


class LinkBroken(NotFound):
    def __init__(self) -> None:
        super().__init__("This link is not complete: please copy all of it from the mail.")


class LinkExpired(NotFound):
    def __init__(self) -> None:
        super().__init__(
            "This link is older than 7 days: please remove the address in your settings and add "
            "it again."
        )


class AddressGone(NotFound):
    def __init__(self) -> None:
        super().__init__("This address does not belong to the account any more.")
