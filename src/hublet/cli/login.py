"""Commands that log in at a hub and out again: login, logout, whoami."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from hublet.cli.output import CommandResult, replace_unprintable, say, show_progress
from hublet.cli.remote_command import (
    add_remote_command,
    choose_identity,
    fail,
    find_overriding_variable,
)

if TYPE_CHECKING:
    from hublet.cli.credentials import Credential
    from hublet.client import Hub

_WHOAMI = "/api/whoami-v2"


def register(app: typer.Typer) -> None:
    add_remote_command(
        app,
        "login",
        login,
        example="hublet login https://hub.example.com",
        anonymously=True,
    )
    add_remote_command(app, "logout", logout, example="hublet logout", anonymously=True)
    add_remote_command(app, "whoami", whoami, example="hublet whoami")


def login(
    hub: "Hub",
    url: Annotated[
        str | None, typer.Argument(metavar="URL", help="The hub, instead of --endpoint.")
    ] = None,
    *,
    token_stdin: Annotated[
        bool, typer.Option("--token-stdin", help="Read a token from standard input instead.")
    ] = False,
    browser: Annotated[
        bool, typer.Option("--browser", help="Open the page in a browser on this machine.")
    ] = False,
) -> CommandResult:
    """Log in at a hub, by allowing it in a browser on any device or with a token."""
    from hublet.cli import credentials

    if url is not None:
        hub = choose_identity(url, anonymously=True).hub
    previous = credentials.find(hub.endpoint)
    credential = _log_in_with_token(hub) if token_stdin else _log_in_by_device(hub, browser=browser)
    credentials.save(hub.endpoint, credential)
    if previous is not None and previous.refresh_token is not None:
        _revoke_previous_login(hub, previous.refresh_token)
    if (variable := find_overriding_variable(hub.endpoint)) is not None:
        say(f"The variable {variable} is set and goes before this login: unset it.")
    return CommandResult(
        data={"endpoint": hub.endpoint, "user": credential.user},
        message=f"You are {replace_unprintable(credential.user)} at {hub.endpoint}, until you log out.",
    )


def logout(hub: "Hub") -> CommandResult:
    """Log out from a hub: what the login was given there is revoked."""
    from hublet.cli import credentials
    from hublet.client import ClientError
    from hublet.client.device_login import revoke

    known = credentials.find(hub.endpoint)
    data = {"endpoint": hub.endpoint, "user": None if known is None else known.user}
    if known is None:
        return CommandResult(data=data, message=f"You are not logged in at {hub.endpoint}.")
    credentials.remove(hub.endpoint)
    if known.refresh_token is None:
        message = f"Forgot your token for {hub.endpoint}. The token itself still works."
        return CommandResult(data=data, message=message)
    try:
        revoke(hub, known.refresh_token)
    except ClientError:
        say("The login is forgotten here, but the hub could not be told, where it works on.")
        raise
    return CommandResult(data=data, message=f"You are logged out from {hub.endpoint}.")


def whoami(hub: "Hub") -> CommandResult:
    """Show who you are at a hub."""
    caller = hub.get(_WHOAMI)
    organizations = ", ".join(replace_unprintable(each["name"]) for each in caller.get("orgs", []))
    message = f"at {hub.endpoint}" + (f", in {organizations}" if organizations else "")
    return CommandResult(
        data={"endpoint": hub.endpoint, **caller},
        text=replace_unprintable(caller["name"]),
        message=message,
    )


def _log_in_with_token(hub: "Hub") -> "Credential":
    if sys.stdin.isatty():
        from getpass import getpass

        token = getpass("Token: ", stream=sys.stderr).strip()
    else:
        token = sys.stdin.read().strip()
    if not token:
        fail("There is no token on standard input.")
    return _credential(hub, token)


def _log_in_by_device(hub: "Hub", *, browser: bool) -> "Credential":
    """Start a device login, and wait until the user allows it in a browser."""
    from hublet.client.device_login import start, wait

    device_login = start(hub)
    say(f"Open {replace_unprintable(device_login.address)}")
    say(f"and allow the code {replace_unprintable(device_login.user_code)}.")
    if browser:
        import webbrowser

        webbrowser.open(device_login.address)
    with show_progress("Waiting for you to allow it"):
        tokens = wait(hub, device_login)
    return _credential(
        hub,
        tokens.access_token,
        refresh_token=tokens.refresh_token,
        expires_at=tokens.expires_at,
    )


def _credential(
    hub: "Hub", token: str, *, refresh_token: str | None = None, expires_at: int | None = None
) -> "Credential":
    from hublet.cli.credentials import Credential
    from hublet.client import Hub

    caller = Hub(endpoint=hub.endpoint, token=token).get(_WHOAMI)
    return Credential(
        user=caller["name"], token=token, refresh_token=refresh_token, expires_at=expires_at
    )


def _revoke_previous_login(hub: "Hub", refresh_token: str) -> None:
    """Revoke the login that a new one replaces; a failure is only reported."""
    from hublet.client import ClientError
    from hublet.client.device_login import revoke

    try:
        revoke(hub, refresh_token)
    except ClientError as error:
        say(f"The login before this one could not be revoked: {error}")
