"""Who a commit is by."""

from datetime import datetime

import pygit2

# A domain that cannot exist (RFC 2606), so that no mail ever leaves by mistake.
_DOMAIN = "users.noreply.invalid"


def email_of(user_name: str) -> str:
    return f"{user_name}@{_DOMAIN}"


def signature(user_name: str, *, at: datetime) -> pygit2.Signature:
    return pygit2.Signature(user_name, email_of(user_name), int(at.timestamp()), 0)


def user_of(email: str) -> str | None:
    """Return the user whom a commit made here is by; None for what came by git push."""
    name, _, domain = email.partition("@")
    return name if domain == _DOMAIN else None
