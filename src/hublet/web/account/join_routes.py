"""HTTP for the ways into an account: sign-up, invitations, and a forgotten password.

Who fills in these forms has no session that a token could be bound to: the origin is checked, and
limits count by address.
"""

from typing import Any

from fastapi import Response

from hublet.accounts import invitations
from hublet.accounts.organizations import service as organizations
from hublet.accounts.passwords import MAX_LENGTH, MIN_LENGTH
from hublet.accounts.records import Organization
from hublet.accounts.users import service as accounts
from hublet.core.database import Reader
from hublet.core.errors import HubError, NotFound, TooManyRequests
from hublet.core.http.exchange import exchange_of
from hublet.core.pages import PageRouter
from hublet.login import password_resets, sign_up
from hublet.login.auth import CurrentVisitor, FormFields, set_session_cookie
from hublet.login.errors import PasswordsDiffer, SignUpClosed
from hublet.login.forms import check_origin
from hublet.login.password_resets import ResetLimits
from hublet.login.records import Visitor
from hublet.login.sign_up import NewAccount, SignUpLimit
from hublet.tokens.auth import actor_of
from hublet.web.auth import PageVisit, SignedInVisit, Visit
from hublet.web.pages import REFUSALS, frame_for, go_to, render, status_of

router = PageRouter()

_INVITATION = "/invitations/{token}"
_RESET = "/reset-password/{token}"
_PURPOSE = "invitation"
_LENGTH_RULES: dict[str, Any] = {"shortest": MIN_LENGTH, "longest": MAX_LENGTH}


@router.get("/join")
async def get_join_page(visit: Visit) -> Response:
    """Show the form, or whom to ask where only invited people join."""
    if visit.session is not None:
        return go_to(visit, "/")
    closed = None if sign_up.is_open(visit.hub.settings) else SignUpClosed()
    return await _show_join(visit, problem=closed, is_open=closed is None)


@router.post("/join")
async def join(visit: Visit, visitor: CurrentVisitor, form: FormFields) -> Response:
    return await _sign_up(visit, visitor, form, token=None)


@router.get(_INVITATION)
async def get_invitation_page(visit: Visit, token: str) -> Response:
    return await _show_invitation(visit, token)


@router.post(_INVITATION)
async def accept_invitation(visit: SignedInVisit, token: str, form: FormFields) -> Response:
    """Join an organization with the account that is signed in."""
    visit.check(form, _PURPOSE)
    try:
        async with visit.database.transaction() as conn:
            user = await accounts.get_user_by_id(conn, visit.person.user_id)
            actor = actor_of(visit.request, visit.person)
            accepted = await invitations.accept(conn, actor, token, user)
            organization = await invitations.organization_of(conn, accepted)
    except REFUSALS as error:
        return await _show_invitation(visit, token, problem=error)
    path = "/" if organization is None else f"/{organization.name}"
    return go_to(visit, path, toast="Welcome.")


@router.post(f"{_INVITATION}/join")
async def join_by_invitation(
    visit: Visit, visitor: CurrentVisitor, token: str, form: FormFields
) -> Response:
    """Create an account with an invitation."""
    return await _sign_up(visit, visitor, form, token=token)


@router.get("/forgot-password")
async def get_forgotten_password_page(visit: Visit) -> Response:
    return await _show_forgotten(visit)


@router.post("/forgot-password")
async def request_reset(visit: Visit, form: FormFields) -> Response:
    """Answer the same whether or not an account has the address."""
    check_origin(visit.request)
    email = form.get("email", "").strip()
    if not _sends_mails(visit):
        return await _show_forgotten(visit)
    try:
        async with visit.database.transaction() as conn:
            await password_resets.request(conn, _reset_limits(visit), email)
    except TooManyRequests as error:
        return await _show_forgotten(visit, email=email, problem=error)
    return await _show_forgotten(visit, email=email, is_sent=True)


@router.get(_RESET)
async def get_reset_page(visit: Visit, token: str) -> Response:
    return await _show_reset(visit, token)


@router.post(_RESET)
async def reset_password(visit: Visit, token: str, form: FormFields) -> Response:
    """Set a new password, and send the browser to sign in with it."""
    check_origin(visit.request)
    try:
        _reset_limits(visit).count()
        if form.get("new", "") != form.get("repeated"):
            raise PasswordsDiffer
        await password_resets.reset(visit.database, token, form.get("new", ""))
    except (*REFUSALS, TooManyRequests) as error:
        return await _show_reset(visit, token, problem=error)
    return go_to(visit, "/login?changed=1")


