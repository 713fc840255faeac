"""Errors of notifications.

InvalidRequest (400)
    PrepaidAmountNeeded, TooManyToMute
NotFound (404)
    MessageNotFound, WatchTargetNotFound, WatchNameNotFound
    ChangeGone: of what is to be undone
    LinkBroken, LinkExpired, AddressGone: of a link in a mail
Conflict (409)
    WatchListTooLong
TooManyRequests (429)
    TooManyStreams
"""

from hublet.core.errors import Conflict, InvalidRequest, NotFound, TooManyRequests


class TooManyStreams(TooManyRequests):
    def __init__(self, most: int) -> None:
        super().__init__(
            f"You have {most} notification streams open, which is the most there may be: "
            "close one first.",
            headers={"Retry-After": "5"},
        )


class MessageNotFound(NotFound):
    def __init__(self, message_id: str) -> None:
        super().__init__(f"There is no message {message_id} for you.")


class PrepaidAmountNeeded(InvalidRequest):
    def __init__(self) -> None:
        super().__init__(
            "prepaidAmount is required in the request that switches launch_prepaid_credits on."
        )


class TooManyToMute(InvalidRequest):
    def __init__(self, most: int) -> None:
        super().__init__(f"At most {most:,} threads can be muted at once: choose fewer.")


class ChangeGone(NotFound):
    def __init__(self) -> None:
        super().__init__("It was undone already, or it is too long ago to be undone.")


class WatchNameNotFound(NotFound):
    def __init__(self, name: str) -> None:
        super().__init__(
            f"name: there is no person, organization or repository {name}, or you cannot see it."
        )


class WatchTargetNotFound(NotFound):
    """It does not exist, is of another type, or the caller may not see it."""

    def __init__(self, place: int, type: str, target_id: str) -> None:  # noqa: A002 - the interface's word
        super().__init__(
            f"add[{place}]: there is no {type} with the id {target_id}, or you cannot see it."
        )


class WatchListTooLong(Conflict):
    def __init__(self, verb: str, limit: int) -> None:
        super().__init__(f"add: nobody can {verb} more than {limit}; delete some first.")


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
