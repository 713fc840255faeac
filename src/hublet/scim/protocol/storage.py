"""Storage of the SCIM library: the directory as it reads and writes it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from scim2_models import (
    NotImplementedException,
    PreconditionFailedException,
    Resource,
    ResourceType,
    ResponseParameters,
    SearchRequest,
)
from scim2_server.storage import AsyncScimStorage, SearchPage

from hublet.core.database import Connection, Reader
from hublet.scim import groups, groups_store
from hublet.scim.protocol.filter_store import (
    GROUP_COLUMNS,
    USER_COLUMNS,
    FilterColumn,
    condition_of,
    order_of,
)
from hublet.scim.protocol.models import DEFAULT_RESULTS, Group, User
from hublet.scim.protocol.resources import (
    group_record,
    group_resource,
    user_record,
    user_resource,
    version_of,
)
from hublet.scim.records import (
    Directory,
    ListQuery,
    ProvisionedGroup,
    ProvisionedUser,
    SqlCondition,
)
from hublet.scim.users import service as users
from hublet.scim.users import store as users_store

# No directory has as many; databases count in 64 bits, and requests may not.
_LAST_INDEX = 2**31


class DirectoryStorage(AsyncScimStorage):
    """One request's view of a directory. Only what writes needs a transaction.

    Searches find records, which the protocol writes by itself.
    """

    def __init__(self, conn: Reader, directory: Directory) -> None:
        self._conn = conn
        self._directory = directory

    @property
    def _writing(self) -> Connection:
        return cast("Connection", self._conn)

    async def get(
        self,
        resource_type: ResourceType,
        resource_id: str,
        *,
        response_parameters: ResponseParameters[Any] | None = None,
    ) -> Resource[Any]:
        if _is_user(resource_type):
            return self._shown(await users.get(self._conn, self._directory, resource_id))
        group = await groups.get(
            self._conn,
            self._directory,
            resource_id,
            with_members=_wants_members(response_parameters),
        )
        return group_resource(group)

    async def search(
        self,
        resource_types: list[ResourceType],
        search_request: SearchRequest[Any],
        *,
        position: Any = None,  # noqa: ARG002 - cursors are not announced
    ) -> SearchPage:
        if len(resource_types) > 1:
            return await self._search_all(search_request)
        if _is_user(resource_types[0]):
            return await self._search_users(_list_query(search_request, USER_COLUMNS))
        return await self._search_groups(
            _list_query(search_request, GROUP_COLUMNS), with_members=_wants_members(search_request)
        )

    async def _search_all(self, request: SearchRequest[Any]) -> SearchPage:
        """Return users, and groups after them: no order but that holds for both."""
        if request.sort_by is not None:
            raise NotImplementedException(detail="Users and groups are not sorted together.")
        asked = _list_query(request, USER_COLUMNS, among=GROUP_COLUMNS)
        page = await self._search_users(asked)
        rest = _list_query(request, GROUP_COLUMNS, among=USER_COLUMNS)
        rest = replace(
            rest,
            offset=max(0, rest.offset - (page.total or 0)),
            limit=rest.limit - len(page.resources),
        )
        more = await self._search_groups(rest, with_members=_wants_members(request))
        total = (page.total or 0) + (more.total or 0)
        return SearchPage(total, [*page.resources, *more.resources])

    async def _search_users(self, asked: ListQuery) -> SearchPage:
        total = await users_store.count_of(self._conn, self._directory, asked)
        found = await users_store.list_of(self._conn, self._directory, asked)
        return SearchPage(total, list[Any](found))

    async def _search_groups(self, asked: ListQuery, *, with_members: bool) -> SearchPage:
        total = await groups_store.count_of(self._conn, self._directory, asked)
        found = await groups_store.list_of(
            self._conn, self._directory, asked, with_members=with_members
        )
        return SearchPage(total, list[Any](found))

    async def create(self, resource_type: ResourceType, resource: Resource[Any]) -> Resource[Any]:
        if _is_user(resource_type):
            draft = user_record(cast("User", resource))
            return self._shown(await users.create(self._writing, self._directory, draft))
        group = group_record(cast("Group", resource))
        return group_resource(await groups.create(self._writing, self._directory, group))

    async def update(
        self,
        resource_type: ResourceType,
        resource: Resource[Any],
        *,
        expected_version: str | None = None,
    ) -> Resource[Any]:
        before = await self._current(resource_type, resource.id or "", expected_version)
        if isinstance(before, ProvisionedUser):
            draft = user_record(cast("User", resource), before=before)
            return self._shown(await users.update(self._writing, self._directory, before, draft))
        group = group_record(cast("Group", resource), before=before)
        return group_resource(await groups.update(self._writing, self._directory, before, group))

    async def delete(
        self,
        resource_type: ResourceType,
        resource_id: str,
        *,
        expected_version: str | None = None,
    ) -> None:
        current = await self._current(resource_type, resource_id, expected_version)
        if isinstance(current, ProvisionedUser):
            await users.delete(self._writing, self._directory, current)
        else:
            await groups.delete(self._writing, self._directory, current)

    async def _current(
        self, resource_type: ResourceType, resource_id: str, expected_version: str | None
    ) -> ProvisionedUser | ProvisionedGroup:
        found: ProvisionedUser | ProvisionedGroup
        if _is_user(resource_type):
            found = await users.get(self._conn, self._directory, resource_id)
        else:
            found = await groups.get(self._conn, self._directory, resource_id)
        if expected_version not in {None, version_of(found.stamp)}:
            raise PreconditionFailedException
        return found

    def _shown(self, user: ProvisionedUser) -> User:
        return user_resource(user, managed=self._directory.managed)


def _is_user(resource_type: ResourceType) -> bool:
    return resource_type.name == "User"


def _wants_members(parameters: ResponseParameters[Any] | None) -> bool:
    """Tell whether the members of a group are part of the answer: there may be thousands."""
    if parameters is None:
        return True
    if parameters.attributes:
        return "members" in _attribute_names(parameters.attributes)
    return "members" not in _attribute_names(parameters.excluded_attributes or [])


def _attribute_names(paths: list[Any]) -> set[str]:
    return {str(path).rpartition(":")[2].partition(".")[0].lower() for path in paths}


def _list_query(
    request: SearchRequest[Any],
    columns: Mapping[str, FilterColumn],
    *,
    among: Mapping[str, FilterColumn] | None = None,
) -> ListQuery:
    descending = request.sort_order == SearchRequest.SortOrder.descending
    order = "s.id"
    if request.sort_by is not None:
        order = order_of(str(request.sort_by), columns, descending=descending)
    return ListQuery(
        condition=condition_of(request.filter.ast, columns, among=among or {})
        if request.filter
        else SqlCondition(),
        order=order,
        offset=min(request.start_index_0 or 0, _LAST_INDEX),
        limit=DEFAULT_RESULTS if request.count is None else request.count,
    )
