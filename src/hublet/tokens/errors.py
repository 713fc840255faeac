"""Errors of credentials and of their use.

AuthenticationNeeded       401
├── TokenNeeded
├── InvalidToken
├── GitTokenNeeded         challenges for a password, as git needs it
└── InvalidGitToken
NotAllowed                 403
├── ScopeNeeded
├── WriteTokenNeeded
├── FullTokenNeeded
├── TokenOfItsOwnNeeded
├── AdministratorNeeded
├── OrganizationRefused    the token does not reach this organization, or not from here
└── OwnTokenNeedsOwner
NotFound                   404
├── TokenNotFound
└── UnknownValue
Conflict                   409
└── TokenExists
InvalidRequest             400
└── InvalidTokenRequest
"""

from collections.abc import Iterable

from hublet.core.errors import (
    AuthenticationNeeded,
    Conflict,
    InvalidRequest,
    NotAllowed,
    NotFound,
)


class TokenNeeded(AuthenticationNeeded):
    def __init__(self) -> None:
        super().__init__("A token is needed: send it as `Authorization: Bearer <token>`.")


class InvalidToken(AuthenticationNeeded):
    def __init__(self) -> None:
        # The public client knows this sentence; see client contract 0.4.
        super().__init__("Invalid credentials in Authorization header")
        self.headers["WWW-Authenticate"] = 'Bearer error="invalid_token"'


# Git asks for a password, and repeats the request with it, only when it is challenged for one.
_BASIC = 'Basic realm="hublet"'


class GitTokenNeeded(AuthenticationNeeded):
    def __init__(self) -> None:
        super().__init__(
            "There is no such repository, or it needs a token: "
            "give the token as the password, with any user name."
        )
        self.headers["WWW-Authenticate"] = _BASIC


class InvalidGitToken(AuthenticationNeeded):
    def __init__(self) -> None:
        super().__init__("Invalid credentials in Authorization header")
        self.headers["WWW-Authenticate"] = _BASIC


class ScopeNeeded(NotAllowed):
    def __init__(self, scopes: Iterable[str]) -> None:
        missing = " ".join(sorted(scopes))
        super().__init__(
            f"The token lacks the scope {missing}.",
            headers={"WWW-Authenticate": f'Bearer error="insufficient_scope", scope="{missing}"'},
        )


class WriteTokenNeeded(NotAllowed):
    def __init__(self) -> None:
        super().__init__("This needs a token with the role write.")


class FullTokenNeeded(NotAllowed):
    def __init__(self) -> None:
        super().__init__("This needs a token with the role read or write; scopes do not reach it.")


class AdministratorNeeded(NotAllowed):
    def __init__(self) -> None:
        super().__init__("This needs a hub administrator's token with the role write.")


class OrganizationRefused(NotAllowed):
    pass


class OwnTokenNeedsOwner(NotAllowed):
    """An administrator who locked out their own token could not undo it."""

    def __init__(self) -> None:
        super().__init__(
            "This is a token of your own: delete it in your settings instead, "
            "or let another administrator revoke it."
        )


class TokenNotFound(NotFound):
    def __init__(self, token_id: str) -> None:
        super().__init__(f"There is no token {token_id}.")


class UnknownValue(NotFound):
    def __init__(self) -> None:
        super().__init__("No token has this value: it is unknown, or revoked already.")


class TokenExists(Conflict):
    def __init__(self) -> None:
        super().__init__("This value was issued or imported before; choose another one.")


class InvalidTokenRequest(InvalidRequest):
    pass


class TokenOfItsOwnNeeded(NotAllowed):
    """The token was itself made for one repository."""

    def __init__(self) -> None:
        super().__init__("A token for one repository gives no others: use a token of your own.")
