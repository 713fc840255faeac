"""HTTP routes of SCIM, for both directories of an organization."""

from typing import Annotated, Any, Literal

from fastapi import Depends, Path, Query, Request
from starlette.responses import JSONResponse, Response

from hublet.core.database import Database
from hublet.core.http import Db, Router
from hublet.core.http.error_responses import set_error_body
from hublet.core.schema import Schema
from hublet.scim.auth import INVITED, MANAGED, InvitedUsers, for_managed_users
from hublet.scim.errors import MEDIA_TYPE, error_body
from hublet.scim.records import Directory, DirectoryRequest
from hublet.scim.schemas import (
    GROUP_BODY,
    PATCH_BODY,
    SEARCH_BODY,
    USER_BODY,
    ScimGroup,
    ScimGroupList,
    ScimList,
    ScimResourceType,
    ScimResourceTypeList,
    ScimSchema,
    ScimSchemaList,
    ScimServiceProviderConfig,
    ScimUser,
    ScimUserList,
    error_responses,
)

# Segments of a path before those of the resource; the first is empty.
_SEGMENTS_BEFORE_RESOURCE = 6


class ScimJSONResponse(JSONResponse):
    media_type = MEDIA_TYPE


async def _projection_parameters(
    attributes: Annotated[str | None, Query(description="Only these attributes.")] = None,
    excluded: Annotated[
        str | None, Query(alias="excludedAttributes", description="All attributes but these.")
    ] = None,
) -> None:
    """Describe the parameters, which the SCIM library reads."""


async def _search_parameters(
    filter_: Annotated[
        str | None, Query(alias="filter", description='As in `userName eq "ada"`.')
    ] = None,
    by: Annotated[str | None, Query(alias="sortBy", description="An attribute.")] = None,
    order: Annotated[Literal["ascending", "descending"] | None, Query(alias="sortOrder")] = None,
    start: Annotated[
        int | None, Query(alias="startIndex", description="The first is number 1.")
    ] = None,
    count: Annotated[int | None, Query(description="At most 200.")] = None,
) -> None:
    """Describe the parameters, which the SCIM library reads."""


async def _id_parameter(
    scim_id: Annotated[str, Path(description="The id of what is asked for.")],
) -> None:
    """Describe the parameter, which the SCIM library reads."""


_ID = [Depends(_id_parameter)]
_PROJECTION = [Depends(_id_parameter), Depends(_projection_parameters)]
_SEARCH = [Depends(_projection_parameters), Depends(_search_parameters)]
_ETAG = {"ETag": {"description": "The version of it.", "schema": {"type": "string"}}}
_CREATED_HEADERS = _ETAG | {
    "Location": {"description": "Its address.", "schema": {"type": "string"}}
}


def _response_options(model: type[Schema], *statuses: int) -> dict[str, Any]:
    """Return the options of a route that describe its responses and errors."""
    responses = {200: {"headers": _ETAG}, **error_responses(*statuses)}
    return {"response_class": ScimJSONResponse, "response_model": model, "responses": responses}


def _creation_options(model: type[Schema]) -> dict[str, Any]:
    options = _response_options(model, 409, 413, 415)
    del options["responses"][200]
    options["responses"][201] = {"headers": _CREATED_HEADERS}
    return options | {"status_code": 201}


def _read_options(model: type[Schema]) -> dict[str, Any]:
    options = _response_options(model, 412)
    options["responses"][304] = {
        "description": "The version in `If-None-Match` is the current one."
    }
    return options


_DELETION_OPTIONS: dict[str, Any] = {
    "response_class": ScimJSONResponse,
    "status_code": 204,
    "responses": error_responses(409, 412),
}


async def _respond(request: Request, database: Database, directory: Directory) -> Response:
    # Importing the SCIM library takes a tenth of a second, and most hubs never need it.
    from hublet.scim.protocol.server import serve  # noqa: PLC0415

    reply = await serve(database, directory, await _directory_request(request, database, directory))
    headers = {k: v for k, v in reply.headers.items() if reply.body or k != "Content-Type"}
    return Response(reply.body, status_code=reply.status, headers=headers)


async def _directory_request(
    request: Request, database: Database, directory: Directory
) -> DirectoryRequest:
    # Never the Host header of the request: links must lead to this hub.
    address = MANAGED if directory.managed else INVITED
    base_url = database.hub.settings.base_url + address.replace(
        "{name}", directory.organization.name
    )
    return DirectoryRequest(
        method=request.method,
        base_url=base_url,
        path="/" + request.url.path.split("/", _SEGMENTS_BEFORE_RESOURCE)[-1],
        query=dict(request.query_params),
        headers=list(request.headers.items()),
        body=await request.body(),
    )


