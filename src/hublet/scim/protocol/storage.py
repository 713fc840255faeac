"""Storage adapter of the SCIM library: it reads and writes a directory of the hub."""

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

# No directory has as many entries; a request may name a number that exceeds 64 bits.
_LAST_INDEX = 2**31


class DirectoryStorage(AsyncScimStorage):
    """A directory, for one request; only writing methods need a transaction.

    Searches return records, which the server renders without the library.
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
            return self._user_resource(await users.get(self._conn, self._directory, resource_id))
        group = await groups.get(
            self._conn,
            self._directory,
            resource_id,
            with_members=_includes_members(response_parameters),
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
            _list_query(search_request, GROUP_COLUMNS),
            with_members=_includes_members(search_request),
        )

    async def _search_all(self, request: SearchRequest[Any]) -> SearchPage:
        """Return users, then groups: there is no common order of both."""
        if request.sort_by is not None:
            raise NotImplementedException(detail="Users and groups are not sorted together.")
        users_query = _list_query(request, USER_COLUMNS, foreign=GROUP_COLUMNS)
        found_users = await self._search_users(users_query)
        groups_query = _list_query(request, GROUP_COLUMNS, foreign=USER_COLUMNS)
        groups_query = replace(
            groups_query,
            offset=max(0, groups_query.offset - (found_users.total or 0)),
            limit=groups_query.limit - len(found_users.resources),
        )
        found_groups = await self._search_groups(
            groups_query, with_members=_includes_members(request)
        )
        total = (found_users.total or 0) + (found_groups.total or 0)
        return SearchPage(total, [*found_users.resources, *found_groups.resources])

    async def _search_users(self, query: ListQuery) -> SearchPage:
        total = await users_store.count_of(self._conn, self._directory, query)
        page = await users_store.list_of(self._conn, self._directory, query)
        return SearchPage(total, list[Any](page))

    async def _search_groups(self, query: ListQuery, *, with_members: bool) -> SearchPage:
        total = await groups_store.count_of(self._conn, self._directory, query)
        page = await groups_store.list_of(
            self._conn, self._directory, query, with_members=with_members
        )
        return SearchPage(total, list[Any](page))

    async def create(self, resource_type: ResourceType, resource: Resource[Any]) -> Resource[Any]:
        if _is_user(resource_type):
            draft = user_record(cast("User", resource))
            return self._user_resource(await users.create(self._writing, self._directory, draft))
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
            return self._user_resource(
                await users.update(self._writing, self._directory, before, draft)
            )
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
        current: ProvisionedUser | ProvisionedGroup
        if _is_user(resource_type):
            current = await users.get(self._conn, self._directory, resource_id)
        else:
            current = await groups.get(self._conn, self._directory, resource_id)
        if expected_version not in {None, version_of(current.stamp)}:
            raise PreconditionFailedException
        return current

    def _user_resource(self, user: ProvisionedUser) -> User:
        return user_resource(user, managed=self._directory.managed)


def _is_user(resource_type: ResourceType) -> bool:
    return resource_type.name == "User"


def _includes_members(parameters: ResponseParameters[Any] | None) -> bool:
    """Tell whether a response includes the members of a group: there may be thousands."""
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
    foreign: Mapping[str, FilterColumn] | None = None,
) -> ListQuery:
    descending = request.sort_order == SearchRequest.SortOrder.descending
    order = "s.id"
    if request.sort_by is not None:
        order = order_of(str(request.sort_by), columns, descending=descending)
    return ListQuery(
        condition=condition_of(request.filter.ast, columns, foreign=foreign or {})
        if request.filter
        else SqlCondition(),
        order=order,
        offset=min(request.start_index_0 or 0, _LAST_INDEX),
        limit=DEFAULT_RESULTS if request.count is None else request.count,
    )
