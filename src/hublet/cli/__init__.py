"""The `hublet` command. Modules are imported by the command that needs them, so that help is fast."""

import sys
from typing import NoReturn

import typer

from hublet.cli import demo, doctor, oauth_apps, organizations, serving, tasks, tokens, users
from hublet.cli.options import NOT_GIVEN

app = typer.Typer(
    name="hublet",
    help="The Hub you can start inside a test and keep in production.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=NOT_GIVEN | {"help_option_names": ["-h", "--help"]},
)
for commands in (serving, demo, doctor, users, organizations, tokens, oauth_apps, tasks):
    commands.register(app)


def main() -> NoReturn:
    """Run the command; what a person can mend is told in a sentence, without a traceback."""
    try:
        app()
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
