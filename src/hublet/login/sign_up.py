"""Sign-up: who may create an account, with which limits, and the session that follows."""

import msgspec

from hublet.accounts import invitations
from hublet.accounts.errors import EmailTaken
from hublet.accounts.names import check_email, check_name
from hublet.accounts.passwords import check_strength, hash_password
from hublet.accounts.records import Actor, Invitation
from hublet.accounts.settings import emails
from hublet.accounts.users import service as accounts
from hublet.core import queue
from hublet.core.config import Settings
from hublet.core.database import Connection, Database, Reader
from hublet.core.dataclasses import dataclass
from hublet.core.limits import Limiter, RateLimit, raise_when_exceeded
from hublet.login import sessions
from hublet.login.errors import SignUpClosed
from hublet.login.records import Visitor

SEND_ADDRESS_TAKEN = "login.send-address-taken"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAccount:
    """What somebody typed to sign up."""

    name: str
    fullname: str
    email: str
    password: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedAddress:
    """What waits in the queue: the owner of an address hears who else named it."""

    email: str
    new_user: str


class SignUpLimit:
    """Limit on the accounts that are created from one address."""

    def __init__(self, limiter: Limiter, settings: Settings, *, address: str) -> None:
        self._limiter = limiter
        self._address = address
        quota = settings.login.sign_ups_per_hour
        self._policy = RateLimit(name="sign-up", quota=quota, window_seconds=3600)

    def count(self) -> None:
        raise_when_exceeded(self._limiter.count(self._policy, self._address))

    def refund(self) -> None:
        """Take back an attempt that created nothing."""
        self._limiter.refund(self._policy, self._address)


def is_open(settings: Settings) -> bool:
    """Tell whether people sign up without an invitation."""
    return settings.login.sign_up == "open"


async def get_invitation(conn: Reader, token: str | None) -> Invitation | None:
    """Return the invitation to sign up with; None where none is needed, an error without one."""
    if token is None:
        if not is_open(conn.hub.settings):
            raise SignUpClosed
        return None
    invitation = await invitations.get_by_link(conn, token)
    await invitations.check_newcomer(conn, invitation)
    return invitation


async def sign_up(
    database: Database, visitor: Visitor, limit: SignUpLimit, new: NewAccount, *, token: str | None
) -> str:
    """Create an account, and its first session; return the value of the session's cookie.

    With the token of an invitation that is used up, and its organization joined.
    """
    async with database.read() as reading:
        await get_invitation(reading, token)
    check_name(new.name)
    check_email(new.email)
    check_strength(new.password, name=new.name)
    limit.count()
    # Before the transaction: a hash takes as long as many of them.
    password_hash = await hash_password(new.password)
    try:
        async with database.transaction() as conn:
            return await _create(conn, visitor, new, token, password_hash)
    except Exception:
        limit.refund()
        raise


async def _create(
    conn: Connection, visitor: Visitor, new: NewAccount, token: str | None, password_hash: str
) -> str:
    user = await accounts.create_user(
        conn, new.name, fullname=new.fullname or None, password_hash=password_hash
    )
    try:
        await emails.add(conn, user, new.email)
    except EmailTaken:
        # Nobody learns here who has an account: its owner is told, and this one begins without.
        body = msgspec.json.encode(ClaimedAddress(email=new.email, new_user=user.name)).decode()
        await queue.add(conn, queue.NewTask(kind=SEND_ADDRESS_TAKEN, body=body))
    if token is not None:
        await get_invitation(conn, token)
        actor = Actor(id=user.id, name=user.name, address=visitor.address)
        await invitations.accept(conn, actor, token, user)
    _, value = await sessions.begin(conn, user, visitor)
    return value
