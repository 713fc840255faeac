"""What can be wrong with a change of one's own e-mail addresses."""

from hublet.core.errors import Conflict, InvalidRequest, NotFound


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
