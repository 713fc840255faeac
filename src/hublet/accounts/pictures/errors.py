"""What can be wrong with a picture."""

from hublet.core.errors import InvalidRequest, NotFound, TooLarge


class AccountNotFound(NotFound):
    def __init__(self, account_id: str) -> None:
        super().__init__(f"There is no account {account_id}.")


class NotAPicture(InvalidRequest):
    def __init__(self) -> None:
        super().__init__("The body must be a PNG, JPEG, GIF or WebP image.")


class PictureTooLarge(TooLarge):
    def __init__(self, limit: int) -> None:
        super().__init__(f"A picture must have at most {limit} bytes.")
