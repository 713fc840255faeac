"""Rules of passkeys: registered by a signed-in person, and used to sign in without a password."""

import asyncio

from hublet.accounts.users import service as accounts
from hublet.core.clock import now
from hublet.core.database import Connection, Database, Reader
from hublet.core.hub import Hub
from hublet.core.ids import new_object_id
from hublet.login import service as login
from hublet.login import store, webauthn
from hublet.login.errors import (
    InvalidCredential,
    PasskeyNameInvalid,
    PasskeyNotAdded,
    PasskeyNotFound,
    PasskeyRefused,
    PasskeysUnavailable,
)
from hublet.login.records import Passkey, Session, Visitor
from hublet.login.service import LoginAttempts
from hublet.login.webauthn import Challenge

MAX_PASSKEYS = 20
MAX_NAME_LENGTH = 100


async def begin_registration(database: Database, session: Session) -> tuple[str, str]:
    """Return the options for the browser, and the sealed challenge for its cookie."""
    hub = database.hub
    _check_possible(hub)
    async with database.read() as conn:
        user = await accounts.get_user_by_id(conn, session.user_id)
        known = await list_of(conn, session)
    challenge = webauthn.new_challenge()
    options = await asyncio.to_thread(
        webauthn.registration_options, hub.settings, user, known=known, challenge=challenge.value
    )
    return options, webauthn.seal_challenge(hub, challenge, webauthn.registration_purpose(session))


async def add(
    database: Database, session: Session, *, name: str, response: str, sealed: str | None
) -> Passkey:
    """Verify and store the passkey that the browser has created."""
    hub = database.hub
    name = _validate_name(name)
    challenge = webauthn.unseal_challenge(hub, sealed, webauthn.registration_purpose(session))
    if challenge is None:
        raise PasskeyNotAdded("it took too long, so begin again")
    try:
        credential = await asyncio.to_thread(
            webauthn.verify_registration, hub.settings, response, challenge=challenge.value
        )
    except InvalidCredential:
        raise PasskeyNotAdded("the browser's answer does not hold") from None
    passkey = Passkey(
        id=new_object_id(),
        credential_id=credential.credential_id,
        user_id=session.user_id,
        name=name,
        public_key=credential.public_key,
        sign_count=credential.sign_count,
        created_at=now(),
    )
    async with database.transaction() as conn:
        await _save(conn, passkey, challenge)
    return passkey


async def _save(conn: Connection, passkey: Passkey, challenge: Challenge) -> None:
    if not await _use_challenge(conn, challenge):
        raise PasskeyNotAdded("its challenge was used before, so begin again")
    if len(await store.list_passkeys(conn, user_id=passkey.user_id)) >= MAX_PASSKEYS:
        raise PasskeyNotAdded(f"an account has at most {MAX_PASSKEYS}")
    if not await store.add_passkey(conn, passkey):
        raise PasskeyNotAdded("an account has it already")


async def begin_sign_in(hub: Hub) -> tuple[str, str]:
    """Return the options for the browser, and the sealed challenge for its cookie."""
    _check_possible(hub)
    challenge = webauthn.new_challenge()
    options = await asyncio.to_thread(
        webauthn.authentication_options, hub.settings, challenge=challenge.value
    )
    return options, webauthn.seal_challenge(hub, challenge, webauthn.SIGN_IN_PURPOSE)


async def sign_in(
    database: Database,
    visitor: Visitor,
    current: Session | None,
    attempts: LoginAttempts,
    *,
    response: str,
    sealed: str | None,
) -> str:
    """Sign in the owner of the passkey; return the value of the session's cookie."""
    attempts.count()
    hub = database.hub
    challenge = webauthn.unseal_challenge(hub, sealed, webauthn.SIGN_IN_PURPOSE)
    async with database.read() as reading:
        passkey = await _find_claimed(reading, response)
    if challenge is None or passkey is None:
        raise PasskeyRefused
    try:
        sign_count = await asyncio.to_thread(
            webauthn.verify_authentication,
            hub.settings,
            passkey,
            response,
            challenge=challenge.value,
        )
    except InvalidCredential:
        raise PasskeyRefused from None
    async with database.transaction() as conn:
        used = await _use_challenge(conn, challenge)
        if not used or not await store.set_passkey_used(conn, passkey, sign_count=sign_count):
            raise PasskeyRefused
        user = await accounts.get_user_by_id(conn, passkey.user_id)
        if user.disabled_at is not None:
            raise PasskeyRefused
        value = await login.enter_session(conn, user, visitor, current)
    attempts.refund()
    return value


async def list_of(conn: Reader, session: Session) -> list[Passkey]:
    """List the passkeys of the person, oldest first."""
    return await store.list_passkeys(conn, user_id=session.user_id)


async def rename(conn: Connection, session: Session, passkey_id: str, name: str) -> None:
    if not await store.set_passkey_name(
        conn, passkey_id, _validate_name(name), user_id=session.user_id
    ):
        raise PasskeyNotFound(passkey_id)


async def remove(conn: Connection, session: Session, passkey_id: str) -> None:
    if not await store.remove_passkey(conn, passkey_id, user_id=session.user_id):
        raise PasskeyNotFound(passkey_id)


async def remove_all(conn: Connection, *, user_id: str) -> None:
    """Remove all passkeys of a user, who then cannot sign in with them any more."""
    for passkey in await store.list_passkeys(conn, user_id=user_id):
        await store.remove_passkey(conn, passkey.id, user_id=user_id)


async def _find_claimed(conn: Reader, response: str) -> Passkey | None:
    credential_id = webauthn.credential_id_of(response)
    if credential_id is None:
        return None
    return await store.find_passkey(conn, credential_id)


async def _use_challenge(conn: Connection, challenge: Challenge) -> bool:
    digest = conn.hub.keys.digest("passkey-challenge", challenge.value.hex()).hex()
    return await store.use_challenge(conn, digest, expires_at=challenge.expires_at)


def _check_possible(hub: Hub) -> None:
    if not webauthn.is_available(hub.settings):
        raise PasskeysUnavailable


def _validate_name(name: str) -> str:
    name = name.strip()
    if not 1 <= len(name) <= MAX_NAME_LENGTH or not name.isprintable():
        raise PasskeyNameInvalid(MAX_NAME_LENGTH)
    return name
