"""Page on which a person enters the code that a device shows."""

from typing import Annotated

from fastapi import Depends, Request
from starlette.responses import Response

from hublet.core.http import Conn, Db
from hublet.core.hub import Hub
from hublet.core.pages import PageRouter, Templates, page_response
from hublet.login.auth import CurrentVisitor, FormFields, SignedIn
from hublet.login.forms import check_form, form_token, frame_of
from hublet.login.records import Session
from hublet.oauth.authorize import consent_form
from hublet.oauth.authorize.consent_form import ConsentDecision, read_decision
from hublet.oauth.devices import decisions
from hublet.oauth.devices.service import format_user_code, normalize_user_code

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
    decisions.count_guess(limiter, user_id=session.user_id, address=visitor.address)
    async with database.read() as conn:
        asked = await decisions.find_question(conn, typed, user_id=session.user_id)
    if asked is None:
        return _entry_page(database.hub, session, typed=typed, is_wrong=True)
    decisions.forgive_guess(limiter, user_id=session.user_id, address=visitor.address)
    return _decision_page(database.hub, session, asked, typed=typed)


async def _read_own_decision(
    request: Request, session: SignedIn, form: FormFields
) -> ConsentDecision:
    check_form(request, form, session, _DECISION)
    keys = request.app.state.database.hub.keys
    return read_decision(keys, form.multi_items(), purpose=_DECISION, session_id=session.id)


# The answer of this session to a question of ours.
OwnDecision = Annotated[ConsentDecision, Depends(_read_own_decision)]


@router.post("/device/decision")
async def decide_about_device(conn: Conn, session: SignedIn, answer: OwnDecision) -> Response:
    """Take the person's decision about a device."""
    app = await decisions.decide(conn, answer, session=session)
    body = _templates.render(
        "device_done.html",
        frame=frame_of(conn.hub, session),
        app=app,
        allowed=answer.organization_ids is not None,
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


def _decision_page(
    hub: Hub, session: Session, asked: decisions.DeviceQuestion, *, typed: str
) -> Response:
    ticket = consent_form.new_ticket(
        subject=asked.device.digest, revision=asked.question.app.revision
    )
    body = _templates.render(
        "device_decision.html",
        frame=frame_of(hub, session),
        question=asked.question,
        device=asked.device,
        user_code=_format_typed(typed),
        ticket=consent_form.seal_ticket(hub.keys, ticket, purpose=_DECISION, session_id=session.id),
        form_token=form_token(hub, session, _DECISION),
    )
    return page_response(body)


def _format_typed(typed: str) -> str:
    code = normalize_user_code(typed)
    return typed[:_MAX_TYPED_LENGTH] if code is None else format_user_code(code)
