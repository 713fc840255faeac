"""HTTP for the administration of users and organizations."""

from typing import Annotated, Any

from fastapi import Query, Response
from pydantic import MISSING

from hublet.accounts import administration, administration_store
from hublet.accounts.administration_schemas import AddOrganization, AddUser, SetPlan
from hublet.accounts.organizations import audit_store, service
from hublet.accounts.organizations.schemas import UpdateOrganization
from hublet.accounts.passwords import new_password
from hublet.accounts.records import Actor, OrganizationPlan
from hublet.accounts.users import service as users
from hublet.core.database import Connection
from hublet.core.errors import HubError
from hublet.core.pages import PageRouter
from hublet.core.paging import read_cursor, write_cursor
from hublet.login.auth import FormFields
from hublet.web.admin import PURPOSE, admin_frame, administer
from hublet.web.auth import FreshVisit, OperatorVisit, PageVisit
from hublet.web.pages import go_to, next_page_url, read_as, render, status_of

router = PageRouter()

_USERS = "/admin/users"
_ORGANIZATIONS = "/admin/organizations"
_SHOWN = 50
_CREATED = 201

SearchWords = Annotated[str, Query(alias="search", max_length=100)]
Cursor = Annotated[str, Query()]


@router.get(_USERS)
async def get_users_page(
    visit: OperatorVisit, words: SearchWords = "", state: str = "", cursor: Cursor = ""
) -> Response:
    return await _show_users(visit, words=words, state=state, cursor=cursor)


@router.post(_USERS)
async def create_user(visit: FreshVisit, form: FormFields) -> Response:
    """Create an account; a password that is made up here is shown once, by this answer alone."""
    typed = form.get("password", "")
    password = typed or new_password()

    async def create(conn: Connection, actor: Actor) -> None:
        request = read_as(
            AddUser,
            name=form.get("name", "").strip(),
            fullname=form.get("fullname", "").strip() or MISSING,
            email=form.get("email", "").strip() or MISSING,
            password=password,
            isAdmin=form.get("administrator") == "on",
        )
        await administration.create_user(
            conn,
            actor,
            request.name,
            fullname=None if request.fullname is MISSING else request.fullname,
            email=None if request.email is MISSING else request.email,
            password=password,
            is_admin=request.isAdmin,
        )

    if (problem := await administer(visit, form, create)) is not None:
        return await _show_users(visit, form=form, problem=problem)
    name = form.get("name", "").strip()
    if not typed:
        # Not kept by any cache, because it is no plain answer.
        return await _show_users(visit, made=(name, password))
    return go_to(visit, f"{_USERS}?search={name}", toast=f"{name} has an account.")


@router.post(f"{_USERS}/{{name}}/state")
async def set_user_state(visit: FreshVisit, name: str, form: FormFields) -> Response:
    disabled = form.get("disabled") == "yes"
    toast = f"{name} is disabled." if disabled else f"{name} is enabled."
    return await _update_user(visit, form, name, disabled=disabled, toast=toast)


@router.post(f"{_USERS}/{{name}}/role")
async def set_user_role(visit: FreshVisit, name: str, form: FormFields) -> Response:
    is_admin = form.get("administrator") == "yes"
    toast = f"{name} {'administers this hub' if is_admin else 'is no administrator any more'}."
    return await _update_user(visit, form, name, is_admin=is_admin, toast=toast)


async def _update_user(
    visit: PageVisit,
    form: FormFields,
    name: str,
    *,
    toast: str,
    disabled: bool | None = None,
    is_admin: bool | None = None,
) -> Response:
    async def update(conn: Connection, actor: Actor) -> None:
        user = await users.get_user(conn, name)
        await administration.update_user(conn, actor, user, disabled=disabled, is_admin=is_admin)

    if (problem := await administer(visit, form, update)) is not None:
        return await _show_users(visit, words=name, problem=problem)
    return go_to(visit, f"{_USERS}?search={name}", toast=toast)


