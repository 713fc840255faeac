"""HTTP for the members of an organization, invitations, and requests to join it."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated

from fastapi import Query, Response

from hublet.accounts import invitations
from hublet.accounts.organizations import join_requests, join_requests_store, store
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import Actor, Member, Organization, Role, UserType
from hublet.accounts.users import service as users
from hublet.core.database import Connection, Reader
from hublet.core.dataclasses import dataclass
from hublet.core.errors import HubError
from hublet.core.pages import PageRouter
from hublet.core.paging import read_cursor, write_cursor
from hublet.login import store as login_store
from hublet.login.auth import FormFields
from hublet.scim.users import service as scim_users
from hublet.scim.users import store as scim_store
from hublet.tokens import store as tokens
from hublet.tokens.auth import actor_of
from hublet.web.auth import FreshVisit, PageVisit, SignedInVisit
from hublet.web.organizations.pages import (
    SETTINGS,
    apply_form,
    open_settings,
    purpose_of,
    render_settings,
    role_in,
)
from hublet.web.pages import REFUSALS, frame_for, go_to, next_page_url, render, status_of

router = PageRouter()

_MEMBERS = f"{SETTINGS}/members"
_JOIN = "/organizations/{organization}/join"
_PAGE_SIZE = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRow:
    """A member in the table, with what is known of how they sign in."""

    member: Member
    has_passkey: bool
    # When they last used a session or a token.
    seen_at: datetime | None
    # None unless an identity provider keeps them; then whether the account is managed, too.
    is_managed: bool | None
    is_own: bool

    @property
    def is_service_account(self) -> bool:
        return self.member.user.type is UserType.service

    @property
    def may_change(self) -> bool:
        return self.is_managed is None


@router.get(_MEMBERS)
async def get_organization_members_page(
    visit: SignedInVisit,
    organization: str,
    search: Annotated[str, Query(max_length=100)] = "",
    cursor: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Show who belongs to the organization, as what, and who asks to join it."""
    return await _show(visit, organization, search=search.strip(), cursor=cursor)


@router.post(_MEMBERS)
async def add_organization_member(
    visit: FreshVisit, organization: str, form: FormFields
) -> Response:
    """Add somebody by name; they are told so."""
    name = form.get("user", "").strip()

    async def change(conn: Connection, found: Organization, actor: Actor) -> None:
        role = role_in(form)
        user = await users.get_visible_user(conn, name, to_administrator=False)
        await scim_users.check_not_provisioned(conn, found, user)
        await organizations.set_member(conn, actor, found, user, role)

    return await apply_form(
        visit, organization, form, change,
        show=_show, page="members", toast=f"{name} is a member.",
    )  # fmt: skip


@router.post(f"{_MEMBERS}/invitations")
async def create_invitation(visit: FreshVisit, organization: str, form: FormFields) -> Response:
    """Make a link that lets one person join, and show it this once; with an address it is mailed."""
    links: list[str] = []

    async def change(conn: Connection, found: Organization, actor: Actor) -> None:
        _, link = await invitations.create(
            conn, actor, organization=found, role=role_in(form),
            email=form.get("email", "").strip() or None,
        )  # fmt: skip
        links.append(link)

    response = await apply_form(
        visit, organization, form, change,
        show=_show, page="members", toast="",
    )  # fmt: skip
    return await _show(visit, organization, new_link=links[0]) if links else response


@router.post(f"{_MEMBERS}/invitations/{{invitation_id}}/revoke")
async def revoke_invitation(
    visit: FreshVisit, organization: str, invitation_id: str, form: FormFields
) -> Response:
    async def change(conn: Connection, found: Organization, actor: Actor) -> None:
        await invitations.revoke(conn, actor, invitation_id, organization=found)

    return await apply_form(
        visit, organization, form, change,
        show=_show, page="members", toast="The link does not work any more.",
    )  # fmt: skip


@router.post(f"{_MEMBERS}/{{member}}/role")
async def set_organization_role(
    visit: FreshVisit, organization: str, member: str, form: FormFields
) -> Response:
    async def change(conn: Connection, found: Organization, actor: Actor) -> None:
        role = role_in(form)
        user = await users.get_visible_user(conn, member, to_administrator=False)
        await scim_users.check_not_provisioned(conn, found, user)
        await organizations.set_member(conn, actor, found, user, role)

    return await apply_form(
        visit, organization, form, change,
        show=_show, page="members", toast=f"The role of {member} is saved.",
    )  # fmt: skip


@router.post(f"{_MEMBERS}/{{member}}/remove")
async def remove_organization_member(
    visit: FreshVisit, organization: str, member: str, form: FormFields
) -> Response:
    async def change(conn: Connection, found: Organization, actor: Actor) -> None:
        user = await users.get_user(conn, member)
        await scim_users.check_not_provisioned(conn, found, user)
        await organizations.remove_member(conn, actor, found, user)

    return await apply_form(
        visit, organization, form, change,
        show=_show, page="members", toast=f"{member} is no member any more.",
    )  # fmt: skip


