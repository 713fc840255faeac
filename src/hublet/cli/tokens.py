"""Commands for tokens."""

import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hublet.cli.local_command import add_change_command, add_list_command
from hublet.cli.options import new_group, parse_duration, parse_scopes
from hublet.cli.output import CommandResult, Table

if TYPE_CHECKING:
    from datetime import datetime

    from hublet.accounts.records import User
    from hublet.core.database import Connection, Reader
    from hublet.tokens.records import Grants, Scope, TokenRecord

_User = Annotated[str, typer.Argument(metavar="USER", help="The owner's name.")]


def register(app: typer.Typer) -> None:
    tokens = new_group("Create, list and revoke tokens.")
    add_change_command(
        tokens, "create", create, example="hublet token create ada --scope jobs --org acme"
    )
    add_list_command(tokens, "list", list_tokens, example="hublet token list ada")
    add_change_command(
        tokens, "revoke", revoke, example="hublet token revoke --value-stdin < leaked.txt"
    )
    app.add_typer(tokens, name="token")


async def create(
    conn: "Connection",
    user: _User,
    *,
    role: Annotated[
        Literal["read", "write"] | None, typer.Option(help="What it may do; else write.")
    ] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SCOPE", help="Make it fine-grained, with this scope; may be repeated."
        ),
    ] = None,
    org: Annotated[
        list[str] | None,
        typer.Option(metavar="ORG", help="The scopes hold only in this organization."),
    ] = None,
    name: Annotated[str, typer.Option(metavar="TEXT", help="What it is for.")] = "command line",
    expires_in: Annotated[
        str | None, typer.Option(metavar="TIME", help="How long it works: 90m, 12h, 30d or 8w.")
    ] = None,
    value: Annotated[
        str | None, typer.Option(metavar="TOKEN", help="Import this value instead of a new one.")
    ] = None,
) -> CommandResult:
    """Create a token. It is printed alone on standard output, this once."""
    from hublet.accounts.users.service import get_user
    from hublet.tokens import service
    from hublet.tokens.records import TokenRole

    scopes = _scopes(scope or [], role=role)
    expires_at = _expiry(expires_in)
    owner = await get_user(conn, user)
    grants = await _grants(conn, owner, scopes, organizations=org or [])
    token, text = await service.issue(
        conn,
        user_id=owner.id,
        name=name,
        role=TokenRole(role or "write") if grants is None else TokenRole.fine_grained,
        grants=grants,
        expires_at=expires_at,
        value=value,
    )
    return CommandResult(
        data={"user": owner.name} | _row(token) | {"token": text},
        text=text,
        message=f"Created the token {token.id} of {owner.name}. It is shown this once.",
    )


async def list_tokens(conn: "Reader", user: _User) -> Table:
    """List the tokens of a user that were not revoked."""
    from hublet.accounts.users.service import get_user
    from hublet.tokens import store

    owner = await get_user(conn, user)
    tokens = await store.list_of(conn, user_id=owner.id)
    return Table(
        rows=[_row(token) for token in tokens],
        columns={
            "id": "id",
            "name": "name",
            "token": "hint",
            "role": "role",
            "scopes": "scopes",
            "in": "organizations",
            "created": "createdAt",
            "expires": "expiresAt",
            "last used": "lastUsedAt",
        },
        name="id",
        empty=f"{owner.name} has no tokens.",
    )


async def revoke(
    conn: "Connection",
    user: Annotated[str | None, typer.Argument(metavar="USER", help="The owner's name.")] = None,
    token_id: Annotated[str | None, typer.Argument(metavar="ID", help="The token's id.")] = None,
    value_stdin: Annotated[
        bool, typer.Option("--value-stdin", help="Read the token itself from standard input.")
    ] = False,
) -> CommandResult:
    """Revoke a token for good, by its owner and id or by its value."""
    from hublet.accounts.records import OPERATOR
    from hublet.accounts.users.service import get_user
    from hublet.tokens import service

    if value_stdin is (user is not None) or (user is None) is not (token_id is None):
        raise typer.BadParameter("Give USER and ID, or --value-stdin.")
    if user is not None and token_id is not None:
        owner = await get_user(conn, user)
        await service.revoke(conn, token_id=token_id, user_id=owner.id, reason=OPERATOR.name)
    else:
        value = sys.stdin.read().strip()
        token_id = (await service.revoke_by_value(conn, value, reason=OPERATOR.name)).id
    return CommandResult(
        data={"id": token_id, "revoked": True}, message=f"Revoked the token {token_id}."
    )


def _scopes(names: list[str], *, role: str | None) -> "frozenset[Scope]":
    from hublet.tokens.records import Grants, TokenRole, scopes_of

    scopes = frozenset(parse_scopes(names))
    if role == "read" and (beyond := sorted(scopes - scopes_of(TokenRole.read, Grants()))):
        raise typer.BadParameter(
            f"The scope {beyond[0]} goes beyond --role read.", param_hint="--scope"
        )
    return scopes


async def _grants(
    conn: "Connection", owner: "User", scopes: "frozenset[Scope]", *, organizations: list[str]
) -> "Grants | None":
    """Return the grants of a fine-grained token, or None for a token with a role."""
    from hublet.accounts.errors import NotAMember
    from hublet.accounts.organizations import service, store
    from hublet.tokens.records import Grants, ScopedGrant

    if organizations and not scopes:
        raise typer.BadParameter("It narrows scopes: name them with --scope.", param_hint="--org")
    scoped: list[ScopedGrant] = []
    for name in dict.fromkeys(organizations):
        organization = await service.get(conn, name)
        if await store.role_of(conn, organization.id, user_id=owner.id) is None:
            raise NotAMember(owner.name, organization.name)
        scoped.append(
            ScopedGrant(
                entity_id=organization.id,
                entity_type="org",
                entity_name=organization.name,
                scopes=scopes,
            )
        )
    if scoped:
        return Grants(scoped=tuple(scoped))
    return Grants(everywhere=scopes) if scopes else None


def _expiry(text: str | None) -> "datetime | None":
    from hublet.core.clock import now

    if text is None:
        return None
    length = parse_duration(text)
    if length is None:
        raise typer.BadParameter(
            f"{text} is not a time such as 90m, 12h, 30d or 8w.", param_hint="--expires-in"
        )
    return now() + length


def _row(token: "TokenRecord") -> dict[str, object]:
    from hublet.tokens.records import TokenRole, scopes_of

    fine_grained = token.role is TokenRole.fine_grained
    return {
        "id": token.id,
        "name": token.name,
        "role": token.role,
        # Any other role implies its scopes.
        "scopes": sorted(scopes_of(token.role, token.grants)) if fine_grained else None,
        "organizations": [grant.entity_name for grant in token.grants.scoped],
        "hint": token.hint,
        "createdAt": token.created_at,
        "expiresAt": token.expires_at,
        "lastUsedAt": token.last_used_at,
    }
