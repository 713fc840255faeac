"""Commands for organizations and their members."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hublet.cli.local_command import add_change_command, add_list_command
from hublet.cli.local_hub import read_all_pages
from hublet.cli.options import AnyName, new_group
from hublet.cli.output import CommandResult, Table

if TYPE_CHECKING:
    from hublet.accounts.records import Organization, Role, User
    from hublet.core.database import Connection, Reader

# The values of `accounts.records`, written out: importing those would make help slower.
PlanName = Literal["free", "team", "enterprise", "enterprise-plus"]
VisibilityName = Literal["public", "private"]
RoleName = Literal["read", "contributor", "write", "admin"]

_Name = Annotated[str, typer.Argument(metavar="NAME", help="The organization's name.")]
_Organization = Annotated[str, typer.Argument(metavar="ORG", help="The organization's name.")]
_User = Annotated[str, typer.Argument(metavar="USER", help="The user's name.")]


def register(app: typer.Typer) -> None:
    organizations = new_group("Add, list and change organizations.")
    add_change_command(
        organizations,
        "add",
        add,
        example="hublet org add acme --plan team --owner ada",
    )
    add_list_command(organizations, "list", list_organizations, example="hublet org list --json")
    add_change_command(organizations, "plan", set_plan, example="hublet org plan acme enterprise")
    add_change_command(
        organizations,
        "visibility",
        set_visibility,
        example="hublet org visibility acme private",
    )
    members = new_group("Who belongs to an organization, as what.")
    add_change_command(
        members, "add", add_member, example="hublet org member add acme ada --role admin"
    )
    add_change_command(members, "role", set_role, example="hublet org member role acme ada write")
    add_change_command(
        members, "remove", remove_member, example="hublet org member remove acme ada"
    )
    add_list_command(members, "list", list_members, example="hublet org member list acme")
    organizations.add_typer(members, name="member")
    add_list_command(
        organizations, "audit", list_audit_log, example="hublet org audit acme --query author:ada"
    )
    tokens = new_group("Tokens that reach an organization.")
    add_list_command(tokens, "list", list_tokens, example="hublet org token list acme")
    add_change_command(
        tokens,
        "revoke",
        revoke_token,
        example="hublet org token revoke acme 6a0c5f1e9b3d2c4a5f6e7d80",
    )
    organizations.add_typer(tokens, name="token")
    add_change_command(
        organizations,
        "network",
        set_network,
        example="hublet org network acme --range 203.0.113.0/24 --restrict",
    )
    app.add_typer(organizations, name="org")


async def add(
    conn: "Connection",
    name: _Name,
    *,
    plan: Annotated[PlanName, typer.Option(help="The plan.")] = "free",
    fullname: Annotated[str | None, typer.Option(metavar="TEXT", help="The name to show.")] = None,
    owner: Annotated[
        str | None, typer.Option(metavar="USER", help="The first member, with the role admin.")
    ] = None,
    any_name: AnyName = False,
) -> CommandResult:
    """Create an organization."""
    from hublet.accounts.organizations import service
    from hublet.accounts.records import OPERATOR, OrganizationPlan
    from hublet.accounts.users.service import get_user

    user = await get_user(conn, owner) if owner is not None else None
    created = await service.create(
        conn,
        OPERATOR,
        name,
        fullname=fullname,
        plan=OrganizationPlan(plan),
        owner=user,
        any_name=any_name,
    )
    return _plan_result(created, message=f"Created the organization {created.name}.")


async def list_organizations(conn: "Reader") -> Table:
    """List all organizations, oldest first."""
    from hublet.accounts.organizations import store

    organizations = await read_all_pages(
        lambda after: store.list_all(conn, after=after), lambda each: each.id
    )
    return Table(
        rows=[_row(organization) for organization in organizations],
        columns={"name": "name", "full name": "fullname", "plan": "plan", "created": "createdAt"},
        name="name",
        empty="There are no organizations yet.",
    )


async def set_plan(
    conn: "Connection",
    name: _Name,
    plan: Annotated[PlanName, typer.Argument(metavar="PLAN", help="The plan.")],
) -> CommandResult:
    """Put an organization on another plan."""
    from hublet.accounts.organizations import service
    from hublet.accounts.records import OPERATOR, OrganizationPlan

    organization = await service.get(conn, name)
    changed = await service.set_plan(conn, OPERATOR, organization, OrganizationPlan(plan))
    return _plan_result(changed, message=f"{changed.name} is on the plan {changed.plan}.")


async def set_visibility(
    conn: "Connection",
    name: _Name,
    visibility: Annotated[
        VisibilityName, typer.Argument(metavar="VISIBILITY", help="public or private.")
    ],
) -> CommandResult:
    """Say who sees new repositories when their creator does not say."""
    from hublet.accounts.organizations import service
    from hublet.accounts.records import OPERATOR, DefaultVisibility

    organization = await service.get(conn, name)
    changed = await service.set_default_visibility(
        conn, OPERATOR, organization, DefaultVisibility(visibility)
    )
    return CommandResult(
        data={"id": changed.id, "name": changed.name, "defaultVisibility": visibility},
        message=f"New repositories of {changed.name} are {visibility} unless their creator says "
        "otherwise.",
    )


async def add_member(
    conn: "Connection",
    organization: _Organization,
    user: _User,
    role: Annotated[RoleName, typer.Option(help="What the member may do.")] = "read",
) -> CommandResult:
    """Add a member to an organization."""
    from hublet.core.errors import Conflict

    target, member, current = await _find(conn, organization, user)
    if current is not None and current != role:
        # The default role must not take rights away from somebody who has them already.
        raise Conflict(
            f"{member.name} is a member of {target.name} already, with the role {current}: change "
            "that with hublet org member role."
        )
    return await _set_role(conn, target, member, role)


async def set_role(
    conn: "Connection",
    organization: _Organization,
    user: _User,
    role: Annotated[RoleName, typer.Argument(metavar="ROLE", help="What the member may do.")],
) -> CommandResult:
    """Give a member another role."""
    from hublet.accounts.errors import NotAMember

    target, member, current = await _find(conn, organization, user)
    if current is None:
        raise NotAMember(member.name, target.name)
    return await _set_role(conn, target, member, role)


async def remove_member(
    conn: "Connection", organization: _Organization, user: _User
) -> CommandResult:
    """Remove a member from an organization."""
    from hublet.accounts.organizations import service
    from hublet.accounts.records import OPERATOR

    target, member, _ = await _find(conn, organization, user)
    await service.remove_member(conn, OPERATOR, target, member)
    return CommandResult(
        data={"organization": target.name, "user": member.name, "role": None},
        message=f"{member.name} is no longer a member of {target.name}.",
    )


async def list_members(conn: "Reader", organization: _Organization) -> Table:
    """List the members of an organization."""
    from hublet.accounts.organizations import service, store

    target = await service.get(conn, organization)
    members = await read_all_pages(
        lambda after: store.list_members(conn, target.id, after=after),
        lambda member: member.user.id,
    )
    return Table(
        rows=[
            {"id": each.user.id, "name": each.user.name, "fullname": each.user.fullname}
            | {"role": each.role, "disabled": each.user.disabled_at is not None}
            for each in members
        ],
        columns={"name": "name", "full name": "fullname", "role": "role", "disabled": "disabled"},
        name="name",
        empty=f"{target.name} has no members.",
    )


async def list_audit_log(
    conn: "Reader",
    organization: _Organization,
    query: Annotated[
        str, typer.Option(metavar="TEXT", help="Such as `author:ada type:repo.create engine`.")
    ] = "",
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="At most so many lines.")] = 1000,
) -> Table:
    """List what was changed in an organization, newest first; --json for all of each line."""
    from hublet.accounts.organizations import audit_store, service

    target = await service.get(conn, organization)
    lines = await audit_store.list_of(conn, target.id, audit_store.parse_query(query), limit=limit)
    return Table(
        rows=[
            {"id": each.id, "at": each.at, "actor": each.actor_name, "action": each.action}
            | {"target": each.target, "details": each.details, "address": each.address}
            for each in lines
        ],
        columns={"at": "at", "actor": "actor", "action": "action", "target": "target"},
        name="id",
        empty="Nothing was changed.",
    )


async def list_tokens(conn: "Reader", organization: _Organization) -> Table:
    """List the tokens of members that reach an organization."""
    from hublet.accounts.organizations import service
    from hublet.tokens import store

    target = await service.get(conn, organization)
    found = await read_all_pages(
        lambda after: store.list_for_organization(conn, target.id, after=after),
        lambda each: each.token.id,
    )
    return Table(
        rows=[
            {"id": each.token.id, "user": each.user_name, "name": each.token.name}
            | {"role": each.token.role, "hint": each.token.hint, "state": each.state}
            | {"lastUsedAt": each.token.last_used_at}
            for each in found
        ],
        columns={"id": "id", "user": "user", "name": "name", "role": "role"}
        | {"token": "hint", "state": "state", "last used": "lastUsedAt"},
        name="id",
        empty=f"No token reaches {target.name}.",
    )


async def revoke_token(
    conn: "Connection",
    organization: _Organization,
    token: Annotated[str, typer.Argument(metavar="ID", help="The token's id, as the list has it.")],
) -> CommandResult:
    """Cut a token off from an organization, for good; elsewhere it works on."""
    from hublet.accounts.organizations import service
    from hublet.accounts.records import OPERATOR
    from hublet.tokens import service_accounts

    target = await service.get(conn, organization)
    found = await service_accounts.cut_off(conn, OPERATOR, target, token)
    return CommandResult(
        data={"id": found.token.id, "user": found.user_name, "state": found.state},
        message=f"The token {found.token.name} of {found.user_name} does not reach {target.name} "
        "any more.",
    )


async def set_network(
    conn: "Connection",
    organization: _Organization,
    *,
    ranges: Annotated[
        list[str] | None,
        typer.Option("--range", metavar="CIDR", help="A network; give it again for more."),
    ] = None,
    restrict: Annotated[
        bool | None, typer.Option(help="Whether members reach it from these networks alone.")
    ] = None,
    need_token: Annotated[
        bool | None, typer.Option(help="Whether requests from these networks need a token.")
    ] = None,
) -> CommandResult:
    """Show from which networks members reach an organization, or change it."""
    from hublet.accounts.organizations import security, service
    from hublet.accounts.organizations.schemas import NetworkSettings
    from hublet.accounts.records import OPERATOR

    target = await service.get(conn, organization)
    networks = await security.update(
        conn,
        OPERATOR,
        target,
        ip_ranges=security.parse_ranges(ranges) if ranges else None,
        is_restricted=restrict,
        needs_token=need_token,
        by_operator=True,
    )
    names = ", ".join(map(str, networks.ip_ranges)) or "no networks"
    reach = "from these alone" if networks.is_restricted else "from everywhere"
    return CommandResult(
        data=NetworkSettings.of(networks).model_dump(),
        message=f"{target.name} has {names}; members reach it {reach}.",
    )


async def _find(
    conn: "Connection", organization: str, user: str
) -> tuple["Organization", "User", "Role | None"]:
    from hublet.accounts.organizations import service, store
    from hublet.accounts.users.service import get_user

    target = await service.get(conn, organization)
    member = await get_user(conn, user)
    return target, member, await store.role_of(conn, target.id, user_id=member.id)


async def _set_role(
    conn: "Connection", organization: "Organization", user: "User", role: RoleName
) -> CommandResult:
    from hublet.accounts.organizations import service
    from hublet.accounts.records import OPERATOR, Role

    await service.set_member(conn, OPERATOR, organization, user, Role(role))
    return CommandResult(
        data={"organization": organization.name, "user": user.name, "role": role},
        message=f"{user.name} is a member of {organization.name} with the role {role}.",
    )


def _plan_result(organization: "Organization", *, message: str) -> CommandResult:
    return CommandResult(
        data={"id": organization.id, "name": organization.name, "plan": organization.plan},
        message=message,
    )


def _row(organization: "Organization") -> dict[str, object]:
    return {
        "id": organization.id,
        "name": organization.name,
        "fullname": organization.fullname,
        "plan": organization.plan,
        "createdAt": organization.created_at,
    }
