"""What the pages of an organization's settings have in common: head, form token, and forms."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from fastapi import Response

from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import Actor, Organization, Role
from hublet.core.database import Connection, Reader
from hublet.core.dataclasses import dataclass
from hublet.core.errors import HubError, InvalidRequest, NotFound, TooLarge
from hublet.core.pages import Frame
from hublet.login.errors import ForeignForm, StaleForm
from hublet.tokens.auth import actor_of
from hublet.web.auth import PageVisit
from hublet.web.pages import (
    REFUSALS,
    go_to,
    organization_frame,
    organization_settings_path,
    render,
    status_of,
)

SETTINGS = "/organizations/{organization}/settings"
ROLES = tuple(Role)

# A name that nobody has, or a picture that is too large, is told beside what was typed.
_REFUSALS = (*REFUSALS, NotFound, TooLarge)

Change = Callable[[Connection, Organization, Actor], Awaitable[None]]


class Show(Protocol):
    """Renders a page of settings; after a refused form with what was typed, and the refusal."""

    async def __call__(
        self,
        visit: PageVisit,
        name: str,
        *,
        typed: Mapping[str, str] | None = None,
        problem: HubError | None = None,
    ) -> Response: ...


def purpose_of(organization: Organization) -> str:
    return f"organization {organization.id}"


async def get_administered(conn: Reader, visit: PageVisit, name: str) -> Organization:
    """Return the organization to one of its administrators; others get the service's refusal."""
    return await organizations.get_administered(conn, name, user_id=visit.person.user_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingsHead:
    """Head of a page of an organization's settings."""

    organization: Organization
    # The part of the address that names the page, such as `members`.
    page: str
    frame: Frame | None


async def open_settings(conn: Reader, visit: PageVisit, name: str, page: str) -> SettingsHead:
    """Return the head of a page; who is no administrator gets the service's refusal."""
    organization = await get_administered(conn, visit, name)
    frame = await organization_frame(visit, organization.name, page, conn)
    return SettingsHead(organization=organization, page=page, frame=frame)


async def render_settings(
    visit: PageVisit,
    head: SettingsHead,
    *,
    template: str = "",
    problem: HubError | None = None,
    typed: Mapping[str, str] | None = None,
    **values: Any,
) -> Response:
    """Render a page from a template, by default that of the same name."""
    organization = head.organization
    return await render(
        visit,
        f"organizations/{template or head.page.replace('-', '_')}.html",
        frame=head.frame,
        status=200 if problem is None else status_of(problem),
        organization=organization,
        path=organization_settings_path(organization.name, head.page),
        form_token=visit.form_token(purpose_of(organization)),
        roles=ROLES,
        typed=typed or {},
        problem=None if problem is None else problem.message,
        **values,
    )


async def apply_form(  # noqa: PLR0913 - what a form changes, and where it leads
    visit: PageVisit,
    name: str,
    form: Mapping[str, str],
    change: Change,
    *,
    show: Show,
    page: str,
    toast: str,
) -> Response:
    """Make a change as an administrator and go on to `page`; a refusal shows the form again."""
    try:
        async with visit.database.transaction() as conn:
            organization = await get_administered(conn, visit, name)
            visit.check(form, purpose_of(organization))
            await change(conn, organization, actor_of(visit.request, visit.person))
    except (ForeignForm, StaleForm):
        # Nobody of this session typed it.
        raise
    except _REFUSALS as error:
        return await show(visit, name, typed=dict(form), problem=error)
    return go_to(visit, organization_settings_path(organization.name, page), toast=toast)


def role_in(form: Mapping[str, str]) -> Role:
    """Return the role that was chosen in a form."""
    value = form.get("role", "")
    if value not in set(Role):
        raise InvalidRequest(f"role must be one of {', '.join(Role)}.")
    return Role(value)
