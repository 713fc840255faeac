"""Remote commands: turn a function on a hub's API into a command, and choose its hub and token."""

import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import typer

from hublet.cli.environment import first_variable, first_variable_set
from hublet.cli.local_command import attach_command, option
from hublet.cli.options import AsJson, Endpoint, Silent, Token
from hublet.cli.output import CommandResult, Table, say, show, show_table

if TYPE_CHECKING:
    from hublet.client import Hub, Refused

REFUSED = 1
WRONG_USAGE = 2
NOT_REACHABLE = 3

DEFAULT_ENDPOINT = "http://localhost:8000"

_ENDPOINT_VARIABLES = ("HUBLET_ENDPOINT", "HF_ENDPOINT")
_TOKEN_VARIABLES = ("HUBLET_TOKEN", "HF_TOKEN")
_UNAUTHORIZED = 401

_ENDPOINT = option("endpoint", Endpoint, None)
_TOKEN = option("token", Token, None)
_OUTPUT_OPTIONS = (option("as_json", AsJson, False), option("quiet", Silent, False))

# The results of a generator are printed as they come.
CommandOutput = CommandResult | Table | Generator[CommandResult]


def add_remote_command(
    group: typer.Typer,
    name: str,
    work: Callable[..., CommandOutput],
    *,
    example: str,
    anonymously: bool = False,
) -> None:
    """Add a command that calls a hub.

    `work` gets the hub and then its own arguments, which become those of the command. An anonymous
    command sends no token and has no option for one.
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


def _show(output: CommandOutput, *, as_json: bool, quiet: bool) -> None:
    if isinstance(output, Table):
        show_table(output, as_json=as_json, quiet=quiet)
        return
    failed = False
    with nullcontext([output]) if isinstance(output, CommandResult) else closing(output) as results:
        for result in results:
            show(result, as_json=as_json, quiet=quiet)
            failed = failed or result.failed
    if failed:
        raise typer.Exit(REFUSED)


class Identity(NamedTuple):
    hub: "Hub"
    # What the user can do if the hub refuses the token, or requires one.
    advice: str


def choose_identity(
    endpoint: str | None = None, *, token: str | None = None, anonymously: bool = False
) -> Identity:
    """Return the hub and the token of a command: flags first, then variables, then the login.

    A token in a variable does not replace a login unless a hub is named too: it may belong to the
    public service, and must not be sent to this hub.
    """
    from hublet.cli import credentials
    from hublet.cli.credentials import current_token
    from hublet.client import Hub, read_endpoint

    named_endpoint = endpoint or first_variable(*_ENDPOINT_VARIABLES)
    address = read_endpoint(named_endpoint or credentials.find_last_endpoint() or DEFAULT_ENDPOINT)
    if anonymously:
        return Identity(Hub(endpoint=address), _advice_to_log_in())
    if token:
        return Identity(Hub(endpoint=address, token=token), "That token came from --token.")
    variable = first_variable_set(*_TOKEN_VARIABLES)
    if variable is not None and (named_endpoint or credentials.find(address) is None):
        return Identity(
            Hub(endpoint=address, token=first_variable(variable)), _advice_for_variable(variable)
        )
    saved = current_token(address)
    return Identity(
        Hub(endpoint=address, token=saved),
        _advice_to_log_in() if saved is None else _advice_for_login(),
    )


def find_overriding_variable(endpoint: str) -> str | None:
    """Return the variable whose token takes precedence over a login at this hub."""
    named_endpoint = first_variable(*_ENDPOINT_VARIABLES) or ""
    is_named = named_endpoint.strip().rstrip("/") == endpoint
    return first_variable_set(*_TOKEN_VARIABLES) if is_named else None


def _advice_to_log_in() -> str:
    return "Log in with `hublet login`, or give a token with --token or HUBLET_TOKEN."


def _advice_for_variable(variable: str) -> str:
    return f"That token came from the variable {variable}: unset it, or set one of this hub."


def _advice_for_login() -> str:
    from hublet.cli.credentials import path

    return f"That token is the one of your login in {path()}: log in again with `hublet login`."


@contextmanager
def _explain_errors(identity: Identity) -> Iterator[None]:
    """Add where a refused token came from, and which hub sent an unexpected response."""
    from hublet.client import NotUnderstood, Refused

    try:
        yield
    except Refused as error:
        if error.status != _UNAUTHORIZED:
            raise
        fail(f"{_sentence(error)} {identity.advice}")
    except UnicodeError:
        # The terminal cannot print a character; the hub is not to blame.
        raise
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise NotUnderstood(identity.hub.endpoint, error) from error


@contextmanager
def report_errors() -> Iterator[None]:
    """Print an error of the client on stderr, and exit with its code."""
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
    """Exit unless the user confirms, on a terminal or with --yes."""
    if yes:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        fail(f"{question} There is no terminal to ask on: say so with --yes.")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        fail("Nothing was changed.")
