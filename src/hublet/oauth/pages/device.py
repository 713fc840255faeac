"""Page on which a person enters the code that a device shows, and decides about it."""

from typing import Annotated

from fastapi import Depends, Request
from starlette.responses import Response

from hublet.core.http import Conn, Db
from hublet.core.hub import Hub
from hublet.core.pages import PageRouter, Templates, page_response
from hublet.login.auth import CurrentVisitor, FormFields, SignedIn
from hublet.login.forms import check_form, form_token, frame_of
from hublet.login.records import Session
from hublet.oauth import devices
from hublet.oauth.authorize import consents
from hublet.oauth.authorize.consents import ConsentDecision
from hublet.oauth.authorize.routes import decision_reader
from hublet.oauth.devices import DeviceQuestion, format_user_code, normalize_user_code

router = PageRouter()
_templates = Templates("hublet.oauth")

_ENTRY, _DECISION = "device code", "device"
_MAX_TYPED_LENGTH = 40


@router.get("/device")
async def show_device_page(database: Db, session: SignedIn, user_code: str = "") -> Response:
    """Ask for the code of a device; a link may bring it along, but decides nothing."""
    return _entry_page(database.hub, session, typed=user_code)


@router.post("/device")
async def enter_device_code(
    request: Request, database: Db, session: SignedIn, visitor: CurrentVisitor, form: FormFields
) -> Response:
    """Show who waits under a code, and ask what they may do."""
    check_form(request, form, session, _ENTRY)
    limiter, typed = request.app.state.limiter, form.get("user_code", "")
    devices.count_guess(limiter, user_id=session.user_id, address=visitor.address)
    async with database.read() as conn:
        waiting = await devices.find_question(conn, typed, user_id=session.user_id)
    if waiting is None:
        return _entry_page(database.hub, session, typed=typed, is_wrong=True)
    devices.refund_guess(limiter, user_id=session.user_id, address=visitor.address)
    return _decision_page(database.hub, session, waiting, typed=typed)


# The answer of this session to the question about a device.
OwnDecision = Annotated[ConsentDecision, Depends(decision_reader(_DECISION))]


@router.post("/device/decision")
async def decide_about_device(conn: Conn, session: SignedIn, decision: OwnDecision) -> Response:
    """Take the person's decision about a device."""
    app = await devices.answer(conn, decision, session=session)
    body = _templates.render(
        "device_done.html",
        frame=frame_of(conn.hub, session),
        app=app,
        allowed=decision.organization_ids is not None,
    )
    return page_response(body)


def _entry_page(hub: Hub, session: Session, *, typed: str, is_wrong: bool = False) -> Response:
    body = _templates.render(
        "device.html",
        frame=frame_of(hub, session),
        user_code=_format_typed(typed),
        is_wrong=is_wrong,
        form_token=form_token(hub, session, _ENTRY),
    )
    return page_response(body, status=400 if is_wrong else 200)


def _decision_page(hub: Hub, session: Session, waiting: DeviceQuestion, *, typed: str) -> Response:
    ticket = consents.new_ticket(
        subject=waiting.device.digest, revision=waiting.question.app.revision
    )
    body = _templates.render(
        "device_decision.html",
        frame=frame_of(hub, session),
        question=waiting.question,
        device=waiting.device,
        user_code=_format_typed(typed),
        ticket=consents.seal_ticket(hub.keys, ticket, purpose=_DECISION, session_id=session.id),
        form_token=form_token(hub, session, _DECISION),
    )
    return page_response(body)


def _format_typed(typed: str) -> str:
    code = normalize_user_code(typed)
    return typed[:_MAX_TYPED_LENGTH] if code is None else format_user_code(code)
