"""Rules of passkeys."""

import asyncio

from hublet.accounts import service as accounts
from hublet.core.clock import now
from hublet.core.database import Connection, Database, Reader
from hublet.core.hub import Hub
from hublet.core.ids import new_object_id
from hublet.login import service as login
from hublet.login.attempts import Attempts
from hublet.login.errors import (
    PasskeyNameInvalid,
    PasskeyNotAdded,
    PasskeyNotFound,
    PasskeyRefused,
    PasskeysUnavailable,
)
from hublet.login.passkeys import ceremony, challenges, store
from hublet.login.passkeys.ceremony import AnswerInvalid
from hublet.login.passkeys.challenges import Challenge
from hublet.login.records import Passkey, Session, Visitor

MOST_PASSKEYS = 20
LONGEST_NAME = 100


async def begin_adding(database: Database, session: Session) -> tuple[str, str]:
    """Return what the browser is asked for, and the sealed challenge that it keeps."""
    hub = database.hub
    _check_possible(hub)
    async with database.read() as conn:
        user = await accounts.get_user_by_id(conn, session.user_id)
        known = await list_of(conn, session)
    challenge = challenges.new_challenge()
    options = await asyncio.to_thread(
        ceremony.adding_options, hub.settings, user, known=known, challenge=challenge.value
    )
    return options, challenges.seal(hub, challenge, challenges.adding_to(session))


async def add(
    database: Database, session: Session, *, name: str, answer: str, sealed: str | None
) -> Passkey:
    """Keep the passkey that the browser has made."""
    hub = database.hub
    name = _checked_name(name)
    challenge = challenges.unseal(hub, sealed, challenges.adding_to(session))
    if challenge is None:
        raise PasskeyNotAdded("it took too long, so begin again")
    try:
        key = await asyncio.to_thread(
            ceremony.check_added, hub.settings, answer, challenge=challenge.value
        )
    except AnswerInvalid:
        raise PasskeyNotAdded("the browser's answer does not hold") from None
    passkey = Passkey(
        id=new_object_id(),
        credential_id=key.credential_id,
        user_id=session.user_id,
        name=name,
        public_key=key.public_key,
        sign_count=key.sign_count,
        created_at=now(),
    )
    async with database.transaction() as conn:
        await _keep(conn, passkey, challenge)
    return passkey


async def _keep(conn: Connection, passkey: Passkey, challenge: Challenge) -> None:
    if not await _use(conn, challenge):
        raise PasskeyNotAdded("its challenge was used before, so begin again")
    if len(await store.list_of(conn, user_id=passkey.user_id)) >= MOST_PASSKEYS:
        raise PasskeyNotAdded(f"an account has at most {MOST_PASSKEYS}")
    if not await store.add(conn, passkey):
        raise PasskeyNotAdded("an account has it already")


async def begin_sign_in(hub: Hub) -> tuple[str, str]:
    """Return what the browser is asked for, and the sealed challenge that it keeps."""
    _check_possible(hub)
    challenge = challenges.new_challenge()
    options = await asyncio.to_thread(
        ceremony.sign_in_options, hub.settings, challenge=challenge.value
    )
    return options, challenges.seal(hub, challenge, challenges.SIGN_IN)


async def sign_in(
    database: Database,
    visitor: Visitor,
    current: Session | None,
    attempts: Attempts,
    *,
    answer: str,
    sealed: str | None,
) -> str:
    """Sign in whoever's passkey answered; return the value of the session's cookie."""
    attempts.count()
    hub = database.hub
    challenge = challenges.unseal(hub, sealed, challenges.SIGN_IN)
    async with database.read() as reading:
        passkey = await _claimed(reading, answer)
    if challenge is None or passkey is None:
        raise PasskeyRefused
    try:
        sign_count = await asyncio.to_thread(
            ceremony.check_sign_in, hub.settings, passkey, answer, challenge=challenge.value
        )
    except AnswerInvalid:
        raise PasskeyRefused from None
    async with database.transaction() as conn:
        used = await _use(conn, challenge)
        if not used or not await store.set_used(conn, passkey, sign_count=sign_count):
            raise PasskeyRefused
        user = await accounts.get_user_by_id(conn, passkey.user_id)
        if user.disabled_at is not None:
            raise PasskeyRefused
        value = await login.enter(conn, user, visitor, current)
    attempts.forgive()
    return value


async def list_of(conn: Reader, session: Session) -> list[Passkey]:
    """List the passkeys of the person, oldest first."""
    return await store.list_of(conn, user_id=session.user_id)


async def rename(conn: Connection, session: Session, passkey_id: str, name: str) -> None:
    if not await store.set_name(conn, passkey_id, _checked_name(name), user_id=session.user_id):
        raise PasskeyNotFound(passkey_id)


async def remove(conn: Connection, session: Session, passkey_id: str) -> None:
    if not await store.remove(conn, passkey_id, user_id=session.user_id):
        raise PasskeyNotFound(passkey_id)


async def remove_all(conn: Connection, *, user_id: str) -> None:
    """Remove the passkeys of somebody who is not to sign in by them any more."""
    for passkey in await store.list_of(conn, user_id=user_id):
        await store.remove(conn, passkey.id, user_id=user_id)


async def _claimed(conn: Reader, answer: str) -> Passkey | None:
    credential_id = ceremony.credential_id_of(answer)
    if credential_id is None:
        return None
    return await store.find_by_credential_id(conn, credential_id)


async def _use(conn: Connection, challenge: Challenge) -> bool:
    digest = conn.hub.keys.digest("passkey-challenge", challenge.value.hex()).hex()
    return await store.use_challenge(conn, digest, expires_at=challenge.expires_at)


def _check_possible(hub: Hub) -> None:
    if not ceremony.is_possible(hub.settings):
        raise PasskeysUnavailable


def _checked_name(name: str) -> str:
    name = name.strip()
    if not 1 <= len(name) <= LONGEST_NAME or not name.isprintable():
        raise PasskeyNameInvalid(LONGEST_NAME)
    return name
