"""Demo data: users, organizations and tokens, added step by step where they are missing."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from hublet.accounts.errors import ResourceGroupNameTaken
from hublet.accounts.organizations import service as organizations
from hublet.accounts.organizations import service_accounts
from hublet.accounts.organizations import store as places
from hublet.accounts.passwords import new_password
from hublet.accounts.records import OPERATOR, OrganizationPlan, Role
from hublet.accounts.resource_groups import service as groups
from hublet.accounts.users import service as accounts
from hublet.accounts.users import store as users
from hublet.core import metadata
from hublet.core.clock import now, wire
from hublet.core.database import Connection
from hublet.core.errors import Conflict
from hublet.tokens import service as tokens
from hublet.tokens import store as credentials
from hublet.tokens.records import Grants, Scope, TokenRole

PEOPLE = {
    "ada": "Ada Lovelace",
    "alan": "Alan Turing",
    "grace": "Grace Hopper",
    "katherine": "Katherine Johnson",
}
ORGANIZATIONS = {
    "analytical-engines": ("Analytical Engines", OrganizationPlan.enterprise),
    "night-sky": ("Night Sky Survey", OrganizationPlan.team),
    "open-notebook": ("Open Notebook", OrganizationPlan.free),
}
MEMBERS = (
    ("analytical-engines", "ada", Role.admin),
    ("analytical-engines", "grace", Role.write),
    ("analytical-engines", "alan", Role.contributor),
    ("night-sky", "katherine", Role.admin),
    ("night-sky", "ada", Role.read),
    ("open-notebook", "alan", Role.admin),
)
# The organization, the name, what it is for, and one member with a role.
GROUPS = (
    ("analytical-engines", "research", "What is not public yet", "grace", Role.admin),
    ("night-sky", "observers", "Those who look", "ada", Role.write),
)
ROBOTS = {"engine-robot": ("analytical-engines", Role.write)}
FOLLOWS = (("grace", "ada"), ("alan", "ada"), ("katherine", "grace"))
TOKENS = (
    ("ada", "demo: may do everything", TokenRole.write, None),
    ("grace", "demo: only reads", TokenRole.read, None),
    ("alan", "demo: only webhooks", TokenRole.fine_grained, Scope.webhooks),
    ("engine-robot", "demo: only jobs", TokenRole.fine_grained, Scope.jobs),
)

_METADATA_KEY = "demo"


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    what: str
    name: str
    detail: str
    # A password or token, which is not stored in plain text.
    secret: str | None = None


async def fill(conn: Connection) -> list[Addition]:
    """Add what is missing of the demo data, or refuse a hub that has other users of these names."""
    if await metadata.find(conn, _METADATA_KEY) is None:
        await _refuse_taken_names(conn)
        await metadata.set_value(conn, _METADATA_KEY, wire(now()))
    return [addition for step in STEPS for addition in await step(conn)]


async def _refuse_taken_names(conn: Connection) -> None:
    for name in (*PEOPLE, *ORGANIZATIONS, *ROBOTS):
        if await users.find_by_name(conn, name) or await places.find_by_name(conn, name):
            raise Conflict(
                f"The name {name} belongs to somebody who is not of the demo: use a hub of its "
                "own, with --data-dir."
            )


async def _add_people(conn: Connection) -> list[Addition]:
    added: list[Addition] = []
    for name, fullname in PEOPLE.items():
        if await users.find_by_name(conn, name) is None:
            password = new_password()
            await accounts.create_user(
                conn, name, fullname=fullname, email=f"{name}@demo.example", password=password
            )
            added.append(Addition(what="user", name=name, detail=fullname, secret=password))
    return added


async def _add_organizations(conn: Connection) -> list[Addition]:
    added: list[Addition] = []
    for name, (fullname, plan) in ORGANIZATIONS.items():
        if await places.find_by_name(conn, name) is None:
            await organizations.create(conn, OPERATOR, name, fullname=fullname, plan=plan)
            added.append(Addition(what="organization", name=name, detail=plan))
    return added


async def _add_members(conn: Connection) -> list[Addition]:
    added: list[Addition] = []
    for name, member, role in MEMBERS:
        organization = await organizations.get(conn, name)
        user = await accounts.get_user(conn, member)
        if await places.role_of(conn, organization.id, user_id=user.id) is None:
            await organizations.set_member(conn, OPERATOR, organization, user, role)
            added.append(Addition(what="member", name=member, detail=f"{role} in {name}"))
    return added


async def _add_groups(conn: Connection) -> list[Addition]:
    added: list[Addition] = []
    for place, name, description, member, role in GROUPS:
        organization = await organizations.get(conn, place)
        user = await accounts.get_user(conn, member)
        with suppress(ResourceGroupNameTaken):
            group = await groups.create(
                conn, OPERATOR, organization, name=name, description=description
            )
            await groups.set_member(conn, OPERATOR, organization, group, user, role)
            added.append(Addition(what="resource group", name=name, detail=f"in {place}"))
    return added


async def _add_robots(conn: Connection) -> list[Addition]:
    added: list[Addition] = []
    for name, (place, role) in ROBOTS.items():
        if await users.find_by_name(conn, name) is None:
            organization = await organizations.get(conn, place)
            await service_accounts.create(conn, OPERATOR, organization, name, role=role)
            added.append(Addition(what="service account", name=name, detail=f"{role} in {place}"))
    return added


async def _add_follows(conn: Connection) -> list[Addition]:
    added: list[Addition] = []
    for name, followed in FOLLOWS:
        follower_id = (await accounts.get_user(conn, name)).id
        account_id = (await accounts.get_user(conn, followed)).id
        if not await accounts.is_following(conn, viewer_id=follower_id, account_id=account_id):
            await accounts.follow(conn, follower_id=follower_id, account_id=account_id)
            added.append(Addition(what="follow", name=name, detail=f"follows {followed}"))
    return added


async def _add_tokens(conn: Connection) -> list[Addition]:
    added: list[Addition] = []
    for owner, name, role, scope in TOKENS:
        user = await accounts.get_user(conn, owner)
        known = {token.name for token in await credentials.list_of(conn, user_id=user.id)}
        if name not in known:
            grants = Grants(everywhere=frozenset({scope})) if scope else None
            _, value = await tokens.issue(
                conn, user_id=user.id, name=name, role=role, grants=grants
            )
            added.append(Addition(what="token", name=owner, detail=name, secret=value))
    return added


# In the order of their dependencies.
STEPS: tuple[Callable[[Connection], Awaitable[list[Addition]]], ...] = (
    _add_people,
    _add_organizations,
    _add_members,
    _add_groups,
    _add_robots,
    _add_follows,
    _add_tokens,
)
