"""Pages on which a person manages the apps that they registered, with the form of an app."""

from collections.abc import Iterable
from typing import Annotated, Any, Self, TypeVar

from fastapi import Depends, Request
from pydantic import BaseModel, ValidationError
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from hublet.accounts.records import Actor, Role
from hublet.accounts.users import store as users
from hublet.core.database import Reader
from hublet.core.dataclasses import dataclass
from hublet.core.errors import HubError
from hublet.core.http import Conn, ReadConn
from hublet.core.http.validation import describe_problems
from hublet.core.pages import PageRouter, Templates, page_response
from hublet.login.auth import CurrentVisitor, FormFields, SignedIn
from hublet.login.forms import FIELD, check_form, form_token, frame_of
from hublet.login.records import Session
from hublet.oauth.apps import client_secrets, logos, service
from hublet.oauth.apps.logos import MAX_LOGO_BYTES
from hublet.oauth.apps.records import MAX_NAME
from hublet.oauth.apps.schemas import CreateApp, UpdateApp
from hublet.oauth.errors import ApplicationFormRefused, InvalidLogo
from hublet.oauth.records import OAuthApp
from hublet.tokens.records import Scope

PAGE = "/settings/applications"

router = PageRouter(prefix=PAGE)
_templates = Templates("hublet.oauth")

_Shape = TypeVar("_Shape", bound=BaseModel)
# Selected in the form of a new app.
_DEFAULT_SCOPES = frozenset({Scope.openid, Scope.profile})


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationForm:
    """Fields of the form, as the page shows them and as the API's own shapes."""

    name: str = ""
    # One in each line.
    redirect_uris: str = ""
    client_uri: str = ""
    scopes: frozenset[str] = _DEFAULT_SCOPES
    dynamic_query: bool = False
    # The name of the organization that a new app is bound to; empty for none.
    organization: str = ""

    @classmethod
    def of_app(cls, app: OAuthApp) -> Self:
        return cls(
            name=app.name,
            redirect_uris="\n".join(app.redirect_uris),
            client_uri=app.client_uri or "",
            scopes=frozenset(app.scopes),
            dynamic_query=app.dynamic_query,
        )

    @classmethod
    def of_fields(cls, fields: Iterable[tuple[str, str]]) -> Self:
        pairs = list(fields)
        values = dict(pairs)
        return cls(
            name=values.get("name", ""),
            redirect_uris=values.get("redirect_uris", ""),
            client_uri=values.get("client_uri", "").strip(),
            scopes=frozenset(value for name, value in pairs if name == "scope"),
            dynamic_query="dynamic_query" in values,
            organization=values.get("organization", ""),
        )

    def to_create(self) -> CreateApp:
        optional = {"clientUri": self.client_uri, "organization": self.organization}
        filled = {name: value for name, value in optional.items() if value}
        return _validate(CreateApp, self._shared() | filled)

    def to_update(self) -> UpdateApp:
        return _validate(UpdateApp, self._shared() | {"clientUri": self.client_uri or None})

    def _shared(self) -> dict[str, Any]:
        lines = (line.strip() for line in self.redirect_uris.splitlines())
        return {
            "name": self.name,
            "redirectUris": [line for line in lines if line],
            "scopes": sorted(self.scopes),
            "dynamicQuery": self.dynamic_query,
        }


def _validate(shape: type[_Shape], values: dict[str, Any]) -> _Shape:
    try:
        return shape.model_validate(values)
    except ValidationError as error:
        problems = [{**each, "loc": ("body", *each["loc"])} for each in error.errors()]
        raise ApplicationFormRefused(describe_problems(problems)) from None


async def _checked_form(
    request: Request, session: SignedIn, form: FormFields
) -> list[tuple[str, str]]:
    check_form(request, form, session, PAGE)
    return form.multi_items()


# The fields of a form that belongs to this session.
OwnForm = Annotated[list[tuple[str, str]], Depends(_checked_form)]


async def _uploaded_logo(request: Request, session: SignedIn) -> bytes:
    try:
        # The block closes the temporary file of the upload.
        async with request.form(max_files=1, max_fields=10) as form:
            check_form(request, {FIELD: str(form.get(FIELD, ""))}, session, PAGE)
            file = form.get("logo")
            if not isinstance(file, UploadFile):
                raise InvalidLogo
            return await file.read(MAX_LOGO_BYTES + 1)
    except HTTPException:
        raise InvalidLogo from None


UploadedLogo = Annotated[bytes, Depends(_uploaded_logo)]


async def _actor(session: SignedIn, visitor: CurrentVisitor) -> Actor:
    return Actor(id=session.user_id, name=session.user_name, address=visitor.address)


