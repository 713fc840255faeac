"""An organization's directory, as an identity provider speaks to it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx2

from hublet.accounts.organizations import store as organizations
from hublet.accounts.records import Organization, OrganizationPlan, Role, User
from hublet.accounts.users import service as accounts
from hublet.core.database import Database
from people import Headers, an_organization, sign_in

USER = "urn:ietf:params:scim:schemas:core:2.0:User"
GROUP = "urn:ietf:params:scim:schemas:core:2.0:Group"
PATCH = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
ERROR = "urn:ietf:params:scim:api:messages:2.0:Error"
LIST = "urn:ietf:params:scim:api:messages:2.0:ListResponse"


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    client: httpx2.AsyncClient
    organization: Organization
    headers: Headers
    path: str

    async def ask(self, method: str, path: str, **options: Any) -> httpx2.Response:
        headers = self.headers | options.pop("headers", {})
        return await self.client.request(method, self.path + path, headers=headers, **options)

    async def add(self, user_name: str, **attributes: Any) -> dict[str, Any]:
        """Provision a user; name only the attributes that the test is about."""
        body = {"schemas": [USER], "userName": user_name} | attributes
        response = await self.ask("POST", "/Users", json=body)
        assert response.status_code == 201, response.text
        created: dict[str, Any] = response.json()
        return created

    async def change(self, user: dict[str, Any], *operations: dict[str, Any]) -> dict[str, Any]:
        response = await self.patch(f"/Users/{user['id']}", *operations)
        assert response.status_code == 200, response.text
        changed: dict[str, Any] = response.json()
        return changed

    async def set_active(self, user: dict[str, Any], active: bool) -> dict[str, Any]:  # noqa: FBT001 - as the protocol has it
        return await self.change(user, {"op": "replace", "value": {"active": active}})

    async def patch(self, path: str, *operations: dict[str, Any]) -> httpx2.Response:
        body = {"schemas": [PATCH], "Operations": list(operations)}
        return await self.ask("PATCH", path, json=body)

    async def add_group(self, name: str, members: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
        body = {
            "schemas": [GROUP],
            "displayName": name,
            "members": [{"value": member["id"]} for member in members],
        }
        response = await self.ask("POST", "/Groups", json=body)
        assert response.status_code == 201, response.text
        created: dict[str, Any] = response.json()
        return created

    async def user_names(self, **query: Any) -> list[str]:
        response = await self.ask("GET", "/Users", params=query)
        assert response.status_code == 200, response.text
        return [user["userName"] for user in response.json()["Resources"]]


async def a_directory(
    client: httpx2.AsyncClient, database: Database, *, managed: bool = False, name: str = "acme"
) -> Directory:
    """The directory of an organization that olga owns."""
    headers = await sign_in(database, "olga")
    organization = await an_organization(
        database, name, plan=OrganizationPlan.enterprise_plus, members={"olga": Role.admin}
    )
    kind = "scim-provisioning" if managed else "scim"
    path = f"/api/organizations/{name}/{kind}/v2"
    return Directory(client=client, organization=organization, headers=headers, path=path)


async def a_person(database: Database, name: str, address: str, *, verified: bool = True) -> User:
    """Somebody with an account of their own, and this address."""
    async with database.transaction() as conn:
        user = await accounts.create_user(conn, name)
        await accounts.add_email(conn, user, address, verified=verified)
    return user


async def role_of(database: Database, organization: Organization, name: str) -> Role | None:
    async with database.read() as conn:
        user = await accounts.get_user(conn, name)
        return await organizations.role_of(conn, organization.id, user_id=user.id)


def error_body(status: int, detail: str, scim_type: str | None = None) -> dict[str, Any]:
    named = {} if scim_type is None else {"scimType": scim_type}
    return {"schemas": [ERROR], "status": str(status), **named, "detail": detail}


def last_modified(resource: dict[str, Any]) -> datetime:
    """A whole second has no fraction, so times are not in the order of their texts."""
    return datetime.fromisoformat(resource["meta"]["lastModified"])