users_router = Router(tags=["scim"])


@users_router.get(f"{INVITED}/Users", dependencies=_SEARCH, **_response_options(ScimUserList))
async def list_scim_users(request: Request, database: Db, directory: InvitedUsers) -> Response:
    """List the users of an organization's directory, or those that a filter lets through."""
    return await _respond(request, database, directory)


@users_router.post(f"{INVITED}/Users", openapi_extra=USER_BODY, **_creation_options(ScimUser))
async def create_scim_user(request: Request, database: Db, directory: InvitedUsers) -> Response:
    """Provision a user in an organization's directory.

    Whoever has an account with one of the addresses becomes a member at once. Without such an
    account the user waits, and joins when there is one.
    """
    return await _respond(request, database, directory)


@users_router.post(
    f"{INVITED}/Users/.search",
    openapi_extra=SEARCH_BODY,
    **_response_options(ScimUserList, 413, 415),
)
async def search_scim_users(request: Request, database: Db, directory: InvitedUsers) -> Response:
    """List users of an organization's directory, with the parameters in the body."""
    return await _respond(request, database, directory)


@users_router.get(
    f"{INVITED}/Users/{{scim_id}}", dependencies=_PROJECTION, **_read_options(ScimUser)
)
async def get_scim_user(request: Request, database: Db, directory: InvitedUsers) -> Response:
    """Show a user of an organization's directory."""
    return await _respond(request, database, directory)


@users_router.put(
    f"{INVITED}/Users/{{scim_id}}",
    dependencies=_PROJECTION,
    openapi_extra=USER_BODY,
    **_response_options(ScimUser, 409, 412, 413, 415),
)
async def replace_scim_user(request: Request, database: Db, directory: InvitedUsers) -> Response:
    """Replace the attributes of a user; without `active` the user stays what it is."""
    return await _respond(request, database, directory)


@users_router.patch(
    f"{INVITED}/Users/{{scim_id}}",
    dependencies=_PROJECTION,
    openapi_extra=PATCH_BODY,
    **_response_options(ScimUser, 409, 412, 413, 415),
)
async def update_scim_user(request: Request, database: Db, directory: InvitedUsers) -> Response:
    """Change attributes of a user.

    With `active: false` the user is no member any more, and loses what was given for the
    organization at once; `true` brings the membership back with its roles, and no old token.
    """
    return await _respond(request, database, directory)


@users_router.delete(f"{INVITED}/Users/{{scim_id}}", dependencies=_ID, **_DELETION_OPTIONS)
async def delete_scim_user(request: Request, database: Db, directory: InvitedUsers) -> Response:
    """Remove a user from an organization and its directory."""
    return await _respond(request, database, directory)


groups_router = Router(tags=["scim"])


@groups_router.get(f"{INVITED}/Groups", dependencies=_SEARCH, **_response_options(ScimGroupList))
async def list_scim_groups(request: Request, database: Db, directory: InvitedUsers) -> Response:
    """List the groups of an organization's directory, or those that a filter lets through."""
    return await _respond(request, database, directory)


@groups_router.post(f"{INVITED}/Groups", openapi_extra=GROUP_BODY, **_creation_options(ScimGroup))
async def create_scim_group(request: Request, database: Db, directory: InvitedUsers) -> Response:
    """Create a group; a name such as `acme:write` or `acme:research:admin` gives a role."""
    return await _respond(request, database, directory)


@groups_router.post(
    f"{INVITED}/Groups/.search",
    openapi_extra=SEARCH_BODY,
    **_response_options(ScimGroupList, 413, 415),
)
async def search_scim_groups(request: Request, database: Db, directory: InvitedUsers) -> Response:
    """List groups of an organization's directory, with the parameters in the body."""
    return await _respond(request, database, directory)


@groups_router.get(
    f"{INVITED}/Groups/{{scim_id}}", dependencies=_PROJECTION, **_read_options(ScimGroup)
)
async def get_scim_group(request: Request, database: Db, directory: InvitedUsers) -> Response:
    """Show a group of an organization's directory."""
    return await _respond(request, database, directory)