CurrentActor = Annotated[Actor, Depends(_actor)]


@router.get("")
async def show_applications(conn: ReadConn, session: SignedIn) -> Response:
    """List the apps that the person manages."""
    apps = await service.list_of(conn, user_id=session.user_id)
    return page_response(_page(conn, session, "applications.html", apps=apps))


@router.get("/new")
async def show_new_application(
    conn: ReadConn, session: SignedIn, organization: str = ""
) -> Response:
    """Ask what a new app is; the address may name the organization that it is bound to."""
    return await _form_page(conn, session, ApplicationForm(organization=organization))


@router.post("")
async def create_application(
    conn: Conn, session: SignedIn, actor: CurrentActor, fields: OwnForm
) -> Response:
    """Register an app."""
    draft = ApplicationForm.of_fields(fields)
    try:
        created = await service.create(conn, actor, draft.to_create())
    except HubError as error:
        return await _form_page(conn, session, draft, error=error)
    return _redirect(f"{PAGE}/{created.app.client_id}")


@router.get("/{client_id}")
async def show_application(conn: ReadConn, session: SignedIn, client_id: str) -> Response:
    """Show an app with its secrets."""
    return await _app_page(conn, session, client_id)


@router.post("/{client_id}")
async def update_application(
    conn: Conn, session: SignedIn, actor: CurrentActor, fields: OwnForm, client_id: str
) -> Response:
    """Change an app."""
    draft = ApplicationForm.of_fields(fields)
    try:
        await service.update(conn, actor, client_id, draft.to_update())
    except HubError as error:
        return await _app_page(conn, session, client_id, draft=draft, error=error)
    return _redirect(f"{PAGE}/{client_id}")


@router.post("/{client_id}/secrets")
async def create_application_secret(
    conn: Conn, session: SignedIn, actor: CurrentActor, _fields: OwnForm, client_id: str
) -> Response:
    """Give an app a secret, and show its value this once; it is in no address and not stored."""
    _, value = await client_secrets.create(conn, actor, client_id)
    return await _app_page(conn, session, client_id, new_secret=value)


@router.post("/{client_id}/secrets/{secret_id}/delete")
async def delete_application_secret(
    conn: Conn, actor: CurrentActor, _fields: OwnForm, client_id: str, secret_id: str
) -> Response:
    """Delete a secret at once."""
    await client_secrets.delete(conn, actor, client_id, secret_id)
    return _redirect(f"{PAGE}/{client_id}")


@router.post("/{client_id}/logo")
async def set_application_logo(
    content: UploadedLogo, conn: Conn, actor: CurrentActor, client_id: str
) -> Response:
    """Upload a logo."""
    await logos.set_logo(conn, actor, client_id, content)
    return _redirect(f"{PAGE}/{client_id}")


@router.post("/{client_id}/logo/delete")
async def remove_application_logo(
    conn: Conn, actor: CurrentActor, _fields: OwnForm, client_id: str
) -> Response:
    """Take the logo away."""
    await logos.remove_logo(conn, actor, client_id)
    return _redirect(f"{PAGE}/{client_id}")


@router.post("/{client_id}/delete")
async def delete_application(
    conn: Conn, actor: CurrentActor, _fields: OwnForm, client_id: str
) -> Response:
    """Delete an app, with all access that people gave it."""
    await service.delete(conn, actor, client_id)
    return _redirect(PAGE)


async def _form_page(
    conn: Reader, session: Session, draft: ApplicationForm, *, error: HubError | None = None
) -> Response:
    memberships = await users.memberships_of(conn, user_id=session.user_id)
    administered = [each.organization for each in memberships if each.role is Role.admin]
    body = _page(
        conn, session, "new_application.html", draft=draft, error=error, organizations=administered
    )
    return page_response(body, status=error.status if error else 200)


async def _app_page(
    conn: Reader,
    session: Session,
    client_id: str,
    *,
    draft: ApplicationForm | None = None,
    error: HubError | None = None,
    new_secret: str | None = None,
) -> Response:
    managed = await service.get(conn, client_id, user_id=session.user_id)
    body = _page(
        conn,
        session,
        "application.html",
        managed=managed,
        draft=draft or ApplicationForm.of_app(managed.app),
        error=error,
        new_secret=new_secret,
    )
    return page_response(body, status=error.status if error else 200)


def _page(conn: Reader, session: Session, template: str, **values: Any) -> bytes:
    return _templates.render(
        template,
        frame=frame_of(conn.hub, session, current=PAGE),
        form_token=form_token(conn.hub, session, PAGE),
        scopes=tuple(Scope),
        longest_name=MAX_NAME,
        **values,
    )


def _redirect(path: str) -> Response:
    return RedirectResponse(path, status_code=303)