@router.post(f"{_MEMBERS}/{{member}}/accept")
async def accept_join_request(
    visit: FreshVisit, organization: str, member: str, form: FormFields
) -> Response:
    async def change(conn: Connection, found: Organization, actor: Actor) -> None:
        user = await users.get_visible_user(conn, member, to_administrator=False)
        await join_requests.accept(conn, actor, found, user, role_in(form))

    return await apply_form(
        visit, organization, form, change,
        show=_show, page="members", toast=f"{member} is a member.",
    )  # fmt: skip


@router.post(f"{_MEMBERS}/{{member}}/decline")
async def decline_join_request(
    visit: FreshVisit, organization: str, member: str, form: FormFields
) -> Response:
    async def change(conn: Connection, found: Organization, actor: Actor) -> None:
        user = await users.get_user(conn, member)
        await join_requests.decline(conn, actor, found, user, form.get("reason", "").strip())

    return await apply_form(
        visit, organization, form, change,
        show=_show, page="members", toast=f"The request of {member} is declined.",
    )  # fmt: skip


async def _show(  # noqa: PLR0913 - what is looked for, and what a form left
    visit: PageVisit,
    name: str,
    *,
    search: str = "",
    cursor: str = "",
    new_link: str | None = None,
    typed: Mapping[str, str] | None = None,
    problem: HubError | None = None,
) -> Response:
    async with visit.database.read() as conn:
        head = await open_settings(conn, visit, name, "members")
        found = await store.list_members(
            conn,
            head.organization.id,
            after=read_cursor(cursor) if cursor else "",
            limit=_PAGE_SIZE + 1,
            search=search,
        )
        members = found[:_PAGE_SIZE]
        rows = await _rows(conn, visit, head.organization, members)
        requests = await join_requests_store.list_open(conn, head.organization.id)
        invited = await invitations.list_of(conn, head.organization)
        count = await store.count_members(conn, head.organization.id)
    more = len(found) > len(members)
    return await render_settings(
        visit,
        head,
        rows=rows,
        requests=requests,
        invitations=invited,
        new_link=new_link,
        has_mail=visit.settings.mail.smtp_url is not None,
        count=count,
        search=search,
        default_role=Role.read,
        max_message=join_requests.MAX_MESSAGE,
        next_url=next_page_url(visit, write_cursor(members[-1].user.id)) if more else None,
        typed=typed,
        problem=problem,
    )


async def _rows(
    conn: Reader, visit: PageVisit, organization: Organization, members: Sequence[Member]
) -> list[MemberRow]:
    ids = [member.user.id for member in members]
    with_passkey = await login_store.list_with_passkey(conn, ids)
    visits = await login_store.last_visits_of(conn, ids)
    uses = await tokens.last_uses_of(conn, ids)
    managed = await scim_store.list_provisioned(conn, organization.id, ids)
    return [
        MemberRow(
            member=member,
            has_passkey=user_id in with_passkey,
            seen_at=max((at[user_id] for at in (visits, uses) if user_id in at), default=None),
            is_managed=managed.get(user_id),
            is_own=user_id == visit.person.user_id,
        )
        for member in members
        for user_id in [member.user.id]
    ]


@router.get(_JOIN)
async def get_join_page(visit: SignedInVisit, organization: str) -> Response:
    """Ask to join an organization, or say that the request waits."""
    return await _show_join(visit, organization)


@router.post(_JOIN)
async def request_to_join(visit: SignedInVisit, organization: str, form: FormFields) -> Response:
    try:
        async with visit.database.transaction() as conn:
            found = await organizations.get(conn, organization)
            visit.check(form, purpose_of(found))
            person = await users.get_user_by_id(conn, visit.person.user_id)
            actor = actor_of(visit.request, visit.person)
            message = form.get("message", "").strip()
            joined = await join_requests.create(conn, actor, found, person, message)
    except REFUSALS as error:
        return await _show_join(visit, organization, typed=form, problem=error)
    toast = f"Your request is with the administrators of {found.name}."
    if joined:
        toast = f"You are a member of {found.name}, by your e-mail address."
    return go_to(visit, f"/{found.name}", toast=toast)


@router.post(f"{_JOIN}/withdraw")
async def withdraw_join_request(
    visit: SignedInVisit, organization: str, form: FormFields
) -> Response:
    async with visit.database.transaction() as conn:
        found = await organizations.get(conn, organization)
        visit.check(form, purpose_of(found))
        person = await users.get_user_by_id(conn, visit.person.user_id)
        await join_requests.withdraw(conn, actor_of(visit.request, visit.person), found, person)
    return go_to(visit, f"/{found.name}", toast="Your request is withdrawn.")


async def _show_join(
    visit: PageVisit,
    name: str,
    *,
    typed: Mapping[str, str] | None = None,
    problem: HubError | None = None,
) -> Response:
    user_id = visit.person.user_id
    async with visit.database.read() as conn:
        frame = await frame_for(visit, conn)
        organization = await organizations.get(conn, name)
        is_member = await organizations.is_member(conn, organization, user_id=user_id)
        is_pending = await join_requests.is_pending(conn, organization, user_id=user_id)
    return await render(
        visit,
        "organizations/join.html",
        frame=frame,
        status=200 if problem is None else status_of(problem),
        organization=organization,
        is_member=is_member,
        is_pending=is_pending,
        form_token=visit.form_token(purpose_of(organization)),
        max_message=join_requests.MAX_MESSAGE,
        typed=typed or {},
        problem=None if problem is None else problem.message,
    )
