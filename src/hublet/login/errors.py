"""Errors of the login.

LoginNeeded                303, to the login page
NotAllowed                 403
├── ForeignForm
├── StaleForm
├── LoginRefused
├── SignUpClosed
├── PasswordRefused
└── PasskeyRefused
InvalidRequest             400
├── UnreadableForm
├── PasswordsDiffer
├── PasskeyNameInvalid
├── PasskeyNotAdded
└── PasskeysUnavailable
NotFound                   404
├── SessionNotFound
├── ResetLinkBroken
└── PasskeyNotFound
TooManyRequests            429
└── TooManyAttempts

InvalidCredential          control flow: the response of an authenticator is not valid
"""

from urllib.parse import quote

from hublet.core.errors import HubError, InvalidRequest, NotAllowed, NotFound, TooManyRequests


class LoginNeeded(HubError):
    """Not a failure: the browser is sent to the login page and comes back."""

    status = 303

    def __init__(self, next_path: str, *, again: bool = False) -> None:
        address = f"/login?next={quote(next_path, safe='/')}" + ("&again=1" if again else "")
        super().__init__("Sign in first.", headers={"Location": address})


class ForeignForm(NotAllowed):
    def __init__(self) -> None:
        super().__init__("The form was sent from another site. Open the page here and try again.")


class StaleForm(NotAllowed):
    def __init__(self) -> None:
        super().__init__(
            "The form does not belong to this session any more. Open the page again and repeat it."
        )


class UnreadableForm(InvalidRequest):
    def __init__(self) -> None:
        super().__init__(
            "The body must be a form of at most 100 fields, without files and NUL characters."
        )


class LoginRefused(NotAllowed):
    """The same for every reason, so that it does not reveal which accounts exist."""

    def __init__(self) -> None:
        super().__init__(
            "The name or the password is wrong. After too many wrong ones, the right one is refused "
            "for a while, too."
        )


class SignUpClosed(NotAllowed):
    def __init__(self) -> None:
        super().__init__(
            "Accounts of this hub are for people who were invited. "
            "Ask an administrator for an invitation."
        )


class ResetLinkBroken(NotFound):
    """The same for a link that never was, was used or replaced, or is too old."""

    def __init__(self) -> None:
        super().__init__("This link does not work any more. Ask for another one.")


class PasswordRefused(NotAllowed):
    def __init__(self) -> None:
        super().__init__("The present password is wrong.")


class PasswordsDiffer(InvalidRequest):
    def __init__(self) -> None:
        super().__init__("The new password and its repetition differ.")


class TooManyAttempts(TooManyRequests):
    def __init__(self, seconds: int) -> None:
        super().__init__(
            f"Too many attempts to sign in. Try again in {seconds} seconds.",
            headers={"Retry-After": str(seconds)},
        )


class SessionNotFound(NotFound):
    def __init__(self, session_id: str) -> None:
        super().__init__(f"There is no session {session_id}.")


class PasskeyNotFound(NotFound):
    def __init__(self, passkey_id: str) -> None:
        super().__init__(f"There is no passkey {passkey_id}.")


class PasskeyNameInvalid(InvalidRequest):
    def __init__(self, longest: int) -> None:
        super().__init__(f"The name of a passkey has 1 to {longest} characters on one line.")


class PasskeyRefused(NotAllowed):
    """The same for every reason: on the login page a passkey fits or it does not."""

    def __init__(self) -> None:
        super().__init__("The passkey was not accepted. Try again, or use your password.")


class PasskeyNotAdded(InvalidRequest):
    def __init__(self, reason: str) -> None:
        super().__init__(f"The passkey was not added: {reason}.")


class InvalidCredential(Exception):
    """The response of an authenticator is not valid."""


class PasskeysUnavailable(InvalidRequest):
    def __init__(self) -> None:
        super().__init__(
            "Passkeys need an address that begins with https and a host name, or localhost."
        )
