"""HTTP for a new organization, its profile and its applications."""

from collections.abc import Mapping

from fastapi import Response
from pydantic import MISSING

from hublet.accounts import avatar_uploads, socials
from hublet.accounts.avatars import MAX_AVATAR_BYTES
from hublet.accounts.errors import NotAnImage
from hublet.accounts.organizations import service as organizations
from hublet.accounts.organizations.schemas import CreateOrganization, UpdateOrganization
from hublet.accounts.records import Actor, DefaultVisibility, Organization
from hublet.accounts.users import service as users
from hublet.core.database import Connection
from hublet.core.errors import HubError, InvalidRequest
from hublet.core.pages import PageRouter
from hublet.login.auth import FormFields
from hublet.oauth.apps import administration as oauth
from hublet.oauth.apps.schemas import UpdateOAuthSettings
from hublet.tokens.auth import actor_of
from hublet.web.auth import FreshVisit, PageVisit, SignedInVisit, UploadedPicture
from hublet.web.organizations.pages import (
    SETTINGS,
    apply_form,
    get_administered,
    open_settings,
    purpose_of,
    render_settings,
)
from hublet.web.pages import (
    REFUSALS,
    frame_for,
    go_to,
    organization_settings_path,
    read_as,
    render,
    status_of,
)

router = PageRouter()

_PURPOSE = "new organization"


@router.get("/organizations/new")
async def get_new_organization_page(visit: SignedInVisit) -> Response:
    return await _show_new(visit)


@router.post("/organizations/new")
async def create_organization(visit: SignedInVisit, form: FormFields) -> Response:
    """Create an organization on the free plan, with the person as its administrator."""
    visit.check(form, _PURPOSE)
    try:
        new = read_as(
            CreateOrganization,
            name=form.get("name", "").strip(),
            fullname=form.get("fullname", "").strip() or MISSING,
        )
        async with visit.database.transaction() as conn:
            organization = await organizations.create(
                conn,
                actor_of(visit.request, visit.person),
                new.name,
                fullname=None if new.fullname is MISSING else new.fullname,
                owner=await users.get_user_by_id(conn, visit.person.user_id),
            )
    except REFUSALS as error:
        return await _show_new(visit, typed=form, problem=error)
    path = organization_settings_path(organization.name, "members")
    return go_to(visit, path, toast=f"{organization.name} is there. Add its members.")


async def _show_new(
    visit: PageVisit, *, typed: Mapping[str, str] | None = None, problem: HubError | None = None
) -> Response:
    async with visit.database.read() as conn:
        frame = await frame_for(visit, conn)
    return await render(
        visit,
        "organizations/new.html",
        frame=frame,
        status=200 if problem is None else status_of(problem),
        form_token=visit.form_token(_PURPOSE),
        typed=typed or {},
        problem=None if problem is None else problem.message,
    )


@router.get(f"{SETTINGS}/profile")
async def get_organization_profile_page(visit: SignedInVisit, organization: str) -> Response:
    return await _show_profile(visit, organization)


@router.post(f"{SETTINGS}/profile")
async def update_organization_profile(
    visit: SignedInVisit, organization: str, form: FormFields
) -> Response:
    """Change the full name, and who sees new repositories."""

    async def change(conn: Connection, found: Organization, actor: Actor) -> None:
        request = read_as(
            UpdateOrganization,
            fullname=form.get("fullname", "").strip(),
            defaultVisibility=form.get("visibility", ""),
        )
        if request.fullname is not MISSING:
            found = await organizations.set_fullname(conn, actor, found, request.fullname)
        if request.defaultVisibility is not MISSING:
            visibility = DefaultVisibility(request.defaultVisibility)
            await organizations.set_default_visibility(conn, actor, found, visibility)

    return await apply_form(
        visit, organization, form, change,
        show=_show_profile, page="profile", toast="The profile is saved.",
    )  # fmt: skip


