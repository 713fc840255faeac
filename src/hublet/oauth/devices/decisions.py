"""Decisions about device logins: a person enters a user code, with limited guesses, and allows or
denies.

There are 20^8 codes, and a few of them are pending at a time (RFC 8628, 5.1). A wrong code names no
app, so guesses are limited by user and by address only.
"""

from hublet.core.database import Connection, Reader
from hublet.core.dataclasses import dataclass
from hublet.core.limits import Limiter, RateLimit
from hublet.login.records import Session
from hublet.oauth.apps import store as apps
from hublet.oauth.authorize import consents
from hublet.oauth.authorize.consent_form import ConsentDecision
from hublet.oauth.authorize.records import ConsentQuestion
from hublet.oauth.devices import service as devices
from hublet.oauth.devices import store
from hublet.oauth.devices.records import Device
from hublet.oauth.errors import DeviceAlreadyDecided, TooManyGuesses
from hublet.oauth.records import OAuthApp

GUESSES_OF_USER = RateLimit(name="device-user", quota=5, window_seconds=900)
GUESSES_OF_ADDRESS = RateLimit(name="device-address", quota=20, window_seconds=3600)


def count_guess(limiter: Limiter, *, user_id: str, address: str) -> None:
    """Count a guess before it is checked: beyond the limit even a right one is refused."""
    verdicts = (limiter.count(GUESSES_OF_USER, user_id), limiter.count(GUESSES_OF_ADDRESS, address))
    spent = [verdict.reset_seconds for verdict in verdicts if not verdict.allowed]
    if spent:
        raise TooManyGuesses(max(spent))


def refund_guess(limiter: Limiter, *, user_id: str, address: str) -> None:
    """Give back a guess that was right."""
    limiter.refund(GUESSES_OF_USER, user_id)
    limiter.refund(GUESSES_OF_ADDRESS, address)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceQuestion:
    device: Device
    question: ConsentQuestion


async def find_question(conn: Reader, typed: str, *, user_id: str) -> DeviceQuestion | None:
    """Return the question about a code; it is asked even if the person agreed to the app before."""
    device = await devices.find_by_user_code(conn, typed)
    app = None if device is None else await apps.find_by_id(conn, device.app_id)
    if device is None or app is None:
        return None
    question = await consents.build_question(conn, app, user_id=user_id, scopes=device.scopes)
    return DeviceQuestion(device=device, question=question)


async def decide(conn: Connection, decision: ConsentDecision, *, session: Session) -> OAuthApp:
    """Store the decision about a device; the first one counts."""
    ticket = decision.ticket
    device = await store.find(conn, [ticket.subject])
    app = None if device is None else await apps.find_by_id(conn, device.app_id)
    if device is None or app is None or app.revision != ticket.revision:
        raise DeviceAlreadyDecided
    organization_ids = await consents.own_organizations(
        conn, decision.organization_ids or frozenset(), user_id=session.user_id
    )
    is_first = await devices.decide(
        conn,
        device,
        approved=decision.organization_ids is not None,
        user_id=session.user_id,
        organization_ids=organization_ids,
        authenticated_at=session.authenticated_at,
    )
    if not is_first:
        raise DeviceAlreadyDecided
    return app