async def _show_users(  # noqa: PLR0913 - what the page shows besides
    visit: PageVisit,
    *,
    words: str = "",
    state: str = "",
    cursor: str = "",
    form: FormFields | None = None,
    problem: HubError | None = None,
    made: tuple[str, str] | None = None,
) -> Response:
    after = read_cursor(cursor) if cursor else ""
    async with visit.database.read() as conn:
        frame = await admin_frame(visit, conn, _USERS)
        listed = await administration_store.search_users(
            conn, words.strip(), state=state, after=after, limit=_SHOWN + 1
        )
        rows = listed[:_SHOWN]
        ids = [user.id for user in rows]
        memberships = await administration_store.list_memberships(conn, ids)
        sign_ins = await audit_store.last_sign_ins(conn, ids)
    return await render(
        visit,
        "admin/users.html",
        frame=frame,
        status=_CREATED if made else 200 if problem is None else status_of(problem),
        rows=rows,
        memberships=memberships,
        sign_ins=sign_ins,
        search=words,
        state=state,
        older=_older(visit, rows[-1].id) if len(listed) > _SHOWN else None,
        form_token=visit.form_token(PURPOSE),
        typed=_typed(form),
        problem=None if problem is None else problem.message,
        made=made,
    )


@router.get(_ORGANIZATIONS)
async def get_organizations_page(
    visit: OperatorVisit, words: SearchWords = "", cursor: Cursor = ""
) -> Response:
    return await _show_organizations(visit, words=words, cursor=cursor)


@router.post(_ORGANIZATIONS)
async def create_organization(visit: FreshVisit, form: FormFields) -> Response:
    name = form.get("name", "").strip()

    async def create(conn: Connection, actor: Actor) -> None:
        request = read_as(
            AddOrganization,
            name=name,
            fullname=form.get("fullname", "").strip() or MISSING,
            plan=form.get("plan", ""),
        )
        owner = form.get("owner", "").strip()
        await service.create(
            conn,
            actor,
            request.name,
            fullname=None if request.fullname is MISSING else request.fullname,
            plan=request.plan,
            owner=await users.get_user(conn, owner) if owner else None,
        )

    if (problem := await administer(visit, form, create)) is not None:
        return await _show_organizations(visit, form=form, problem=problem)
    return go_to(visit, f"{_ORGANIZATIONS}?search={name}", toast=f"{name} is there.")


@router.post(f"{_ORGANIZATIONS}/{{name}}")
async def update_organization(visit: FreshVisit, name: str, form: FormFields) -> Response:
    """Give an organization another full name or plan."""

    async def update(conn: Connection, actor: Actor) -> None:
        organization = await service.get(conn, name)
        fullname = read_as(UpdateOrganization, fullname=form.get("fullname", "").strip()).fullname
        plan = read_as(SetPlan, plan=form.get("plan", "")).plan
        if fullname is not MISSING:
            organization = await service.set_fullname(conn, actor, organization, fullname)
        await service.set_plan(conn, actor, organization, plan)

    if (problem := await administer(visit, form, update)) is not None:
        return await _show_organizations(visit, words=name, problem=problem)
    return go_to(visit, f"{_ORGANIZATIONS}?search={name}", toast=f"{name} is saved.")


async def _show_organizations(
    visit: PageVisit,
    *,
    words: str = "",
    cursor: str = "",
    form: FormFields | None = None,
    problem: HubError | None = None,
) -> Response:
    after = read_cursor(cursor) if cursor else ""
    async with visit.database.read() as conn:
        frame = await admin_frame(visit, conn, _ORGANIZATIONS)
        listed = await administration_store.search_organizations(
            conn, words.strip(), after=after, limit=_SHOWN + 1
        )
    rows = listed[:_SHOWN]
    return await render(
        visit,
        "admin/organizations.html",
        frame=frame,
        status=200 if problem is None else status_of(problem),
        rows=rows,
        search=words,
        plans=list(OrganizationPlan),
        older=_older(visit, rows[-1][0].id) if len(listed) > _SHOWN else None,
        form_token=visit.form_token(PURPOSE),
        typed=_typed(form),
        problem=None if problem is None else problem.message,
    )


def _older(visit: PageVisit, position: str) -> str:
    return next_page_url(visit, write_cursor(position))


def _typed(form: FormFields | None) -> dict[str, Any]:
    """Return what was typed, without the password: it stands in no page."""
    names = ("name", "fullname", "email", "administrator", "owner", "plan")
    return {name: form.get(name, "") if form is not None else "" for name in names}
