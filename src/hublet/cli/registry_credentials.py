"""Commands for credentials at other registries, which jobs use when they pull an image."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from hublet.cli.local_command import add_change_command, add_list_command
from hublet.cli.options import new_group
from hublet.cli.output import CommandResult, Table

if TYPE_CHECKING:
    from hublet.core.database import Connection, Reader

_Host = Annotated[
    str, typer.Argument(metavar="REGISTRY", help="As in names of images: docker.io, host:5000.")
]
_Owner = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The user or organization whose jobs use them; else all."),
]


def register(app: typer.Typer) -> None:
    group = new_group("Log in to other registries when jobs pull images.")
    add_change_command(
        group,
        "set",
        set_credential,
        example="hublet registry-credentials set ghcr.io --username ada < token.txt",
    )
    add_list_command(
        group, "list", list_credentials, example="hublet registry-credentials list --owner ada"
    )
    add_change_command(
        group, "remove", remove, example="hublet registry-credentials remove ghcr.io"
    )
    app.add_typer(group, name="registry-credentials")


async def set_credential(
    conn: "Connection",
    host: _Host,
    *,
    username: Annotated[str, typer.Option(metavar="NAME", help="The name there.")],
    owner: _Owner = None,
) -> CommandResult:
    """Store a login; the password or token is read from standard input, and never shown."""
    from hublet.registry import credentials

    secret = sys.stdin.readline().rstrip("\r\n")
    stored = await credentials.set_credential(
        conn, await _owner_id(conn, owner), host, username=username, secret=secret
    )
    return CommandResult(
        data={"host": stored.host, "username": stored.username},
        text=stored.host,
        message=f"Jobs of {owner or 'the hub'} log in to {stored.host} as {stored.username}.",
    )


async def list_credentials(conn: "Reader", *, owner: _Owner = None) -> Table:
    """List the registries with a login, without the secrets."""
    from hublet.registry import credentials

    stored = await credentials.list_credentials(conn, await _owner_id(conn, owner))
    return Table(
        rows=[
            {"host": each.host, "username": each.username, "createdAt": each.created_at}
            for each in stored
        ],
        columns={"registry": "host", "username": "username", "created": "createdAt"},
        name="host",
        empty="There are no credentials.",
    )


async def remove(conn: "Connection", host: _Host, *, owner: _Owner = None) -> CommandResult:
    """Remove a login."""
    from hublet.registry import credentials

    await credentials.remove_credential(conn, await _owner_id(conn, owner), host)
    return CommandResult(
        data={"host": host}, text=host, message=f"Removed the credentials for {host}."
    )


async def _owner_id(conn: "Reader", name: str | None) -> str:
    from hublet.accounts.errors import UserNotFound
    from hublet.accounts.organizations import service as organizations
    from hublet.accounts.users import service as users
    from hublet.registry import credentials

    if name is None:
        return credentials.HUB
    try:
        return (await users.get_user(conn, name)).id
    except UserNotFound:
        return (await organizations.get(conn, name)).id