@router.post(f"{SETTINGS}/profile/picture")
async def set_organization_picture(
    visit: SignedInVisit, organization: str, form: UploadedPicture
) -> Response:
    async def change(conn: Connection, found: Organization, actor: Actor) -> None:
        if not form.content:
            raise NotAnImage
        await avatar_uploads.set_of_organization(conn, actor, found, form.content)

    return await apply_form(
        visit, organization, form.fields, change,
        show=_show_profile, page="profile", toast="The picture is saved.",
    )  # fmt: skip


@router.post(f"{SETTINGS}/profile/remove-picture")
async def remove_organization_picture(
    visit: SignedInVisit, organization: str, form: FormFields
) -> Response:
    async def change(conn: Connection, found: Organization, actor: Actor) -> None:
        await avatar_uploads.remove_of_organization(conn, actor, found)

    return await apply_form(
        visit, organization, form, change,
        show=_show_profile, page="profile", toast="The picture is the drawn one again.",
    )  # fmt: skip


@router.post(f"{SETTINGS}/profile/socials")
async def set_organization_socials(
    visit: SignedInVisit, organization: str, form: FormFields
) -> Response:
    """Change the names of the organization in other networks; an empty one is removed."""

    async def change(conn: Connection, found: Organization, actor: Actor) -> None:
        handles = {name: form.get(name, "") for name in socials.OF_ORGANIZATIONS}
        await socials.set_of_organization(conn, actor, found, handles)

    return await apply_form(
        visit, organization, form, change,
        show=_show_profile, page="profile", toast="The names are saved.",
    )  # fmt: skip


@router.post(f"{SETTINGS}/profile/token-exchange")
async def set_exchange_lifetime(visit: FreshVisit, organization: str, form: FormFields) -> Response:
    """Say how long tokens live that applications of the organization get by exchange."""

    async def change(conn: Connection, found: Organization, actor: Actor) -> None:
        minutes = form.get("minutes", "").strip()
        if not (minutes.isascii() and minutes.isdigit()):
            raise InvalidRequest("minutes must be a whole number.")
        request = read_as(UpdateOAuthSettings, exchangeSeconds=int(minutes[:9]) * 60)
        await oauth.update_settings(conn, actor, found.name, request)

    return await apply_form(
        visit, organization, form, change,
        show=_show_profile, page="profile", toast="The lifetime is saved.",
    )  # fmt: skip


@router.post(f"{SETTINGS}/profile/leave")
async def leave_organization(visit: FreshVisit, organization: str, form: FormFields) -> Response:
    try:
        async with visit.database.transaction() as conn:
            found = await get_administered(conn, visit, organization)
            visit.check(form, purpose_of(found))
            if form.get("confirm", "").strip() != found.name:
                raise InvalidRequest(f"confirm must be the name, {found.name}.")
            person = await users.get_user_by_id(conn, visit.person.user_id)
            await organizations.remove_member(
                conn, actor_of(visit.request, visit.person), found, person
            )
    except REFUSALS as error:
        return await _show_profile(visit, organization, problem=error)
    return go_to(visit, f"/{found.name}", toast=f"You left {found.name}.")


async def _show_profile(
    visit: PageVisit,
    name: str,
    *,
    typed: Mapping[str, str] | None = None,
    problem: HubError | None = None,
) -> Response:
    async with visit.database.read() as conn:
        head = await open_settings(conn, visit, name, "profile")
        seconds = await oauth.exchange_seconds_of(conn, head.organization.id)
        handles = await socials.get(conn, head.organization.id)
    return await render_settings(
        visit,
        head,
        exchange_minutes=seconds // 60,
        largest_picture=MAX_AVATAR_BYTES,
        networks=[(name, socials.NETWORKS[name]) for name in socials.OF_ORGANIZATIONS],
        handles=handles,
        typed=typed,
        problem=problem,
    )


@router.get(f"{SETTINGS}/oauth")
async def get_organization_apps_page(visit: SignedInVisit, organization: str) -> Response:
    """Show the applications that are bound to the organization."""
    async with visit.database.read() as conn:
        head = await open_settings(conn, visit, organization, "oauth")
        apps = await oauth.list_organization_apps(conn, organization, user_id=visit.person.user_id)
    return await render_settings(visit, head, apps=apps)
