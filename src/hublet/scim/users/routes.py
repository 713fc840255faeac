"""HTTP for the users of a directory."""

from fastapi import Request
from starlette.responses import Response

from hublet.core.http import Db, Router
from hublet.scim.auth import INVITED, InvitedUsers
from hublet.scim.http.answers import (
    DELETES,
    NAMED,
    PROJECTED,
    SEARCHED,
    answer,
    answers,
    creates,
    reads,
)
from hublet.scim.schemas import PATCH_BODY, SEARCH_BODY, USER_BODY, ScimUser, ScimUserList

router = Router(tags=["scim"])


@router.get(f"{INVITED}/Users", dependencies=SEARCHED, **answers(ScimUserList))
async def list_scim_users(request: Request, database: Db, directory: InvitedUsers) -> Response:
    """List the users of an organization's directory, or those that a filter lets through."""
    return await answer(request, database, directory)


@router.post(f"{INVITED}/Users", openapi_extra=USER_BODY, **creates(ScimUser))
async def create_scim_user(request: Request, database: Db, directory: InvitedUsers) -> Response:
    """Provision a user in an organization's directory.

    Whoever has an account with one of the addresses becomes a member at once. Without such an
    account the user waits, and joins when there is one.
    """
    return await answer(request, database, directory)


@router.post(
    f"{INVITED}/Users/.search", openapi_extra=SEARCH_BODY, **answers(ScimUserList, 413, 415)
)
async def search_scim_users(request: Request, database: Db, directory: InvitedUsers) -> Response:
    """List users of an organization's directory, with the parameters in the body."""
    return await answer(request, database, directory)


@router.get(f"{INVITED}/Users/{{scim_id}}", dependencies=PROJECTED, **reads(ScimUser))
async def get_scim_user(request: Request, database: Db, directory: InvitedUsers) -> Response:
    """Show a user of an organization's directory."""
    return await answer(request, database, directory)


@router.put(
    f"{INVITED}/Users/{{scim_id}}",
    dependencies=PROJECTED,
    openapi_extra=USER_BODY,
    **answers(ScimUser, 409, 412, 413, 415),
)
async def replace_scim_user(request: Request, database: Db, directory: InvitedUsers) -> Response:
    """Replace the attributes of a user; without `active` the user stays what it is."""
    return await answer(request, database, directory)


@router.patch(
    f"{INVITED}/Users/{{scim_id}}",
    dependencies=PROJECTED,
    openapi_extra=PATCH_BODY,
    **answers(ScimUser, 409, 412, 413, 415),
)
async def update_scim_user(request: Request, database: Db, directory: InvitedUsers) -> Response:
    """Change attributes of a user.

    With `active: false` the user is no member any more, and loses what was given for the
    organization at once; `true` brings the membership back with its roles, and no old token.
    """
    return await answer(request, database, directory)


@router.delete(f"{INVITED}/Users/{{scim_id}}", dependencies=NAMED, **DELETES)
async def delete_scim_user(request: Request, database: Db, directory: InvitedUsers) -> Response:
    """Remove a user from an organization and its directory."""
    return await answer(request, database, directory)
