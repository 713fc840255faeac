"""Errors of the storage.

InvalidRequest
├── InvalidHash    400
├── InvalidXorb    400
└── InvalidShard   400
NotAllowed
└── StorageFull    403
RangeNotSatisfiable  416
TooLarge
└── FileTooLarge   413
Unavailable
├── StoreUnavailable  503
├── ObjectLeaving     503
└── UploadBeingChecked  503
"""

from hublet.core.errors import HubError, InvalidRequest, NotAllowed, TooLarge, Unavailable


class InvalidHash(InvalidRequest):
    def __init__(self, text: str) -> None:
        super().__init__(f"{text[:80]!r} is not a hash: it must be 64 hexadecimal digits.")


class InvalidXorb(InvalidRequest):
    pass


class InvalidShard(InvalidRequest):
    pass


class RangeNotSatisfiable(HubError):
    status = 416

    def __init__(self, size: int) -> None:
        super().__init__(
            f"The range begins after the end of the file, which has {size} bytes.",
            headers={"Content-Range": f"bytes */{size}"},
        )


class FileTooLarge(TooLarge):
    def __init__(self, limit: int) -> None:
        super().__init__(f"A file must have at most {limit} bytes.")


class StorageFull(NotAllowed):
    """The owner's repositories hold as much as the hub allows."""

    def __init__(self, owner: str, *, used: int, more: int, limit: int, what: str) -> None:
        wanted = f", and {what} has {more} more" if more else ""
        super().__init__(
            f"The repositories of {owner} hold {used} bytes{wanted}; the limit is {limit}. Delete "
            "files or repositories, or ask the hub's operator for a higher limits.owner_bytes."
        )


class StoreUnavailable(Unavailable):
    """The object storage cannot be reached, or refuses what the hub asks."""

    def __init__(self) -> None:
        super().__init__("The object storage does not answer; try again in a moment.")


class ObjectLeaving(Unavailable):
    """Nothing used a content for days; it is removed just as it arrives again."""

    def __init__(self) -> None:
        super().__init__(
            "The same content is being removed, because nothing used it; send it again in a moment."
        )


class UploadBeingChecked(Unavailable):
    """What a client sent to the object storage itself takes long to read."""

    def __init__(self) -> None:
        super().__init__(
            "The upload arrived and is being checked; try again in a moment.",
            retry_after_seconds=10,
        )
