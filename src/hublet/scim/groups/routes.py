"""HTTP for the groups of a directory."""

from fastapi import Request
from starlette.responses import Response

from hublet.core.http import Db, Router
from hublet.scim.auth import INVITED, InvitedUsers
from hublet.scim.http.answers import (
    DELETES,
    NAMED,
    PROJECTED,
    SEARCHED,
    TAGGED,
    answer,
    answers,
    creates,
    reads,
)
from hublet.scim.schemas import GROUP_BODY, PATCH_BODY, SEARCH_BODY, ScimGroup, ScimGroupList

router = Router(tags=["scim"])


@router.get(f"{INVITED}/Groups", dependencies=SEARCHED, **answers(ScimGroupList))
async def list_scim_groups(request: Request, database: Db, directory: InvitedUsers) -> Response:
    """List the groups of an organization's directory, or those that a filter lets through."""
    return await answer(request, database, directory)


@router.post(f"{INVITED}/Groups", openapi_extra=GROUP_BODY, **creates(ScimGroup))
async def create_scim_group(request: Request, database: Db, directory: InvitedUsers) -> Response:
    """Create a group; a name such as `acme:write` or `acme:research:admin` gives a role."""
    return await answer(request, database, directory)


@router.post(
    f"{INVITED}/Groups/.search", openapi_extra=SEARCH_BODY, **answers(ScimGroupList, 413, 415)
)
async def search_scim_groups(request: Request, database: Db, directory: InvitedUsers) -> Response:
    """List groups of an organization's directory, with the parameters in the body."""
    return await answer(request, database, directory)


@router.get(f"{INVITED}/Groups/{{scim_id}}", dependencies=PROJECTED, **reads(ScimGroup))
async def get_scim_group(request: Request, database: Db, directory: InvitedUsers) -> Response:
    """Show a group of an organization's directory."""
    return await answer(request, database, directory)


@router.put(
    f"{INVITED}/Groups/{{scim_id}}",
    dependencies=PROJECTED,
    openapi_extra=GROUP_BODY,
    **answers(ScimGroup, 409, 412, 413, 415),
)
async def replace_scim_group(request: Request, database: Db, directory: InvitedUsers) -> Response:
    """Replace a group and its list of members."""
    return await answer(request, database, directory)


_CHANGED = answers(ScimGroup, 409, 412, 413, 415)
_CHANGED["responses"][204] = {"description": "It is changed.", "headers": TAGGED}


@router.patch(
    f"{INVITED}/Groups/{{scim_id}}", dependencies=PROJECTED, openapi_extra=PATCH_BODY, **_CHANGED
)
async def update_scim_group(request: Request, database: Db, directory: InvitedUsers) -> Response:
    """Change a group: add, remove or replace members, or give it another name.

    The group is shown only where `attributes` or `excludedAttributes` say how much of it.
    """
    return await answer(request, database, directory)


@router.delete(f"{INVITED}/Groups/{{scim_id}}", dependencies=NAMED, **DELETES)
async def delete_scim_group(request: Request, database: Db, directory: InvitedUsers) -> Response:
    """Delete a group; its members keep the roles that other groups give them."""
    return await answer(request, database, directory)
