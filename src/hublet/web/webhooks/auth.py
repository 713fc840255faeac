"""Whose webhooks a page is about: the viewer's own, or those of an organization that they administer."""

from typing import Annotated, Any

from fastapi import Depends, Request

from hublet.core.database import Reader
from hublet.core.dataclasses import dataclass
from hublet.core.pages import Frame, PageRouter
from hublet.login.auth import FormFields
from hublet.web.auth import FreshVisit, PageVisit, SignedInVisit
from hublet.web.pages import frame_for, organization_frame
from hublet.web.webhook_forms import purpose_of
from hublet.webhooks.auth import access_to_organization, access_to_own
from hublet.webhooks.records import WebhookAccess

OWN = "/settings/webhooks"
ORGANIZATION = "/organizations/{name}/settings/webhooks"


class WebhookPageRouter(PageRouter):
    """Routes of pages that exist twice: for a person's webhooks, and for an organization's."""

    def add_api_route(self, path: str, endpoint: Any, **options: Any) -> None:
        for prefix in (OWN, ORGANIZATION):
            super().add_api_route(f"{prefix}{path}", endpoint, **options)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerVisit:
    """One request for a page of an owner's webhooks."""

    visit: PageVisit
    # As the address has it; None for the viewer's own webhooks.
    organization: str | None

    @property
    def path(self) -> str:
        """The address of the list."""
        return OWN if self.organization is None else ORGANIZATION.format(name=self.organization)

    @property
    def owner_name(self) -> str:
        return self.organization or self.visit.person.user_name

    @property
    def form_token(self) -> str:
        return self.visit.form_token(purpose_of(self.owner_name))

    def check(self, form: FormFields) -> None:
        """Refuse a form that did not come from one of these pages."""
        self.visit.check(form, purpose_of(self.owner_name))

    async def get_access(self, conn: Reader) -> WebhookAccess:
        request, person = self.visit.request, self.visit.person
        if self.organization is None:
            return access_to_own(request, person)
        return await access_to_organization(request, conn, person, self.organization)

    async def get_frame(self, conn: Reader) -> Frame | None:
        if self.organization is None:
            return await frame_for(self.visit, conn, current=OWN)
        return await organization_frame(self.visit, self.organization, "webhooks", conn)


async def _owner_visit(request: Request, visit: SignedInVisit) -> OwnerVisit:
    return OwnerVisit(visit=visit, organization=request.path_params.get("name"))


async def _fresh_owner_visit(request: Request, visit: FreshVisit) -> OwnerVisit:
    return OwnerVisit(visit=visit, organization=request.path_params.get("name"))


WebhookVisit = Annotated[OwnerVisit, Depends(_owner_visit)]
# For what leads a secret elsewhere, shows one, or deletes: a login of the last minutes.
FreshWebhookVisit = Annotated[OwnerVisit, Depends(_fresh_owner_visit)]
