"""Who looks at a page and what a form sends, as types that a route names."""

import re
from collections.abc import Mapping
from typing import Annotated

from fastapi import Depends, Query, Request
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

from hublet.accounts.avatars import MAX_AVATAR_BYTES
from hublet.core.config import Settings
from hublet.core.database import Database
from hublet.core.dataclasses import dataclass
from hublet.core.hub import Hub
from hublet.login.auth import JustSignedIn, MaybeSession, SignedIn, return_path
from hublet.login.errors import LoginNeeded, UnreadableForm
from hublet.login.forms import FIELD, check_form, form_token
from hublet.login.records import Session
from hublet.login.sessions import caller_of
from hublet.tokens.auth import check_administrator, needs_token, reaching
from hublet.tokens.records import Caller

__all__ = [
    "FreshVisit",
    "OperatorVisit",
    "PageVisit",
    "SignedInVisit",
    "Since",
    "UploadedPicture",
    "Visit",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageVisit:
    """One request for a page: the browser, and the person whose session it has."""

    request: Request
    session: Session | None
    caller: Caller | None

    @property
    def database(self) -> Database:
        database: Database = self.request.app.state.database
        return database

    @property
    def settings(self) -> Settings:
        settings: Settings = self.request.app.state.settings
        return settings

    @property
    def hub(self) -> Hub:
        return self.database.hub

    @property
    def person(self) -> Caller:
        """The caller of a page that only people who are signed in can open."""
        assert self.caller is not None  # noqa: S101 - by the type of the visit
        return self.caller

    def form_token(self, purpose: str) -> str:
        """Return the token of a form; who is not signed in has no form to send."""
        return "" if self.session is None else form_token(self.hub, self.session, purpose)

    def check(self, form: Mapping[str, str], purpose: str) -> None:
        """Refuse a form that did not come from this person's own page."""
        assert self.session is not None  # noqa: S101 - by the type of the visit
        check_form(self.request, form, self.session, purpose)


# Where people get an account, or back into theirs.
_OPEN_TO_ALL = re.compile(r"/(join|forgot-password|invitations|reset-password)(/.*)?")


async def visit_of(request: Request, session: MaybeSession) -> PageVisit:
    is_open = _OPEN_TO_ALL.fullmatch(request.url.path) is not None
    if session is None and not is_open and await needs_token(request):
        raise LoginNeeded(return_path(request))
    caller = None if session is None else reaching(request, caller_of(session))
    return PageVisit(request=request, session=session, caller=caller)


async def signed_in_visit(request: Request, session: SignedIn) -> PageVisit:
    return PageVisit(request=request, session=session, caller=reaching(request, caller_of(session)))


async def fresh_visit(request: Request, session: JustSignedIn) -> PageVisit:
    return PageVisit(request=request, session=session, caller=reaching(request, caller_of(session)))


async def operator_visit(visit: Annotated[PageVisit, Depends(signed_in_visit)]) -> PageVisit:
    check_administrator(visit.person)
    return visit


# Anybody; a browser without a session has no caller.
Visit = Annotated[PageVisit, Depends(visit_of)]
# Who has no session is sent to the login, and comes back.
SignedInVisit = Annotated[PageVisit, Depends(signed_in_visit)]
# Who signed in long ago has to do so again: for deleting, secrets and roles.
FreshVisit = Annotated[PageVisit, Depends(fresh_visit)]
# Administrators of the hub; others are refused.
OperatorVisit = Annotated[PageVisit, Depends(operator_visit)]

# The version of what a page shows, in the address of its stream (`web.live`).
Since = Annotated[int, Query(ge=0, lt=2**63)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureForm:
    # The field with the form's token.
    fields: Mapping[str, str]
    # Empty when no file was chosen.
    content: bytes


async def read_picture(request: Request) -> PictureForm:
    """Read a form with one file, of which no more than a picture of an account may have."""
    try:
        # The block closes the temporary file of the upload.
        async with request.form(max_files=1, max_fields=100) as form:
            file = form.get("picture")
            content = await file.read(MAX_AVATAR_BYTES + 1) if isinstance(file, UploadFile) else b""
            return PictureForm(fields={FIELD: str(form.get(FIELD, ""))}, content=content)
    except HTTPException:
        raise UnreadableForm from None


UploadedPicture = Annotated[PictureForm, Depends(read_picture)]
