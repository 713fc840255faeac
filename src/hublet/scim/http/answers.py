"""How SCIM routes are described, and how they answer."""

from typing import Annotated, Any, Literal

from fastapi import Depends, Path, Query, Request
from starlette.responses import JSONResponse, Response

from hublet.core.database import Database
from hublet.core.schema import Schema
from hublet.scim.auth import INVITED, MANAGED
from hublet.scim.errors import MEDIA_TYPE
from hublet.scim.records import Call, Directory
from hublet.scim.schemas import refusals

# Of an address: nothing before the first slash, then what leads to the directory.
_SEGMENTS_BEFORE = 6


class ScimAnswer(JSONResponse):
    media_type = MEDIA_TYPE


async def _projection(
    attributes: Annotated[str | None, Query(description="Only these attributes.")] = None,
    excluded: Annotated[
        str | None, Query(alias="excludedAttributes", description="All attributes but these.")
    ] = None,
) -> None:
    """Only described here; the protocol reads them."""


async def _search(
    asked: Annotated[
        str | None, Query(alias="filter", description='As in `userName eq "ada"`.')
    ] = None,
    by: Annotated[str | None, Query(alias="sortBy", description="An attribute.")] = None,
    order: Annotated[Literal["ascending", "descending"] | None, Query(alias="sortOrder")] = None,
    start: Annotated[
        int | None, Query(alias="startIndex", description="The first is number 1.")
    ] = None,
    count: Annotated[int | None, Query(description="At most 200.")] = None,
) -> None:
    """Only described here; the protocol reads them."""


async def _named(scim_id: Annotated[str, Path(description="The id of what is asked for.")]) -> None:
    """Only described here; the protocol reads it."""


NAMED = [Depends(_named)]
PROJECTED = [Depends(_named), Depends(_projection)]
SEARCHED = [Depends(_projection), Depends(_search)]
TAGGED = {"ETag": {"description": "The version of it.", "schema": {"type": "string"}}}
_CREATED = TAGGED | {"Location": {"description": "Its address.", "schema": {"type": "string"}}}


def answers(model: type[Schema], *statuses: int) -> dict[str, Any]:
    """Say what a route answers with, and how it refuses."""
    responses = {200: {"headers": TAGGED}, **refusals(*statuses)}
    return {"response_class": ScimAnswer, "response_model": model, "responses": responses}


def creates(model: type[Schema]) -> dict[str, Any]:
    found = answers(model, 409, 413, 415)
    del found["responses"][200]
    found["responses"][201] = {"headers": _CREATED}
    return found | {"status_code": 201}


def reads(model: type[Schema]) -> dict[str, Any]:
    found = answers(model, 412)
    found["responses"][304] = {"description": "The version in `If-None-Match` is the current one."}
    return found


DELETES: dict[str, Any] = {
    "response_class": ScimAnswer,
    "status_code": 204,
    "responses": refusals(409, 412),
}


async def answer(request: Request, database: Database, directory: Directory) -> Response:
    # The protocol takes a tenth of a second to import, and most hubs never need it.
    from hublet.scim.protocol import serve  # noqa: PLC0415

    reply = await serve(database, directory, await _call(request, database, directory))
    headers = {k: v for k, v in reply.headers.items() if reply.body or k != "Content-Type"}
    return Response(reply.body, status_code=reply.status, headers=headers)


async def _call(request: Request, database: Database, directory: Directory) -> Call:
    # Never the Host that was asked for: links must lead to this hub.
    address = MANAGED if directory.managed else INVITED
    base_url = database.hub.settings.base_url + address.replace(
        "{name}", directory.organization.name
    )
    return Call(
        method=request.method,
        base_url=base_url,
        path="/" + request.url.path.split("/", _SEGMENTS_BEFORE)[-1],
        query=dict(request.query_params),
        headers=list(request.headers.items()),
        body=await request.body(),
    )
