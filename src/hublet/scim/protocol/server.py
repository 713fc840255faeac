"""SCIM server: the library's service, with rules of the hub.

Importing this takes a tenth of a second, so routes import it when it is first used.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from http import HTTPStatus
from typing import Any

import msgspec
from pydantic import ValidationError
from scim2_models import (
    Context,
    Error,
    InvalidFilterException,
    InvalidValueException,
    MutabilityException,
    PatchOp,
    Resource,
    ResourceType,
    ResponseParameters,
    SCIMException,
    SearchRequest,
)
from scim2_server.conditions import Conditions
from scim2_server.errors import MethodNotAllowedException
from scim2_server.requests import ScimRequest
from scim2_server.responses import ScimResponse
from scim2_server.service import ScimService
from scim2_server.storage import SearchPage
from scim2_server.utils import parametrize

from hublet.core.database import Database
from hublet.core.errors import HubError
from hublet.scim.directory import lock
from hublet.scim.errors import ScimRefusal, to_refusal
from hublet.scim.protocol import plain_users
from hublet.scim.protocol.handler import DirectoryHandler, normalize
from hublet.scim.protocol.models import STRICT, AnyUser, Group, ManagedUser, User, provider_of
from hublet.scim.protocol.resources import (
    body_of,
    group_resource,
    member_attributes,
    members_of,
    user_resource,
)
from hublet.scim.records import (
    Directory,
    DirectoryRequest,
    DirectoryResponse,
    ProvisionedGroup,
    ProvisionedUser,
    comparison_key,
)
from hublet.scim.users import service as users

MAX_FILTER_LENGTH = 4000
MAX_FILTER_DEPTH = 20
_MAX_FIELDS = 200

_LIST_SCHEMA = "urn:ietf:params:scim:api:messages:2.0:ListResponse"


async def serve(
    database: Database, directory: Directory, call: DirectoryRequest
) -> DirectoryResponse:
    """Handle a request; an error is raised, and its transaction rolled back."""
    draft = plain_users.read_creation(call)
    try:
        if draft is not None:
            response = await _create_user(database, directory, call, draft)
        else:
            response = await _handle(database, directory, _library_request(call))
    except SCIMException as error:
        raise _refusal(error) from error
    except HubError as error:
        raise to_refusal(error) from error
    body = b"" if response.body is None else msgspec.json.encode(response.body)
    return DirectoryResponse(status=int(response.status), headers=response.headers, body=body)


def _library_request(call: DirectoryRequest) -> ScimRequest:
    return ScimRequest(
        method=call.method,
        base_url=call.base_url,
        path=call.path,
        query=call.query,
        headers=call.headers,
        body=call.body,
    )


async def _create_user(
    database: Database, directory: Directory, call: DirectoryRequest, draft: ProvisionedUser
) -> ScimResponse:
    async with database.transaction() as conn:
        await lock(conn, directory)
        user = await users.create(conn, directory, draft)
    return plain_users.creation_response(user, base_url=call.base_url)


async def _handle(database: Database, directory: Directory, request: ScimRequest) -> ScimResponse:
    service = _service(managed=directory.managed)
    if request.method == "GET" or request.path.endswith("/.search"):
        async with database.read() as reading:
            return await DirectoryHandler(service, reading, directory).handle(request)
    async with database.transaction() as conn:
        # A change reads, then writes: two of them at once would lose one.
        await lock(conn, directory)
        return await DirectoryHandler(service, conn, directory).handle(request)


@cache
def _service(*, managed: bool) -> "DirectoryService":
    return DirectoryService(managed=managed)


def _refusal(error: SCIMException) -> ScimRefusal:
    scim_error = error.to_error()
    headers = {}
    if isinstance(error, MethodNotAllowedException):
        headers["Allow"] = ", ".join(error.allowed)
    return ScimRefusal(
        int(scim_error.status or 500),
        scim_error.detail or HTTPStatus(int(scim_error.status or 500)).phrase,
        scim_type=scim_error.scim_type,
        headers=headers,
    )


class DirectoryService(ScimService):
    """The library's service, which also refuses attributes that no schema has."""

    def __init__(self, *, managed: bool) -> None:
        super().__init__(provider_of(managed=managed))
        self._managed = managed

    def read_creation(
        self, resource_type: ResourceType, body: bytes, content_type: str | None
    ) -> Resource[Any]:
        context = Context.RESOURCE_CREATION_REQUEST
        checked = self._checked_body(resource_type, body, content_type, context)
        return super().read_creation(resource_type, checked, content_type)

    def read_replacement(
        self, resource_type: ResourceType, body: bytes, content_type: str | None
    ) -> Resource[Any]:
        context = Context.RESOURCE_REPLACEMENT_REQUEST
        checked = self._checked_body(resource_type, body, content_type, context)
        return super().read_replacement(resource_type, checked, content_type)

    def read_patch(
        self, resource_type: ResourceType, body: bytes, content_type: str | None
    ) -> "PatchOp[Any]":
        payload = normalize(self.decode_body(body, content_type))
        whole = parametrize(PatchOp, _full_model(resource_type))
        if errors := _validation_errors(whole, payload, Context.RESOURCE_PATCH_REQUEST):
            raise _exception_of(errors[0])
        return super().read_patch(resource_type, msgspec.json.encode(payload), content_type)

    def _checked_body(
        self, resource_type: ResourceType, body: bytes, content_type: str | None, context: Context
    ) -> bytes:
        """Return the body, in which every name must be one of the RFC.

        Values are checked where they are stored; the library drops the others unread.
        """
        payload = normalize(self.decode_body(body, content_type))
        for error in _validation_errors(_full_model(resource_type), payload, context):
            if error["type"] == "extra_forbidden":
                raise _exception_of(error)
        return msgspec.json.encode(payload)

    def decode_body(self, body: bytes, content_type: str | None) -> Any:
        payload = super().decode_body(body, content_type)
        _check_texts(payload)
        return payload

    def read_search(
        self, resource_types: list[ResourceType], payload: Any
    ) -> tuple[SearchRequest[Any], Any]:
        for name, given in payload.items() if isinstance(payload, dict) else ():
            if name.lower() == "filter" and isinstance(given, str):
                _check_filter(given)
        return super().read_search(resource_types, payload)

    def search_response(
        self,
        base_url: str,
        resource_types: list[ResourceType],  # noqa: ARG002 - the library's signature
        page: SearchPage,
        search_request: SearchRequest[Any],
    ) -> ScimResponse:
        records: list[Any] = page.resources
        if search_request.attributes or search_request.excluded_attributes:
            resources = [self._part_of(base_url, each, search_request) for each in records]
        else:
            resources = [body_of(each, base_url=base_url) for each in records]
        body = {
            "schemas": [_LIST_SCHEMA],
            "totalResults": page.total,
            "startIndex": search_request.start_index,
            "itemsPerPage": len(resources),
            "Resources": resources,
        }
        return ScimResponse(HTTPStatus.OK, body)

    def _part_of(
        self, base_url: str, record: ProvisionedUser | ProvisionedGroup, request: SearchRequest[Any]
    ) -> dict[str, Any]:
        resource: Resource[Any]
        members: list[dict[str, Any]] = []
        if isinstance(record, ProvisionedUser):
            resource = user_resource(record, managed=self._managed)
        else:
            resource = group_resource(replace(record, members=()))
            members = members_of(record, base_url=base_url, attributes=member_attributes(request))
        part: dict[str, Any] = self.publish(base_url, resource).model_dump(
            scim_ctx=Context.RESOURCE_QUERY_RESPONSE, response_parameters=request
        )
        return part | ({"members": members} if members else {})

    def apply_patch(
        self, current: Resource[Any], patch_op: "PatchOp[Any]", conditions: Conditions
    ) -> Resource[Any] | None:
        if isinstance(current, ManagedUser):
            for operation in patch_op.operations or ():
                operation.value = _respell(operation.path, operation.value, current)
        patched = super().apply_patch(current, patch_op, conditions)
        if isinstance(patched, User) and patched.active is None:
            raise MutabilityException(detail="active must be true or false.")
        return patched

    def apply_replacement(
        self, current: Resource[Any], replacement: Resource[Any], conditions: Conditions
    ) -> Resource[Any] | None:
        """Replace a resource; `active` and the schemas stay when the request leaves them out."""
        if isinstance(current, User) and isinstance(replacement, User):
            replacement.schemas = current.schemas
            if replacement.active is None:
                replacement.active = current.active
            if isinstance(current, ManagedUser):
                replacement.user_name = _respell("userName", replacement.user_name, current)
        return super().apply_replacement(current, replacement, conditions)

    def patch_response(
        self,
        base_url: str,
        resource: Resource[Any],
        response_parameters: ResponseParameters[Any],
    ) -> ScimResponse:
        """Return a changed user, as providers expect; a group may be long, so it is not returned."""
        if isinstance(resource, Group):
            return super().patch_response(base_url, resource, response_parameters)
        return self.replacement_response(base_url, resource, response_parameters)


