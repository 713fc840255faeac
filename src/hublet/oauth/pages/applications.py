"""Pages on which a person manages the apps they registered."""

from typing import Annotated, Any

from fastapi import Depends, Request
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from hublet.accounts.records import Actor, Role
from hublet.accounts.users import store as users
from hublet.core.database import Reader
from hublet.core.errors import HubError
from hublet.core.http import Conn, ReadConn
from hublet.core.pages import PageRouter, Templates, page_response
from hublet.login.auth import CurrentVisitor, FormFields, SignedIn
from hublet.login.forms import FIELD, check_form, form_token, frame_of
from hublet.login.records import Session
from hublet.oauth.apps import client_secrets as secrets
from hublet.oauth.apps import logos, service
from hublet.oauth.apps.records import MAX_LOGO_BYTES, MAX_NAME
from hublet.oauth.errors import InvalidLogo
from hublet.oauth.pages.application_form import ApplicationForm
from hublet.tokens.records import Scope

PAGE = "/settings/applications"

router = PageRouter(prefix=PAGE)
_templates = Templates("hublet.oauth")


async def _checked_form(
    request: Request, session: SignedIn, form: FormFields
) -> list[tuple[str, str]]:
    check_form(request, form, session, PAGE)
    return form.multi_items()


# The fields of a form that this session was given.
OwnForm = Annotated[list[tuple[str, str]], Depends(_checked_form)]


async def _uploaded_logo(request: Request, session: SignedIn) -> bytes:
    try:
        # Leaving it closes the file that the upload waits in.
        async with request.form(max_files=1, max_fields=10) as form:
            check_form(request, {FIELD: str(form.get(FIELD, ""))}, session, PAGE)
            file = form.get("logo")
            if not isinstance(file, UploadFile):
                raise InvalidLogo
            return await file.read(MAX_LOGO_BYTES + 1)
    except HTTPException:
        raise InvalidLogo from None


UploadedLogo = Annotated[bytes, Depends(_uploaded_logo)]


async def _acting(session: SignedIn, visitor: CurrentVisitor) -> Actor:
    return Actor(id=session.user_id, name=session.user_name, address=visitor.address)


Acting = Annotated[Actor, Depends(_acting)]


@router.get("")
async def show_applications(conn: ReadConn, session: SignedIn) -> Response:
    """List the apps that the person manages."""
    found = await service.list_of(conn, user_id=session.user_id)
    return page_response(_page(conn, session, "applications.html", apps=found))


@router.get("/new")
async def show_new_application(conn: ReadConn, session: SignedIn) -> Response:
    """Ask what a new app is."""
    return await _form_page(conn, session, ApplicationForm())


@router.post("")
async def create_application(
    conn: Conn, session: SignedIn, acting: Acting, fields: OwnForm
) -> Response:
    """Register an app."""
    draft = ApplicationForm.of_fields(fields)
    try:
        created = await service.create(conn, acting, draft.to_create())
    except HubError as error:
        return await _form_page(conn, session, draft, error=error)
    return _redirect(f"{PAGE}/{created.app.client_id}")


@router.get("/{client_id}")
async def show_application(conn: ReadConn, session: SignedIn, client_id: str) -> Response:
    """Show an app with its secrets."""
    return await _app_page(conn, session, client_id)


@router.post("/{client_id}")
async def update_application(
    conn: Conn, session: SignedIn, acting: Acting, fields: OwnForm, client_id: str
) -> Response:
    """Change an app."""
    draft = ApplicationForm.of_fields(fields)
    try:
        await service.update(conn, acting, client_id, draft.to_update())
    except HubError as error:
        return await _app_page(conn, session, client_id, draft=draft, error=error)
    return _redirect(f"{PAGE}/{client_id}")


@router.post("/{client_id}/secrets")
async def create_application_secret(
    conn: Conn, session: SignedIn, acting: Acting, _fields: OwnForm, client_id: str
) -> Response:
    """Give an app a secret, and show it this once: it stands in no address and is not kept."""
    _, value = await secrets.create(conn, acting, client_id)
    return await _app_page(conn, session, client_id, new_secret=value)


@router.post("/{client_id}/secrets/{secret_id}/delete")
async def delete_application_secret(
    conn: Conn, acting: Acting, _fields: OwnForm, client_id: str, secret_id: str
) -> Response:
    """Delete a secret at once."""
    await secrets.delete(conn, acting, client_id, secret_id)
    return _redirect(f"{PAGE}/{client_id}")


@router.post("/{client_id}/logo")
async def set_application_logo(
    content: UploadedLogo, conn: Conn, acting: Acting, client_id: str
) -> Response:
    """Upload a logo."""
    await logos.set_logo(conn, acting, client_id, content)
    return _redirect(f"{PAGE}/{client_id}")


@router.post("/{client_id}/logo/delete")
async def remove_application_logo(
    conn: Conn, acting: Acting, _fields: OwnForm, client_id: str
) -> Response:
    """Take the logo away."""
    await logos.remove_logo(conn, acting, client_id)
    return _redirect(f"{PAGE}/{client_id}")


@router.post("/{client_id}/delete")
async def delete_application(
    conn: Conn, acting: Acting, _fields: OwnForm, client_id: str
) -> Response:
    """Delete an app, with all access that people gave it."""
    await service.delete(conn, acting, client_id)
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
