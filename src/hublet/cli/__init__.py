"""The `hublet` command. Modules are imported by the command that needs them, so that help is fast."""

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    import typer

# The modules in the order of the help, and the first words of their commands.
_MODULES = {
    "serving": ("serve", "worker", "migrate", "version"),
    "demo": ("demo",),
    "login": ("login", "logout", "whoami"),
    "webhooks": ("webhooks",),
    "notifications": ("notifications",),
    "jobs": ("jobs",),
    "revoke": ("revoke",),
    "doctor": ("doctor",),
    "users": ("user",),
    "organizations": ("org",),
    "tokens": ("token",),
    "oauth_apps": ("oauth",),
    "tasks": ("task",),
}


def application(words: Sequence[str] = ()) -> "typer.Typer":
    """Return the command: all of it, or what these words need, which is loaded much faster."""
    import typer

    from hublet.cli.options import NOT_GIVEN

    app = typer.Typer(
        name="hublet",
        help="The Hub you can start inside a test and keep in production.",
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings=NOT_GIVEN | {"help_option_names": ["-h", "--help"]},
    )
    # Without it, typer would take a command that is alone for the whole.
    app.callback()(lambda: None)
    named = [name for name, commands in _MODULES.items() if set(words[:1]) & set(commands)]
    for name in named or _MODULES:
        import_module(f"hublet.cli.{name}").register(app)
    return app


def main() -> NoReturn:
    """Run the command; what a person can mend is told in a sentence, without a traceback."""
    try:
        application(sys.argv[1:])()
    except Exception as error:
        if not _is_for_people(error):
            raise
        sys.stderr.write(f"hublet: {_sentence(error)}\n")
    sys.exit(1)


def _is_for_people(error: Exception) -> bool:
    return isinstance(error, _errors_for_people())


def _errors_for_people() -> tuple[type[Exception], ...]:
    from hublet.core.config import ConfigurationError
    from hublet.core.database.migrations import SchemaError
    from hublet.core.errors import HubError
    from hublet.core.opening import CannotStart
    from hublet.core.sealing import KeyRingError

    return (ConfigurationError, SchemaError, HubError, KeyRingError, CannotStart)


def _sentence(error: Exception) -> str:
    # For the operator the reason is the useful part; a caller over HTTP never sees it.
    reason = getattr(error, "reason", None)
    return f"{error} ({reason})" if reason else str(error)
