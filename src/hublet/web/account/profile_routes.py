"""HTTP for a person's profile and account: name, picture, e-mail addresses, and closing it."""

from collections.abc import Awaitable, Callable, Mapping

from fastapi import Response

from hublet.accounts import avatar_uploads, socials
from hublet.accounts.avatars import MAX_AVATAR_BYTES
from hublet.accounts.errors import NotAnImage
from hublet.accounts.settings import emails
from hublet.accounts.settings.emails import MAX_EMAILS
from hublet.accounts.settings.schemas import UpdateProfile
from hublet.accounts.users import service as accounts
from hublet.accounts.users import store as users
from hublet.core.database import Connection
from hublet.core.errors import HubError, InvalidRequest, TooLarge
from hublet.core.pages import PageRouter
from hublet.login.auth import FormFields, drop_session_cookie
from hublet.notifications.mail import links
from hublet.tokens.auth import actor_of
from hublet.web.auth import FreshVisit, PageVisit, SignedInVisit, UploadedPicture
from hublet.web.pages import REFUSALS, frame_for, go_to, read_as, render, status_of

router = PageRouter()

_PROFILE = "/settings/profile"
_ACCOUNT = "/settings/account"
_Change = Callable[[Connection], Awaitable[None]]


@router.get(_PROFILE)
async def get_profile_page(visit: SignedInVisit) -> Response:
    return await _show_profile(visit)


@router.post(_PROFILE)
async def change_profile(visit: SignedInVisit, form: FormFields) -> Response:
    visit.check(form, _PROFILE)
    fullname = form.get("fullname", "").strip()

    async def change(conn: Connection) -> None:
        request = read_as(UpdateProfile, fullname=fullname)
        user = await accounts.get_user_by_id(conn, visit.person.user_id)
        await accounts.set_fullname(conn, user, str(request.fullname))

    if problem := await _refusal_of(visit, change):
        return await _show_profile(visit, fullname=fullname, problem=problem)
    return go_to(visit, _PROFILE, toast="The profile is saved.")


@router.post(f"{_PROFILE}/socials")
async def change_socials(visit: SignedInVisit, form: FormFields) -> Response:
    """Change the person's names in other networks; an empty one is removed."""
    visit.check(form, _PROFILE)
    handles = {name: form.get(name, "") for name in socials.OF_USERS}

    async def change(conn: Connection) -> None:
        await socials.set_of_user(conn, visit.person.user_id, handles)

    if problem := await _refusal_of(visit, change):
        return await _show_profile(visit, handles=handles, problem=problem)
    return go_to(visit, _PROFILE, toast="The names are saved.")


@router.post(f"{_PROFILE}/picture")
async def set_picture(visit: SignedInVisit, picture: UploadedPicture) -> Response:
    visit.check(picture.fields, _PROFILE)

    async def change(conn: Connection) -> None:
        if not picture.content:
            raise NotAnImage
        await avatar_uploads.set_of_user(conn, visit.person.user_id, picture.content)

    if problem := await _refusal_of(visit, change):
        return await _show_profile(visit, problem=problem)
    return go_to(visit, _PROFILE, toast="The picture is there. Others see it within 5 minutes.")


@router.post(f"{_PROFILE}/picture/remove")
async def remove_picture(visit: SignedInVisit, form: FormFields) -> Response:
    visit.check(form, _PROFILE)
    async with visit.database.transaction() as conn:
        await avatar_uploads.remove_of_user(conn, visit.person.user_id)
    return go_to(visit, _PROFILE, toast="The picture is removed.")


@router.get(_ACCOUNT)
async def get_account_page(visit: SignedInVisit) -> Response:
    return await _show_account(visit)


@router.post(f"{_ACCOUNT}/emails")
async def add_email(visit: FreshVisit, form: FormFields) -> Response:
    visit.check(form, _ACCOUNT)
    address = form.get("email", "").strip()

    async def add(conn: Connection) -> None:
        user = await accounts.get_user_by_id(conn, visit.person.user_id)
        await emails.add(conn, user, address)

    if problem := await _refusal_of(visit, add):
        return await _show_account(visit, email=address, problem=problem)
    return go_to(visit, _ACCOUNT, toast=f"A mail is on its way to {address}. Open its link.")


