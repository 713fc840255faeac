"""What a person sees of a device that waits, and what becomes of their decision."""

from hublet.core.database import Connection, Reader
from hublet.core.light_dataclasses import dataclass
from hublet.login.records import Session
from hublet.oauth.apps import store as apps
from hublet.oauth.consents import service as consents
from hublet.oauth.consents.answers import Answer
from hublet.oauth.consents.records import Question
from hublet.oauth.device_page.errors import DecidedAlready
from hublet.oauth.devices import service as devices
from hublet.oauth.devices import store as waiting
from hublet.oauth.devices.records import Device
from hublet.oauth.records import App


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    device: Device
    question: Question


async def find(conn: Reader, typed: str, *, user_id: str) -> Asked | None:
    """Return what waits under a code. It is always asked about, whatever was agreed to before."""
    device = await devices.find_by_user_code(conn, typed)
    app = None if device is None else await apps.find_by_id(conn, device.app_id)
    if device is None or app is None:
        return None
    question = await consents.question(conn, app, user_id=user_id, scopes=device.scopes)
    return Asked(device=device, question=question)


async def decide(conn: Connection, answer: Answer, *, session: Session) -> App:
    """Keep the decision about a device; the first one counts."""
    ticket = answer.ticket
    device = await waiting.find(conn, [ticket.subject])
    app = None if device is None else await apps.find_by_id(conn, device.app_id)
    if device is None or app is None or app.revision != ticket.revision:
        raise DecidedAlready
    chosen = await consents.of_own(
        conn, answer.organization_ids or frozenset(), user_id=session.user_id
    )
    decided = await devices.decide(
        conn,
        device,
        approved=answer.organization_ids is not None,
        user_id=session.user_id,
        organization_ids=chosen,
        authenticated_at=session.authenticated_at,
    )
    if not decided:
        raise DecidedAlready
    return app
