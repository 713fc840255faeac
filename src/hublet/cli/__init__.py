"""The `hublet` command; each command imports its modules when it runs, so that help is fast."""

import gc
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    import typer

# The modules in the order of the help, and the names of their commands.
_MODULES = {
    "serving": ("serve", "worker", "migrate", "version"),
    "demo": ("demo",),
    "login": ("login", "logout", "whoami"),
    "webhooks": ("webhooks",),
    "notifications": ("notifications",),
    "search": ("search",),
    "collections": ("collections",),
    "sql": ("sql",),
    "jobs": ("jobs",),
    "revoke": ("revoke",),
    "doctor": ("doctor",),
    "users": ("user",),
    "organizations": ("org",),
    "tokens": ("token",),
    "registry_credentials": ("registry-credentials",),
    "oauth_apps": ("oauth",),
    "tasks": ("task",),
    "storage": ("storage", "backup", "restore"),
}


def application(arguments: Sequence[str] = ()) -> "typer.Typer":
    """Return the command with all of its parts, or only with the part that these arguments name."""
    import typer

    from hublet.cli.options import NOT_GIVEN, without_command

    app = typer.Typer(
        name="hublet",
        help="The Hub you can start inside a test and keep in production.",
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings=NOT_GIVEN | {"help_option_names": ["-h", "--help"]},
    )
    # Without a callback, typer would make a single command the whole application.
    app.callback(help=app.info.help)(without_command)
    named = [name for name, commands in _MODULES.items() if set(arguments[:1]) & set(commands)]
    for name in named or _MODULES:
        import_module(f"hublet.cli.{name}").register(app)
    _narrow(app, arguments)
    return app


def _narrow(app: "typer.Typer", arguments: Sequence[str]) -> None:
    """Keep only the command that is named: typer would read the parameters of all of them."""
    if not arguments:
        return
    commands = [each for each in app.registered_commands if each.name == arguments[0]]
    groups = [each for each in app.registered_groups if each.name == arguments[0]]
    if commands or groups:
        app.registered_commands, app.registered_groups = commands, groups
    for group in groups:
        if group.typer_instance is not None:
            _narrow(group.typer_instance, arguments[1:])


def _load_application(arguments: Sequence[str]) -> "typer.Typer":
    # Most of a short command is importing, and what that allocates lives until the end: without
    # garbage collection a command takes a fifth less time.
    gc.disable()
    try:
        return application(arguments)
    finally:
        gc.freeze()
        gc.enable()


def main() -> NoReturn:
    """Run the command; an error that a person can correct is printed without a traceback."""
    try:
        _load_application(sys.argv[1:])()
    except Exception as error:
        if not _is_expected(error):
            raise
        sys.stderr.write(f"hublet: {_sentence(error)}\n")
    sys.exit(1)


def _is_expected(error: Exception) -> bool:
    return isinstance(error, _expected_errors())


def _expected_errors() -> tuple[type[Exception], ...]:
    from hublet.core.config import ConfigurationError
    from hublet.core.database.migrations import SchemaError
    from hublet.core.errors import HubError
    from hublet.core.sealing import KeyRingError
    from hublet.core.startup import CannotStart
    from hublet.core.tracing import TracingUnavailable

    return (
        ConfigurationError,
        SchemaError,
        HubError,
        KeyRingError,
        CannotStart,
        TracingUnavailable,
    )


def _sentence(error: Exception) -> str:
    # The reason is for the operator; a caller over HTTP never sees it.
    reason = getattr(error, "reason", None)
    return f"{error} ({reason})" if reason else str(error)