@router.post(f"{_ACCOUNT}/emails/{{email_id}}/primary")
async def make_email_primary(visit: FreshVisit, email_id: str, form: FormFields) -> Response:
    visit.check(form, _ACCOUNT)

    async def change(conn: Connection) -> None:
        await emails.make_primary(conn, email_id, user_id=visit.person.user_id)

    if problem := await _refusal_of(visit, change):
        return await _show_account(visit, problem=problem)
    return go_to(visit, _ACCOUNT, toast="Mails of this hub come there from now on.")


@router.post(f"{_ACCOUNT}/emails/{{email_id}}/verify")
async def send_verification(visit: SignedInVisit, email_id: str, form: FormFields) -> Response:
    """Send the link to a new address once more."""
    visit.check(form, _ACCOUNT)
    async with visit.database.transaction() as conn:
        await links.request_again(conn, email_id=email_id, user_id=visit.person.user_id)
    return go_to(visit, _ACCOUNT, toast="Another mail is on its way.")


@router.post(f"{_ACCOUNT}/emails/{{email_id}}/remove")
async def remove_email(visit: FreshVisit, email_id: str, form: FormFields) -> Response:
    visit.check(form, _ACCOUNT)

    async def remove(conn: Connection) -> None:
        await emails.remove(conn, email_id, user_id=visit.person.user_id)

    if problem := await _refusal_of(visit, remove):
        return await _show_account(visit, problem=problem)
    return go_to(visit, _ACCOUNT, toast="The address is removed.")


@router.post(f"{_ACCOUNT}/close")
async def close_account(visit: FreshVisit, form: FormFields) -> Response:
    """Disable the account; its owner types its name first."""
    visit.check(form, _ACCOUNT)

    async def close(conn: Connection) -> None:
        if form.get("confirm", "").strip() != visit.person.user_name:
            raise InvalidRequest(
                f"confirm must be the name of the account, {visit.person.user_name}."
            )
        user = await accounts.get_user_by_id(conn, visit.person.user_id)
        await accounts.close_account(conn, actor_of(visit.request, visit.person), user)

    if problem := await _refusal_of(visit, close):
        return await _show_account(visit, problem=problem)
    response = go_to(visit, "/", toast="The account is closed.")
    drop_session_cookie(response, visit.settings)
    return response


async def _refusal_of(visit: PageVisit, change: _Change) -> HubError | None:
    """Make a change, and return what a person has to read beside the form, if it was refused."""
    try:
        async with visit.database.transaction() as conn:
            await change(conn)
    except (*REFUSALS, TooLarge) as error:
        return error
    return None


async def _show_profile(
    visit: PageVisit,
    *,
    fullname: str | None = None,
    handles: Mapping[str, str] | None = None,
    problem: HubError | None = None,
) -> Response:
    async with visit.database.read() as conn:
        frame = await frame_for(visit, conn, current=_PROFILE)
        user = await accounts.get_user_by_id(conn, visit.person.user_id)
        avatar = await users.find_avatar(conn, user.id)
        stored = await socials.get(conn, user.id)
    return await render(
        visit,
        "account/profile.html",
        frame=frame,
        status=200 if problem is None else status_of(problem),
        form_token=visit.form_token(_PROFILE),
        user=user,
        fullname=user.fullname if fullname is None else fullname,
        has_picture=avatar is not None and avatar.upload is not None,
        largest=MAX_AVATAR_BYTES,
        networks=list(socials.NETWORKS.items()),
        handles=stored if handles is None else handles,
        problem=None if problem is None else problem.message,
    )


async def _show_account(
    visit: PageVisit, *, email: str = "", problem: HubError | None = None
) -> Response:
    async with visit.database.read() as conn:
        frame = await frame_for(visit, conn, current=_ACCOUNT)
        addresses = await users.list_emails(conn, user_id=visit.person.user_id)
        memberships = await users.memberships_of(conn, user_id=visit.person.user_id)
    return await render(
        visit,
        "account/account.html",
        frame=frame,
        status=200 if problem is None else status_of(problem),
        form_token=visit.form_token(_ACCOUNT),
        addresses=addresses,
        organizations=[each.organization.name for each in memberships],
        most=MAX_EMAILS,
        typed=email,
        problem=None if problem is None else problem.message,
    )