@groups_router.put(
    f"{INVITED}/Groups/{{scim_id}}",
    dependencies=_PROJECTION,
    openapi_extra=GROUP_BODY,
    **_response_options(ScimGroup, 409, 412, 413, 415),
)
async def replace_scim_group(request: Request, database: Db, directory: InvitedUsers) -> Response:
    """Replace a group and its list of members."""
    return await _respond(request, database, directory)


_GROUP_CHANGES = _response_options(ScimGroup, 409, 412, 413, 415)
_GROUP_CHANGES["responses"][204] = {"description": "It is changed.", "headers": _ETAG}


@groups_router.patch(
    f"{INVITED}/Groups/{{scim_id}}",
    dependencies=_PROJECTION,
    openapi_extra=PATCH_BODY,
    **_GROUP_CHANGES,
)
async def update_scim_group(request: Request, database: Db, directory: InvitedUsers) -> Response:
    """Change a group: add, remove or replace members, or give it another name.

    The group is shown only where `attributes` or `excludedAttributes` say how much of it.
    """
    return await _respond(request, database, directory)


@groups_router.delete(f"{INVITED}/Groups/{{scim_id}}", dependencies=_ID, **_DELETION_OPTIONS)
async def delete_scim_group(request: Request, database: Db, directory: InvitedUsers) -> Response:
    """Delete a group; its members keep the roles that other groups give them."""
    return await _respond(request, database, directory)


discovery_router = Router(tags=["scim"])


@discovery_router.get(f"{INVITED}/", dependencies=_SEARCH, **_response_options(ScimList, 501))
async def list_scim_directory(request: Request, database: Db, directory: InvitedUsers) -> Response:
    """List users and groups of an organization together, the users first."""
    return await _respond(request, database, directory)


@discovery_router.post(
    f"{INVITED}/.search", openapi_extra=SEARCH_BODY, **_response_options(ScimList, 413, 415, 501)
)
async def search_scim_directory(
    request: Request, database: Db, directory: InvitedUsers
) -> Response:
    """List users and groups of an organization together, with the parameters in the body."""
    return await _respond(request, database, directory)


@discovery_router.get(
    f"{INVITED}/ServiceProviderConfig", **_response_options(ScimServiceProviderConfig)
)
async def get_scim_service_provider_config(
    request: Request, database: Db, directory: InvitedUsers
) -> Response:
    """Tell what an organization's directory can do."""
    return await _respond(request, database, directory)


@discovery_router.get(f"{INVITED}/ResourceTypes", **_response_options(ScimResourceTypeList))
async def list_scim_resource_types(
    request: Request, database: Db, directory: InvitedUsers
) -> Response:
    """List what an organization's directory holds: users and groups."""
    return await _respond(request, database, directory)


@discovery_router.get(
    f"{INVITED}/ResourceTypes/{{scim_id}}", dependencies=_ID, **_response_options(ScimResourceType)
)
async def get_scim_resource_type(
    request: Request, database: Db, directory: InvitedUsers
) -> Response:
    """Show one of the two things that a directory holds."""
    return await _respond(request, database, directory)


@discovery_router.get(f"{INVITED}/Schemas", **_response_options(ScimSchemaList))
async def list_scim_schemas(request: Request, database: Db, directory: InvitedUsers) -> Response:
    """List the attributes of users and groups."""
    return await _respond(request, database, directory)


@discovery_router.get(
    f"{INVITED}/Schemas/{{scim_id}}", dependencies=_ID, **_response_options(ScimSchema)
)
async def get_scim_schema(request: Request, database: Db, directory: InvitedUsers) -> Response:
    """Show the attributes of users or of groups."""
    return await _respond(request, database, directory)


@discovery_router.api_route(
    f"{INVITED}/{{rest:path}}",
    methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
    include_in_schema=False,
)
async def refuse_other_scim_address(
    request: Request, database: Db, directory: InvitedUsers
) -> Response:
    """Say in the form of the protocol that there is nothing here, or not this."""
    return await _respond(request, database, directory)


invited = Router(tags=["scim"])
# What no other route matches is refused by the last one, of the discovery.
invited.routes.extend([*users_router.routes, *groups_router.routes, *discovery_router.routes])

managed = for_managed_users(invited)

ROUTERS: tuple[Router, ...] = (invited, managed)

set_error_body(
    "/api/organizations/[^/]+/scim(-provisioning)?/v2/.*", body=error_body, media_type=MEDIA_TYPE
)
