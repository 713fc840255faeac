"""HTTP for the networks of an organization, and the e-mail domains whose people may join it."""

from collections.abc import Mapping

from fastapi import Response

from hublet.accounts.organizations import join_requests, security
from hublet.accounts.records import Actor, NetworkAuthentication, Organization, Role, is_within
from hublet.core.database import Connection
from hublet.core.errors import HubError
from hublet.core.http.exchange import exchange_of
from hublet.core.pages import PageRouter
from hublet.login.auth import FormFields
from hublet.web.auth import FreshVisit, PageVisit, SignedInVisit
from hublet.web.organizations.pages import (
    SETTINGS,
    apply_form,
    open_settings,
    render_settings,
    role_in,
)

router = PageRouter()

_PAGE = "network-security"
_NETWORKS = f"{SETTINGS}/{_PAGE}"
# Nobody becomes an administrator by an address.
_JOINING_ROLES = tuple(role for role in Role if role is not Role.admin)


@router.get(_NETWORKS)
async def get_network_security_page(visit: SignedInVisit, organization: str) -> Response:
    return await _show(visit, organization)


@router.post(_NETWORKS)
async def update_network_security(
    visit: FreshVisit, organization: str, form: FormFields
) -> Response:
    """Change from where members reach the organization."""

    async def change(conn: Connection, found: Organization, actor: Actor) -> None:
        await security.update(
            conn,
            actor,
            found,
            ip_ranges=security.parse_ranges(form.get("ranges", "").split()),
            is_restricted="restricted" in form,
            needs_token="needs-token" in form,
            by_operator=visit.person.is_admin,
        )

    return await apply_form(
        visit, organization, form, change, show=_show, page=_PAGE, toast="The networks are saved."
    )


@router.post(f"{_NETWORKS}/domains")
async def set_email_domain(visit: FreshVisit, organization: str, form: FormFields) -> Response:
    async def change(conn: Connection, found: Organization, actor: Actor) -> None:
        domain = form.get("domain", "")
        await join_requests.set_domain(conn, actor, found, domain, role_in(form))

    return await apply_form(
        visit, organization, form, change, show=_show, page=_PAGE, toast="The domain is saved."
    )


@router.post(f"{_NETWORKS}/domains/{{domain}}/remove")
async def remove_email_domain(
    visit: FreshVisit, organization: str, domain: str, form: FormFields
) -> Response:
    async def change(conn: Connection, found: Organization, actor: Actor) -> None:
        await join_requests.remove_domain(conn, actor, found, domain)

    return await apply_form(
        visit, organization, form, change, show=_show, page=_PAGE, toast="The domain is removed."
    )


async def _show(
    visit: PageVisit,
    name: str,
    *,
    typed: Mapping[str, str] | None = None,
    problem: HubError | None = None,
) -> Response:
    async with visit.database.read() as conn:
        head = await open_settings(conn, visit, name, _PAGE)
        networks = await security.get(conn, head.organization)
        domains = await join_requests.list_domains(conn, head.organization)
    address = exchange_of(visit.request).address
    return await render_settings(
        visit,
        head,
        networks=networks,
        is_pending=networks.authentication is NetworkAuthentication.pending,
        needs_token=networks.authentication is not NetworkAuthentication.no,
        domains=domains,
        joining_roles=_JOINING_ROLES,
        own_address=address,
        is_inside=is_within(address, networks.ip_ranges),
        typed=typed,
        problem=problem,
    )
