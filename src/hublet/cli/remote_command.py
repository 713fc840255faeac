"""Remote commands: make a command of a function that calls a hub over HTTP."""

import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from hublet.cli.identity import choose_identity
from hublet.cli.local_command import attach_command, option
from hublet.cli.options import AsJson, Endpoint, Silent, Token
from hublet.cli.output import CommandResult, Table, say, show, show_table

if TYPE_CHECKING:
    from hublet.cli.identity import Identity
    from hublet.client import Refused

REFUSED = 1
WRONG_USAGE = 2
NOT_REACHABLE = 3

_UNAUTHORIZED = 401

_ENDPOINT = option("endpoint", Endpoint, None)
_TOKEN = option("token", Token, None)
_OUTPUT_OPTIONS = (option("as_json", AsJson, False), option("quiet", Silent, False))

# A stream of answers is printed as they come.
CommandOutput = CommandResult | Table | Generator[CommandResult]


def add_remote_command(
    group: typer.Typer,
    name: str,
    work: Callable[..., CommandOutput],
    *,
    example: str,
    anonymously: bool = False,
) -> None:
    """Add a command that asks a hub.

    `work` gets the hub, as whoever is logged in, and then its own arguments, which become those
    of the command. Anonymously no token goes along, and none is asked for.
    """

    def command(
        *,
        endpoint: str | None,
        token: str | None = None,
        as_json: bool,
        quiet: bool,
        **given: Any,
    ) -> None:
        with report_errors():
            identity = choose_identity(endpoint, token=token, anonymously=anonymously)
            with _explain_errors(identity):
                _show(work(identity.hub, **given), as_json=as_json, quiet=quiet)

    options = (
        (_ENDPOINT, *_OUTPUT_OPTIONS) if anonymously else (_ENDPOINT, _TOKEN, *_OUTPUT_OPTIONS)
    )
    attach_command(group, name, work, command, options=options, example=example)


def _show(shown: CommandOutput, *, as_json: bool, quiet: bool) -> None:
    if isinstance(shown, Table):
        show_table(shown, as_json=as_json, quiet=quiet)
        return
    failed = False
    with nullcontext([shown]) if isinstance(shown, CommandResult) else closing(shown) as answers:
        for answer in answers:
            show(answer, as_json=as_json, quiet=quiet)
            failed = failed or answer.failed
    if failed:
        raise typer.Exit(REFUSED)


@contextmanager
def _explain_errors(identity: "Identity") -> Iterator[None]:
    """Add what only this command knows: whose token it was, and who gave an answer like that."""
    from hublet.client import NotUnderstood, Refused

    try:
        yield
    except Refused as error:
        if error.status != _UNAUTHORIZED:
            raise
        fail(f"{_sentence(error)} {identity.advice}")
    except UnicodeError:
        # A terminal that has no such letter.
        raise
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise NotUnderstood(identity.hub.endpoint, error) from error


@contextmanager
def report_errors() -> Iterator[None]:
    """Tell what went wrong in a sentence on stderr, and end with the code that stands for it."""
    from hublet.cli.credentials import CredentialsError
    from hublet.client import (
        ClientError,
        InvalidEndpoint,
        NotReachable,
        NotUnderstood,
        Refused,
    )

    try:
        yield
    except InvalidEndpoint as error:
        fail(str(error), code=WRONG_USAGE)
    except (NotReachable, NotUnderstood) as error:
        fail(str(error), code=NOT_REACHABLE)
    except Refused as error:
        fail(_sentence(error))
    except (ClientError, CredentialsError) as error:
        fail(str(error))


def _sentence(error: "Refused") -> str:
    # Client contract 0.4: some of the hub's sentences are fixed, and have no full stop.
    return f"{error.sentence.removesuffix('.')}."


def fail(sentence: str, *, code: int = REFUSED) -> NoReturn:
    say(f"hublet: {sentence}")
    raise typer.Exit(code)


def confirm(question: str, *, yes: bool) -> None:
    """Go on only when it is wanted: asked on a terminal, said with --yes elsewhere."""
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        fail(f"{question} There is no terminal to ask on: say so with --yes.")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        fail("Nothing was changed.")
