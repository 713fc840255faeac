"""Whoever set something up, as the caller of what the hub does in their name."""

from hublet.accounts import service as accounts
from hublet.accounts.errors import UserNotFound
from hublet.accounts.records import User
from hublet.core.clock import now
from hublet.core.database import Reader
from hublet.jobs.errors import CreatorGone
from hublet.tokens.format import Kind
from hublet.tokens.records import ALL_SCOPES, Caller, Token, TokenRole


async def get_creator(conn: Reader, user_id: str) -> Caller:
    """Return a user as a caller with all their rights; nobody whose account is off has any."""
    try:
        user = await accounts.get_user_by_id(conn, user_id)
    except UserNotFound:
        raise CreatorGone from None
    if user.disabled_at is not None:
        raise CreatorGone
    return _caller(user)


def _caller(user: User) -> Caller:
    # No token was shown: this one is nowhere stored, and its origin created nothing.
    token = Token(
        id="",
        kind=Kind.access,
        user_id=user.id,
        name="",
        role=TokenRole.write,
        hint="",
        created_at=now(),
    )
    return Caller(
        user_id=user.id, user_name=user.name, is_admin=False, token=token, scopes=ALL_SCOPES
    )
