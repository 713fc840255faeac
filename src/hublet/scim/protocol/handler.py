"""Request handler for the SCIM library, from which it keeps the members of groups away; and the dialects of
identity providers: the deviations of Okta and Entra ID from the RFC.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import msgspec
from scim2_models import PatchOp, Resource, ResourceType, ResponseParameters
from scim2_server.conditions import Conditions
from scim2_server.handler import AsyncScimHandler
from scim2_server.requests import ScimRequest
from scim2_server.responses import ScimResponse
from scim2_server.service import ScimService

from hublet.core.database import Reader
from hublet.scim import groups, groups_store
from hublet.scim.errors import ScimRefusal
from hublet.scim.member_changes import (
    ExtractedChanges,
    MemberChange,
    extract_from_group,
    extract_from_patch,
)
from hublet.scim.protocol.models import Group
from hublet.scim.protocol.resources import (
    group_record,
    group_resource,
    member_attributes,
    members_of,
)
from hublet.scim.protocol.storage import DirectoryStorage
from hublet.scim.records import Directory

# Entra ID sends it beside the schema of the RFC.
_MICROSOFT_GROUP = "http://schemas.microsoft.com/2006/11/ResourceManagement/ADSCIM/2.0/Group"


def normalize(payload: Any) -> Any:
    """Return the payload of a provider in the form of the RFC, where it has one."""
    if not isinstance(payload, dict):
        return payload
    if isinstance(payload.get("schemas"), list):
        payload["schemas"] = [each for each in payload["schemas"] if each != _MICROSOFT_GROUP]
    if isinstance(payload.get("Operations"), list):
        payload["Operations"] = [
            part for each in payload["Operations"] for part in _split_operation(each)
        ]
    return payload


def _split_operation(operation: Any) -> list[Any]:
    """Split an operation of Entra ID, which writes paths with filters as keys of a value."""
    if not isinstance(operation, dict):
        return [operation]
    is_removal = str(operation.get("op")).lower() == "remove"
    value = _clean_entries(operation.get("value"), by_value=is_removal)
    if not isinstance(value, dict) or operation.get("path"):
        return [operation | {"value": value}] if "value" in operation else [operation]
    filtered = {name: value[name] for name in value if "[" in name}
    rest = {name: value[name] for name in value if name not in filtered}
    spread = [operation | {"path": name, "value": each} for name, each in filtered.items()]
    return spread if filtered and not rest else [operation | {"value": rest}, *spread]


def _clean_entries(value: Any, *, by_value: bool) -> Any:
    """Remove attributes of list entries that do not identify the entry.

    Okta also sends `display`, which is read-only. An entry to be removed is identified by its
    value; Entra ID also sends `"$ref": null`.
    """
    if isinstance(value, dict):
        return {
            name: _clean_entries(each, by_value=by_value) if isinstance(each, list) else each
            for name, each in value.items()
        }
    if not isinstance(value, list):
        return value
    return [_clean_entry(each, by_value=by_value) for each in value]


def _clean_entry(entry: Any, *, by_value: bool) -> Any:
    if not isinstance(entry, dict):
        return entry
    if by_value and "value" in entry:
        return {"value": entry["value"]}
    return {name: entry[name] for name in entry if name.lower() != "display"}


# How many members the library may handle, times their changes: each takes some 0.2 ms.
MAX_COST = 500
_TERM_LENGTH = 80

_Handle = Callable[[ScimRequest], Awaitable[ScimResponse]]


class DirectoryHandler(AsyncScimHandler):
    """Handler of one request, because it stores the member changes of that request."""

    def __init__(self, service: ScimService, conn: Reader, directory: Directory) -> None:
        super().__init__(service, DirectoryStorage(conn, directory))
        self._conn = conn
        self._directory = directory

    async def query(self, request: ScimRequest) -> ScimResponse:
        if not _is_about_groups(request):
            return await super().query(request)
        self.storage = _StorageWithoutMembers(self._conn, self._directory, ())
        return await self._with_members(request, await super().query(request))

    async def create(self, request: ScimRequest) -> ScimResponse:
        return await self._handle_without_members(request, extract_from_group, super().create)

    async def replace(self, request: ScimRequest) -> ScimResponse:
        return await self._handle_without_members(request, extract_from_group, super().replace)

    async def patch(self, request: ScimRequest) -> ScimResponse:
        return await self._handle_without_members(request, extract_from_patch, super().patch)

    async def delete(self, request: ScimRequest) -> ScimResponse:
        if _is_about_groups(request):
            self.storage = _StorageWithoutMembers(self._conn, self._directory, ())
        return await super().delete(request)

    async def _handle_without_members(
        self,
        request: ScimRequest,
        extract: Callable[[Any], ExtractedChanges | None],
        handle: _Handle,
    ) -> ScimResponse:
        """Let the library handle a request without its member changes."""
        if not _is_about_groups(request):
            return await handle(request)
        payload = normalize(self.service.decode_body(request.body, request.header("Content-Type")))
        extracted = extract(payload)
        if extracted is None:
            await self._check_cost(request, payload)
            return await handle(request)
        self.storage = _StorageWithoutMembers(self._conn, self._directory, extracted.changes)
        response = await handle(replace(request, body=msgspec.json.encode(extracted.rest)))
        return await self._with_members(request, response)

    async def _check_cost(self, request: ScimRequest, payload: Any) -> None:
        """Refuse a request that would keep the library, and so the event loop, busy for long."""
        entries, members = _count_entries(payload), 0
        if request.method != "POST":
            group_id = request.path.strip("/").rpartition("/")[2]
            # The size of a group in another directory must not be disclosed.
            await groups.get(self._conn, self._directory, group_id, with_members=False)
            members = await groups_store.count_members(self._conn, group_id)
        cost = entries * max(members, 1) if request.method == "PATCH" else entries + members
        if cost > MAX_COST:
            raise ScimRefusal(
                400,
                "members: there are too many for a change of this form; name them by their values.",
                scim_type="tooMany",
            )

    async def _with_members(self, request: ScimRequest, response: ScimResponse) -> ScimResponse:
        if response.body is None:
            return response
        with self.service.provider:
            parameters = self._parameters(request)
        if attributes := member_attributes(parameters):
            group = await groups.get(self._conn, self._directory, response.body["id"])
            members = members_of(group, base_url=request.base_url, attributes=attributes)
            response.body |= {"members": members} if members else {}
        return response

    def _parameters(self, request: ScimRequest) -> ResponseParameters[Any] | None:
        if request.method == "POST":
            # A created resource is rendered as a whole.
            return None
        resource_type = self.service.resource_type_at("Groups")
        return self.service.read_response_parameters(resource_type, request.query)

    async def patch_resource(
        self,
        resource_type: ResourceType,
        resource_id: str,
        patch_op: "PatchOp[Any]",
        conditions: Conditions,
    ) -> Resource[Any]:
        if not isinstance(self.storage, _StorageWithoutMembers):
            return await super().patch_resource(resource_type, resource_id, patch_op, conditions)
        current = await self.storage.get(resource_type, resource_id)
        patched = self.service.apply_patch(current, patch_op, conditions)
        return await self.storage.update(resource_type, current if patched is None else patched)

    async def replace_resource(
        self,
        resource_type: ResourceType,
        current: Resource[Any],
        replacement: Resource[Any],
        conditions: Conditions,
    ) -> Resource[Any]:
        if not isinstance(self.storage, _StorageWithoutMembers):
            return await super().replace_resource(resource_type, current, replacement, conditions)
        replaced = self.service.apply_replacement(current, replacement, conditions)
        return await self.storage.update(resource_type, current if replaced is None else replaced)


class _StorageWithoutMembers(DirectoryStorage):
    """Storage of groups that applies the member changes which the library does not see."""

    def __init__(self, conn: Reader, directory: Directory, changes: Sequence[MemberChange]) -> None:
        super().__init__(conn, directory)
        self._changes = changes

    async def get(
        self,
        resource_type: ResourceType,  # noqa: ARG002 - groups only
        resource_id: str,
        *,
        response_parameters: ResponseParameters[Any] | None = None,  # noqa: ARG002 - none of them
    ) -> Resource[Any]:
        group = await groups.get(self._conn, self._directory, resource_id, with_members=False)
        return group_resource(group)

    async def create(
        self,
        resource_type: ResourceType,  # noqa: ARG002 - groups only
        resource: Resource[Any],
    ) -> Resource[Any]:
        draft = group_record(cast("Group", resource))
        added = await groups.add(self._writing, self._directory, draft, self._changes)
        return group_resource(added)

    async def update(
        self,
        resource_type: ResourceType,  # noqa: ARG002 - groups only
        resource: Resource[Any],
        *,
        expected_version: str | None = None,  # noqa: ARG002 - it was read under the same lock
    ) -> Resource[Any]:
        conn, directory = self._writing, self._directory
        before = await groups.get(conn, directory, resource.id or "", with_members=False)
        draft = group_record(cast("Group", resource), before=before)
        changed = await groups.change(conn, directory, before, draft, self._changes)
        return group_resource(changed)


def _is_about_groups(request: ScimRequest) -> bool:
    return request.path.strip("/").partition("/")[0] == "Groups"


def _count_entries(payload: Any) -> int:
    """Count the changes of a patch, or the members of a group, with the terms of long filters."""
    if isinstance(payload, list):
        return sum(_count_entries(each) for each in payload)
    if isinstance(payload, dict):
        return max((_count_entries(each) for each in payload.values()), default=1)
    return 1 + len(payload) // _TERM_LENGTH if isinstance(payload, str) else 1
