"""Users, organizations and tokens for tests, one line each."""

from collections.abc import Sequence

from argon2 import PasswordHasher

from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import OPERATOR, Organization, OrganizationPlan, Role, User
from hublet.accounts.users import service as accounts
from hublet.accounts.users import store
from hublet.core.database import Database
from hublet.tokens import service as tokens
from hublet.tokens.records import Grants, Scope, TokenRole

Headers = dict[str, str]

# Strong hashes are tested with the passwords; elsewhere each would take as long as a whole test.
WEAK_HASHER = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)


async def a_user(database: Database, name: str, *, is_admin: bool = False) -> User:
    """Return the user of this name, created if there is none yet."""
    async with database.transaction() as conn:
        found = await store.find_by_name(conn, name)
        return found or await accounts.create_user(conn, name, is_admin=is_admin)


async def a_token(
    database: Database,
    name: str,
    *,
    role: TokenRole = TokenRole.write,
    scopes: Sequence[str] | None = None,
    is_admin: bool = False,
) -> str:
    """Return the value of a new token; scopes make it a fine-grained one."""
    user = await a_user(database, name, is_admin=is_admin)
    grants = None if scopes is None else Grants(everywhere=frozenset(map(Scope, scopes)))
    async with database.transaction() as conn:
        _, value = await tokens.issue(
            conn,
            user_id=user.id,
            name=f"{name}'s token",
            role=role if grants is None else TokenRole.fine_grained,
            grants=grants,
        )
    return value


async def sign_in(
    database: Database,
    name: str,
    *,
    role: TokenRole = TokenRole.write,
    scopes: Sequence[str] | None = None,
    is_admin: bool = False,
) -> Headers:
    """Return the headers of a request by this user, who is created if need be."""
    value = await a_token(database, name, role=role, scopes=scopes, is_admin=is_admin)
    return {"Authorization": f"Bearer {value}"}


async def revoke(database: Database, headers: Headers) -> None:
    """Revoke the token of these headers, as its owner does."""
    async with database.transaction() as conn:
        value = headers["Authorization"].removeprefix("Bearer ")
        await tokens.revoke_by_value(conn, value, reason="owner")


async def an_organization(
    database: Database,
    name: str,
    *,
    plan: OrganizationPlan = OrganizationPlan.free,
    members: dict[str, Role] | None = None,
) -> Organization:
    """Return a new organization with these members by name, created if need be."""
    users = {member: await a_user(database, member) for member in members or {}}
    async with database.transaction() as conn:
        organization = await organizations.create(conn, OPERATOR, name, plan=plan)
        for member, role in (members or {}).items():
            await organizations.set_member(conn, OPERATOR, organization, users[member], role)
    return organization
