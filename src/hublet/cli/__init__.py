"""The `hublet` command; each command imports its modules when it runs, so that help is fast."""

import gc
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    import typer

# The modules in the order of the help, and what their commands do: `hublet --help` reads only this.
_MODULES = {
    "serving": {
        "serve": "Start the hub: API and worker, in one process unless --processes says otherwise.",
        "worker": "Run only a worker; any number may run beside the servers of one database.",
        "migrate": "Bring the database to this version's schema (serve and worker do it too).",
        "version": "Print the version.",
    },
    "demo": {
        "demo": "Fill a hub with people, and with a week of what they did: repositories, threads, jobs.",
    },
    "login": {
        "login": "Log in at a hub, by allowing it in a browser on any device or with a token.",
        "logout": "Log out from a hub: what the login was given there is revoked.",
        "whoami": "Show who you are at a hub.",
    },
    "webhooks": {"webhooks": "Manage webhooks, follow their deliveries, try them on this machine."},
    "notifications": {"notifications": "Read the inbox, and choose what reaches it."},
    "search": {"search": "Find what you may see by words, the best first."},
    "collections": {"collections": "Collect models, datasets, papers and more."},
    "sql": {"sql": "Run a query over the files of a dataset; the hub runs it, within its limits."},
    "jobs": {"jobs": "Run jobs, follow what they print, have them run by the clock."},
    "revoke": {
        "revoke": "Have credentials revoked that leaked. Nobody learns which of them existed.",
    },
    "doctor": {
        "doctor": "Check settings, keys, clock, data folder, database and work; exit with 1 on a problem.",
    },
    "users": {"user": "Add, invite, list, disable and enable users."},
    "organizations": {"org": "Add, list and change organizations."},
    "tokens": {"token": "Create, list and revoke tokens."},
    "registry_credentials": {
        "registry-credentials": "Log in to other registries when jobs pull images.",
    },
    "oauth_apps": {"oauth": "What apps may do here."},
    "tasks": {"task": "Look at tasks that failed too often."},
    "storage": {
        "storage": "Look after the storage of large files.",
        "backup": "Save the whole hub in one file, while it runs: database, content, logs and keys.",
        "restore": "Make a hub from a backup, in an empty folder and, on PostgreSQL, an empty database.",
    },
}
_GROUPS = frozenset(
    [
        "webhooks",
        "notifications",
        "collections",
        "jobs",
        "user",
        "org",
        "token",
        "registry-credentials",
        "oauth",
        "task",
        "storage",
    ]
)
# As the first argument they need nothing of any command.
_OF_ALL = frozenset({"-h", "--help", "--version"})


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
    if set(arguments[:1]) & _OF_ALL:
        _add_summaries(app)
        return app
    named = [name for name, commands in _MODULES.items() if set(arguments[:1]) & set(commands)]
    for name in named or _MODULES:
        import_module(f"hublet.cli.{name}").register(app)
    _narrow(app, arguments)
    return app


def _add_summaries(app: "typer.Typer") -> None:
    """Add every command as its line of the help; none of them runs after these options."""
    summaries = {name: line for commands in _MODULES.values() for name, line in commands.items()}
    # The help shows groups of commands last.
    for name in sorted(summaries, key=_GROUPS.__contains__):
        app.command(name, help=summaries[name])(_do_nothing)


def _do_nothing() -> None:
    """Stand for a command that is only named."""


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
