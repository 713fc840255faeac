"""HTTP for the caller's own profile and password."""

from pydantic import MISSING

from hublet.accounts import service as accounts
from hublet.accounts.settings import service
from hublet.accounts.settings.schemas import ChangePassword, Profile, UpdateProfile
from hublet.core.http import Conn, ReadConn, Router
from hublet.core.schema import Done
from hublet.tokens.auth import AccountOwner

router = Router(prefix="/api/settings", tags=["users"])


@router.get("/profile")
async def get_profile(conn: ReadConn, caller: AccountOwner) -> Profile:
    """Show the caller's own profile."""
    user = await accounts.get_user_by_id(conn, caller.user_id)
    return Profile.of(user, base_url=conn.hub.settings.base_url)


@router.patch("/profile")
async def update_profile(conn: Conn, caller: AccountOwner, body: UpdateProfile) -> Profile:
    """Change the caller's own profile; a field that is left out keeps its value."""
    user = await accounts.get_user_by_id(conn, caller.user_id)
    if body.fullname is not MISSING:
        user = await accounts.set_fullname(conn, user, body.fullname)
    return Profile.of(user, base_url=conn.hub.settings.base_url)


@router.put("/password")
async def change_password(conn: Conn, caller: AccountOwner, body: ChangePassword) -> Done:
    """Set another password; the present one is needed as well."""
    user = await accounts.get_user_by_id(conn, caller.user_id)
    await service.change_password(conn, user, current=body.currentPassword, new=body.newPassword)
    return Done()