async def _sign_up(
    visit: PageVisit, visitor: Visitor, form: FormFields, *, token: str | None
) -> Response:
    check_origin(visit.request)
    new = NewAccount(
        name=form.get("name", "").strip(),
        fullname=form.get("fullname", "").strip(),
        email=form.get("email", "").strip(),
        password=form.get("password", ""),
    )
    limiter = visit.request.app.state.limiter
    limit = SignUpLimit(limiter, visit.hub.settings, address=visitor.address)
    try:
        value = await sign_up.sign_up(visit.database, visitor, limit, new, token=token)
    except (*REFUSALS, TooManyRequests) as error:
        is_open = not isinstance(error, SignUpClosed)
        if token is None:
            return await _show_join(visit, form, problem=error, is_open=is_open)
        return await _show_invitation(visit, token, form, problem=error)
    toast = f"Welcome, {new.name}."
    if _sends_mails(visit):
        toast += f" A mail is on its way to {new.email}: open its link."
    response = go_to(visit, "/", toast=toast)
    set_session_cookie(response, visit.settings, value)
    return response


async def _show_join(
    visit: PageVisit,
    form: FormFields | None = None,
    *,
    problem: HubError | None,
    is_open: bool,
) -> Response:
    return await render(
        visit,
        "account/join.html",
        frame=await frame_for(visit),
        status=200 if problem is None else _status_of(problem),
        is_open=is_open,
        typed=_typed(form),
        problem=None if problem is None else problem.message,
        **_LENGTH_RULES,
    )


async def _show_invitation(
    visit: PageVisit,
    token: str,
    form: FormFields | None = None,
    *,
    problem: HubError | None = None,
) -> Response:
    """Show who invites to what; NotFound, if that is over, is the page of every broken link."""
    async with visit.database.read() as conn:
        frame = await frame_for(visit, conn)
        invitation = await invitations.get_by_link(conn, token)
        organization = await invitations.organization_of(conn, invitation)
        is_member = await _is_member(conn, visit, organization)
        if visit.caller is None and problem is None:
            try:
                await invitations.check_newcomer(conn, invitation)
            except REFUSALS as error:
                # Who has an account can still sign in and accept.
                problem = error
    typed = _typed(form)
    if form is None and invitation.email is not None:
        typed["email"] = invitation.email
    return await render(
        visit,
        "account/invitation.html",
        frame=frame,
        status=200 if form is None or problem is None else _status_of(problem),
        token=token,
        form_token=visit.form_token(_PURPOSE),
        invitation=invitation,
        organization=organization,
        is_member=is_member,
        may_join=visit.caller is None and not (form is None and problem),
        typed=typed,
        problem=None if problem is None else problem.message,
        **_LENGTH_RULES,
    )


async def _is_member(conn: Reader, visit: PageVisit, organization: Organization | None) -> bool:
    if organization is None or visit.caller is None:
        return False
    return await organizations.is_member(conn, organization, user_id=visit.caller.user_id)


async def _show_forgotten(
    visit: PageVisit,
    *,
    email: str = "",
    is_sent: bool = False,
    problem: HubError | None = None,
) -> Response:
    return await render(
        visit,
        "account/forgotten.html",
        frame=await frame_for(visit),
        status=200 if problem is None else _status_of(problem),
        sends_mails=_sends_mails(visit),
        email=email,
        is_sent=is_sent,
        problem=None if problem is None else problem.message,
    )


async def _show_reset(visit: PageVisit, token: str, *, problem: HubError | None = None) -> Response:
    try:
        async with visit.database.read() as conn:
            user = await password_resets.get_user(conn, token)
    except NotFound as error:
        user, problem = None, error
    return await render(
        visit,
        "account/reset.html",
        frame=await frame_for(visit),
        status=200 if problem is None else _status_of(problem),
        token=token,
        user=user,
        problem=None if problem is None else problem.message,
        **_LENGTH_RULES,
    )


def _status_of(problem: HubError) -> int:
    keeps = isinstance(problem, NotFound | TooManyRequests)
    return problem.status if keeps else status_of(problem)


def _sends_mails(visit: PageVisit) -> bool:
    return visit.hub.settings.mail.smtp_url is not None


def _reset_limits(visit: PageVisit) -> ResetLimits:
    limiter = visit.request.app.state.limiter
    address = exchange_of(visit.request).address
    return ResetLimits(limiter, visit.hub.settings, address=address)


def _typed(form: FormFields | None) -> dict[str, str]:
    """Return what was typed, without the password: it stands in no page."""
    return {
        name: "" if form is None else form.get(name, "") for name in ("name", "fullname", "email")
    }
