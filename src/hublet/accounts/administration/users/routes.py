"""HTTP for users as a hub administrator manages them."""

from pydantic import MISSING

from hublet.accounts import service as accounts
from hublet.accounts import store
from hublet.accounts.administration.users import service
from hublet.accounts.administration.users.schemas import (
    AddUser,
    AdministeredUser,
    SetPassword,
    UpdateUser,
)
from hublet.core.http import Conn, ReadConn, Router
from hublet.core.http.paging import LINKED, AskedPage
from hublet.core.schema import Done
from hublet.tokens.auth import Administrator

router = Router(prefix="/api/admin/users", tags=["administration"])


@router.get("", responses=LINKED)
async def list_users(
    conn: ReadConn, _caller: Administrator, page: AskedPage
) -> list[AdministeredUser]:
    """List all users of the hub, oldest first, page by page."""
    found = await store.list_all(conn, after=page.after, limit=page.reach)
    return [AdministeredUser.of(u) for u in page.cut(found, position=lambda user: user.id)]


@router.post("", responses={409: {"description": "The name or the e-mail address is taken."}})
async def add_user(conn: Conn, _caller: Administrator, body: AddUser) -> AdministeredUser:
    """Create an account; its e-mail address counts as verified, and a password is optional."""
    user = await accounts.create_user(
        conn,
        body.name,
        fullname=None if body.fullname is MISSING else body.fullname,
        email=None if body.email is MISSING else body.email,
        password=None if body.password is MISSING else body.password,
        is_admin=body.isAdmin,
    )
    return AdministeredUser.of(user)


@router.patch(
    "/{name}",
    responses={409: {"description": "The hub would be left without an administrator."}},
)
async def update_user(
    conn: Conn, _caller: Administrator, name: str, body: UpdateUser
) -> AdministeredUser:
    """Disable or enable an account, make its owner a hub administrator or none.

    The tokens of a disabled user fail in every process within a second.
    """
    user = await service.update(
        conn,
        await accounts.get_user(conn, name),
        disabled=None if body.disabled is MISSING else body.disabled,
        is_admin=None if body.isAdmin is MISSING else body.isAdmin,
    )
    return AdministeredUser.of(user)


@router.put("/{name}/password")
async def set_user_password(
    conn: Conn, _caller: Administrator, name: str, body: SetPassword
) -> Done:
    """Set a user's password."""
    user = await accounts.get_user(conn, name)
    await accounts.set_password(conn, user, body.password)
    return Done()
