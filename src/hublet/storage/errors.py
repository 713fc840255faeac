"""Errors of the storage.

InvalidRequest
├── InvalidHash    400
├── InvalidXorb    400
└── InvalidShard   400
RangeNotSatisfiable  416
TooLarge
└── FileTooLarge   413
"""

from hublet.core.errors import HubError, InvalidRequest, TooLarge


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
