"""HTTP for a directory as a whole: what it can do, what it holds, and what it lacks."""

from fastapi import Request
from starlette.responses import Response

from hublet.core.http import Db, Router
from hublet.scim.auth import INVITED, InvitedUsers
from hublet.scim.http.answers import NAMED, SEARCHED, answer, answers
from hublet.scim.schemas import (
    SEARCH_BODY,
    ScimList,
    ScimResourceType,
    ScimResourceTypeList,
    ScimSchema,
    ScimSchemaList,
    ScimServiceProviderConfig,
)

router = Router(tags=["scim"])


@router.get(f"{INVITED}/", dependencies=SEARCHED, **answers(ScimList, 501))
async def list_scim_directory(request: Request, database: Db, directory: InvitedUsers) -> Response:
    """List users and groups of an organization together, the users first."""
    return await answer(request, database, directory)


@router.post(f"{INVITED}/.search", openapi_extra=SEARCH_BODY, **answers(ScimList, 413, 415, 501))
async def search_scim_directory(
    request: Request, database: Db, directory: InvitedUsers
) -> Response:
    """List users and groups of an organization together, with the parameters in the body."""
    return await answer(request, database, directory)


@router.get(f"{INVITED}/ServiceProviderConfig", **answers(ScimServiceProviderConfig))
async def get_scim_service_provider_config(
    request: Request, database: Db, directory: InvitedUsers
) -> Response:
    """Tell what an organization's directory can do."""
    return await answer(request, database, directory)


@router.get(f"{INVITED}/ResourceTypes", **answers(ScimResourceTypeList))
async def list_scim_resource_types(
    request: Request, database: Db, directory: InvitedUsers
) -> Response:
    """List what an organization's directory holds: users and groups."""
    return await answer(request, database, directory)


@router.get(f"{INVITED}/ResourceTypes/{{scim_id}}", dependencies=NAMED, **answers(ScimResourceType))
async def get_scim_resource_type(
    request: Request, database: Db, directory: InvitedUsers
) -> Response:
    """Show one of the two things that a directory holds."""
    return await answer(request, database, directory)


@router.get(f"{INVITED}/Schemas", **answers(ScimSchemaList))
async def list_scim_schemas(request: Request, database: Db, directory: InvitedUsers) -> Response:
    """List the attributes of users and groups."""
    return await answer(request, database, directory)


@router.get(f"{INVITED}/Schemas/{{scim_id}}", dependencies=NAMED, **answers(ScimSchema))
async def get_scim_schema(request: Request, database: Db, directory: InvitedUsers) -> Response:
    """Show the attributes of users or of groups."""
    return await answer(request, database, directory)


@router.api_route(
    f"{INVITED}/{{rest:path}}",
    methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
    include_in_schema=False,
)
async def refuse_other_scim_address(
    request: Request, database: Db, directory: InvitedUsers
) -> Response:
    """Say in the form of the protocol that there is nothing here, or not this."""
    return await answer(request, database, directory)
