"""Members of an organization, and users that an identity provider keeps there."""

from collections.abc import Mapping

from benchmarks.growth.curves import Operation, Topic
from benchmarks.growth.local_app import cursor_at, ids_from
from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import OPERATOR, OrganizationPlan, Role
from hublet.accounts.users import service as accounts
from hublet.core.ids import new_object_id

_SCHEMA = "urn:ietf:params:scim:schemas:core:2.0:User"
_USERS = "/api/organizations/acme/scim-provisioning/v2/Users"


class Members(Topic):
    """Members of one organization, who watch it as members do."""

    name = "members"
    sizes = (100, 1_000, 10_000, 100_000)

    async def grow(self, before: int, size: int) -> None:
        if not before:
            await self._begin()
        people = [
            (f"member-{number:06}", each)
            for number, each in enumerate(ids_from(before, size - before), start=before)
        ]
        changes: dict[str, list[Mapping[str, object]]] = {
            "users": [{"id": key, "name": name, "fullname": name} for name, key in people],
            "names": [{"key": name, "account_id": key} for name, key in people],
            "emails": [
                {"id": key, "user_id": key, "address": address, "address_key": address}
                for name, key in people
                for address in [f"{name}@acme.test"]
            ],
            "memberships": [{"user_id": key} for _, key in people],
            "watches": [{"user_id": key} for _, key in people],
        }
        for table, rows in changes.items():
            await self.app.add_copies(table, self._rows[table], rows)
        await self.app.index_names()
        self._size, self._middle = size, ids_from(size // 2, 1)[0]

    async def _begin(self) -> None:
        async with self.app.database.transaction() as conn:
            acme = await organizations.create(
                conn, OPERATOR, "acme", plan=OrganizationPlan.enterprise, owner=self.app.user
            )
            bob = await accounts.create_user(conn, "bob", email="bob@acme.test")
            await organizations.set_member(conn, OPERATOR, acme, bob, Role.read)
            await conn.execute(
                "INSERT INTO watches (user_id, type, target_id, since) VALUES ($1, 'org', $2, 0)",
                bob.id, acme.id,
            )  # fmt: skip
        self._bob_token = await self.app.new_token(bob.id)
        keys = {"users": "id", "names": "account_id"}
        self._rows = {
            table: await self.app.row_of(table, **{keys.get(table, "user_id"): bob.id})
            for table in ("users", "names", "emails", "memberships", "watches")
        }
        body = {"name": "engine", "organization": "acme", "private": True}
        await self.app.ask("POST", "/api/repos/create", body)

    def operations(self) -> Mapping[str, Operation]:
        members, middle = "/api/organizations/acme/members", cursor_at(self._middle)
        return {
            "page of the list": self.getting(f"{members}?limit=20"),
            "page in the middle": self.getting(f"{members}?limit=20&{middle}"),
            "search, one found": self.getting(f"{members}?search=mber-{self._size // 2:06}"),
            "overview": self.getting("/api/organizations/acme/overview"),
            "is it a member": Operation(run=self._read_as_bob),
            "a new member": Operation(before=self._new_user, run=self._add_member),
        }

    async def _read_as_bob(self) -> None:
        await self.app.ask("GET", "/api/models/acme/engine/auth-check", token=self._bob_token)

    async def _new_user(self) -> None:
        self._newcomer = f"new-{new_object_id()}"
        async with self.app.database.transaction() as conn:
            await accounts.create_user(conn, self._newcomer)

    async def _add_member(self) -> None:
        path = f"/api/organizations/acme/members/{self._newcomer}"
        await self.app.ask("PUT", path, {"role": "read"})


class ScimUsers(Topic):
    """Managed users of one identity provider."""

    name = "SCIM users"
    sizes = (100, 1_000, 10_000, 100_000)

    async def grow(self, before: int, size: int) -> None:
        if not before:
            await self._begin()
        people = [
            (f"user-{number:06}", each)
            for number, each in enumerate(ids_from(before, size - before), start=before)
        ]
        changes: dict[str, list[Mapping[str, object]]] = {
            "users": [{"id": key, "name": name, "fullname": name} for name, key in people],
            "names": [{"key": name, "account_id": key} for name, key in people],
            "emails": [{"id": key, "user_id": key, **_address(name)} for name, key in people],
            "memberships": [{"user_id": key} for _, key in people],
            "scim_accounts": [{"user_id": key} for _, key in people],
            "scim_users": [
                {
                    "id": key,
                    "user_id": key,
                    "user_name": name,
                    "user_name_key": name,
                    "external_id": f"x-{name}",
                }
                for name, key in people
            ],
            "scim_emails": [{"scim_user_id": key, **_address(name)} for name, key in people],
        }
        for table, rows in changes.items():
            await self.app.add_copies(table, self._rows[table], rows)
        self._size = size

    async def _begin(self) -> None:
        async with self.app.database.transaction() as conn:
            await organizations.create(
                conn,
                OPERATOR,
                "acme",
                plan=OrganizationPlan.enterprise_plus,
                owner=self.app.user,
            )
        self._numbers = iter(range(1_000_000))
        self._last = await self._provision()
        first = await self.app.row_of("scim_users", id=self._last)
        keys = {"users": "id", "names": "account_id"}
        self._rows = {
            table: await self.app.row_of(table, **{keys.get(table, "user_id"): first["user_id"]})
            for table in ("users", "names", "emails", "memberships", "scim_accounts", "scim_users")
        }
        self._rows["scim_emails"] = await self.app.row_of("scim_emails", scim_user_id=first["id"])

    def operations(self) -> Mapping[str, Operation]:
        middle = f"{_USERS}?count=20&startIndex={self._size // 2}"
        named = f"filter=userName%20eq%20%22USER-{self._size // 2:06}%22"
        return {
            "look-up by userName": self.getting(f"{_USERS}?{named}"),
            "first page": self.getting(f"{_USERS}?count=20"),
            "page in the middle": self.getting(middle),
            "a new user": Operation(run=self._provision),
            "end of a user": Operation(before=self._provision, run=self._deactivate),
        }

    async def _provision(self) -> str:
        name = f"new-{next(self._numbers)}"
        body = {
            "schemas": [_SCHEMA],
            "userName": name,
            "externalId": f"00u-{name}",
            "name": {"givenName": "User", "familyName": name},
            "emails": [{"value": f"{name}@corp.test", "primary": True}],
        }
        answer = await self.app.ask("POST", _USERS, body, media_type="application/scim+json")
        self._last = answer.json["id"]
        return self._last

    async def _deactivate(self) -> None:
        body = {
            "schemas": ["urn:ietf:params:scim:api:messages:2.0:PatchOp"],
            "Operations": [{"op": "replace", "value": {"active": False}}],
        }
        path = f"{_USERS}/{self._last}"
        await self.app.ask("PATCH", path, body, media_type="application/scim+json")


def _address(name: str) -> Mapping[str, object]:
    return {"address": f"{name}@corp.test", "address_key": f"{name}@corp.test"}
