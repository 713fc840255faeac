"""Commands for users."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from hublet.cli.local_command import add_change_command, add_list_command
from hublet.cli.local_hub import read_all_pages
from hublet.cli.options import AnyName, new_group
from hublet.cli.output import CommandResult, Table

if TYPE_CHECKING:
    from hublet.accounts.records import User
    from hublet.core.database import Connection, Reader

_Name = Annotated[str, typer.Argument(metavar="NAME", help="The user's name.")]
_Password = Annotated[
    str | None,
    typer.Option("--password", metavar="TEXT", help="The password; else one is made up."),
]
_FromStdin = Annotated[
    bool, typer.Option("--password-stdin", help="Read the password from standard input.")
]


def register(app: typer.Typer) -> None:
    users = new_group("Add, invite, list, disable and enable users.")
    add_change_command(
        users, "add", add,
        example="hublet user add ada --email ada@example.com --admin",
    )  # fmt: skip
    add_list_command(users, "list", list_users, example="hublet user list --quiet")
    add_change_command(users, "disable", disable, example="hublet user disable ada")
    add_change_command(users, "enable", enable, example="hublet user enable ada")
    add_change_command(users, "password", set_password, example="hublet user password ada")
    add_change_command(users, "reset-link", make_reset_link, example="hublet user reset-link ada")
    add_change_command(
        users, "invite", invite, example="hublet user invite --organization analytical --role write"
    )
    app.add_typer(users, name="user")


async def add(
    conn: "Connection",
    name: _Name,
    *,
    email: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="A verified e-mail address.")
    ] = None,
    fullname: Annotated[str | None, typer.Option(metavar="TEXT", help="The name to show.")] = None,
    password: _Password = None,
    password_stdin: _FromStdin = False,
    admin: Annotated[
        bool, typer.Option("--admin", help="Make an administrator of the hub.")
    ] = False,
    any_name: AnyName = False,
) -> CommandResult:
    """Create a user. Without a password, one is made up and printed this once."""
    from hublet.accounts.users import service

    given = _read_password(password, from_stdin=password_stdin)
    chosen = _new_password() if given is None else given
    user = await service.create_user(
        conn,
        name,
        fullname=fullname,
        email=email,
        password=chosen,
        is_admin=admin,
        any_name=any_name,
    )
    return _password_result(
        user, chosen if given is None else None, message=f"Created the user {user.name}."
    )


async def list_users(conn: "Reader") -> Table:
    """List all users, oldest first."""
    from hublet.accounts.users import store

    users = await read_all_pages(
        lambda after: store.list_all(conn, after=after), lambda user: user.id
    )
    return Table(
        rows=[_row(user) for user in users],
        columns={
            "name": "name",
            "full name": "fullname",
            "type": "type",
            "admin": "isAdmin",
            "disabled": "disabled",
            "created": "createdAt",
        },
        name="name",
        empty="There are no users yet.",
    )


async def disable(conn: "Connection", name: _Name) -> CommandResult:
    """Switch a user off: the tokens and the password fail from now on."""
    from hublet.accounts.users import service

    user = await service.get_user(conn, name)
    await service.disable_user(conn, user)
    outcome = (
        "was disabled already" if user.disabled_at else "is disabled: tokens and password fail"
    )
    return _disabled_result(user, disabled=True, message=f"{user.name} {outcome}.")


async def enable(conn: "Connection", name: _Name) -> CommandResult:
    """Switch a disabled user on again."""
    from hublet.accounts.users import service

    user = await service.get_user(conn, name)
    await service.enable_user(conn, user)
    outcome = "is enabled again" if user.disabled_at else "was not disabled"
    return _disabled_result(user, disabled=False, message=f"{user.name} {outcome}.")


async def set_password(
    conn: "Connection", name: _Name, password: _Password = None, password_stdin: _FromStdin = False
) -> CommandResult:
    """Set a user's password. Without one, a password is made up and printed this once."""
    from hublet.accounts.users import service

    given = _read_password(password, from_stdin=password_stdin)
    chosen = _new_password() if given is None else given
    user = await service.get_user(conn, name)
    await service.set_password(conn, user, chosen)
    return _password_result(
        user, chosen if given is None else None, message=f"{user.name} has a new password."
    )


async def make_reset_link(conn: "Connection", name: _Name) -> CommandResult:
    """Print a link that lets a user choose a new password, once and within an hour."""
    from hublet.accounts.users import service
    from hublet.login import password_resets

    user = await service.get_user(conn, name)
    link = await password_resets.create_link(conn, user)
    return CommandResult(
        data={"id": user.id, "name": user.name, "link": link},
        text=link,
        message=f"Send this to {user.name}. It works once, within an hour.",
    )


async def invite(
    conn: "Connection",
    organization: Annotated[
        str | None, typer.Option(metavar="NAME", help="An organization to join as well.")
    ] = None,
    role: Annotated[
        str, typer.Option(metavar="ROLE", help="The role there: read, contributor, write, admin.")
    ] = "read",
    email: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Mail it there, if the hub sends mails.")
    ] = None,
) -> CommandResult:
    """Print a link that lets somebody create an account, once and within 7 days."""
    from hublet.accounts import invitations
    from hublet.accounts.organizations import service
    from hublet.accounts.records import OPERATOR, Role

    if role not in set(Role):
        raise typer.BadParameter("One of read, contributor, write, admin.", param_hint="--role")
    invitation, link = await invitations.create(
        conn,
        OPERATOR,
        organization=None if organization is None else await service.get(conn, organization),
        role=Role(role),
        email=email,
    )
    return CommandResult(
        data={"id": invitation.id, "link": link},
        text=link,
        message="Send this to one person. It works once, within 7 days.",
    )


def _read_password(password: str | None, *, from_stdin: bool) -> str | None:
    if not from_stdin:
        return password
    if password is not None:
        raise typer.BadParameter("Give --password or --password-stdin, not both.")
    if text := sys.stdin.readline().rstrip("\r\n"):
        return text
    raise typer.BadParameter("Standard input is empty.", param_hint="--password-stdin")


def _new_password() -> str:
    from hublet.accounts.passwords import new_password

    return new_password()


def _password_result(user: "User", generated: str | None, *, message: str) -> CommandResult:
    """Return a result with the password only if it was generated here."""
    data = {"id": user.id, "name": user.name}
    if generated is None:
        return CommandResult(data=data, message=message)
    return CommandResult(
        data=data | {"password": generated},
        text=f"password  {generated}",
        message=f"{message} The password is shown this once.",
    )


def _disabled_result(user: "User", *, disabled: bool, message: str) -> CommandResult:
    return CommandResult(
        data={"id": user.id, "name": user.name, "disabled": disabled}, message=message
    )


def _row(user: "User") -> dict[str, object]:
    return {
        "id": user.id,
        "name": user.name,
        "fullname": user.fullname,
        "type": user.type,
        "isAdmin": user.is_admin,
        "disabled": user.disabled_at is not None,
        "createdAt": user.created_at,
    }
