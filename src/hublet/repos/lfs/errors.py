"""What goes wrong with large files."""

from hublet.core.errors import InvalidRequest, NotAllowed, NotFound


class LinkNotValid(NotAllowed):
    """An address that authorises by itself was changed, or is too old."""

    def __init__(self) -> None:
        super().__init__("This link is not valid any more; ask the batch endpoint for a new one.")


class UploadNotWhole(InvalidRequest):
    def __init__(self, *, size: int, received: int) -> None:
        super().__init__(
            f"The upload must have {size} bytes as announced; it has "
            f"{f'{received}' if received < size else 'more'}."
        )


class OtherContent(InvalidRequest):
    def __init__(self, oid: str, *, found: str) -> None:
        super().__init__(f"The bytes must have the SHA-256 {oid}; they have {found}.")


class PartMissing(InvalidRequest):
    def __init__(self, number: int) -> None:
        super().__init__(f"parts: part {number} with this etag was not uploaded.")


class PartsWrong(InvalidRequest):
    def __init__(self, count: int) -> None:
        super().__init__(f"parts must name each of the {count} parts once, in their order.")


class OidWrong(InvalidRequest):
    def __init__(self) -> None:
        super().__init__("oid must be the object that this link is for.")


class ObjectNotFound(NotFound):
    def __init__(self, oid: str) -> None:
        super().__init__(f"There is no object {oid} in this repository.")


class SizeWrong(InvalidRequest):
    def __init__(self, oid: str) -> None:
        super().__init__(f"size must be that of the object {oid}.")