def _full_model(resource_type: ResourceType) -> type[Resource[Any]]:
    return AnyUser if resource_type.name == "User" else Group


def _respell(path: Any, value: Any, user: ManagedUser) -> Any:
    """Return a value with the userName spelled as it is stored: it is immutable."""
    if isinstance(value, dict):
        return {name: _respell(name, each, user) for name, each in value.items()}
    is_name = str(path).rpartition(":")[2].lower() == "username" and isinstance(value, str)
    is_same = is_name and comparison_key(value) == comparison_key(user.user_name or "")
    return user.user_name if is_same else value


def _validation_errors(model: Any, payload: Any, context: Context) -> Sequence[Mapping[str, Any]]:
    try:
        model.model_validate(payload, scim_ctx=context, scim_policy=STRICT)
    except ValidationError as error:
        return error.errors()
    return ()


def _exception_of(error: Mapping[str, Any]) -> SCIMException:
    return SCIMException.from_error(Error.from_validation_error(error))


def _check_texts(value: Any) -> None:
    if isinstance(value, str):
        # PostgreSQL cannot store U+0000, so no engine takes it.
        if "\x00" in value:
            raise InvalidValueException(detail="Text must not contain the NUL character.")
    elif isinstance(value, dict):
        # Each unknown one would become an error of its own.
        if len(value) > _MAX_FIELDS:
            raise InvalidValueException(detail=f"An object has at most {_MAX_FIELDS} fields.")
        for pair in value.items():
            _check_texts(list(pair))
    elif isinstance(value, list):
        for part in value:
            _check_texts(part)


def _check_filter(given: str) -> None:
    if len(given) > MAX_FILTER_LENGTH or given.count("(") > MAX_FILTER_DEPTH:
        raise InvalidFilterException(
            detail=f"filter must have at most {MAX_FILTER_LENGTH} characters "
            f"and {MAX_FILTER_DEPTH} parentheses."
        )
