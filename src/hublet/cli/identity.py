"""Identity of a remote command: which hub it calls and with which token (flags, then variables,
then the login).
"""

from typing import TYPE_CHECKING, NamedTuple

from hublet.cli.environment import first_variable, first_variable_set

if TYPE_CHECKING:
    from hublet.client import Hub

DEFAULT_ENDPOINT = "http://127.0.0.1:8000"

_ENDPOINTS = ("HUBLET_ENDPOINT", "HF_ENDPOINT")
_TOKENS = ("HUBLET_TOKEN", "HF_TOKEN")


class Identity(NamedTuple):
    hub: "Hub"
    # What to do when the hub does not take the token, or wants one.
    advice: str


def choose_identity(
    endpoint: str | None = None, *, token: str | None = None, anonymously: bool = False
) -> Identity:
    """Return the hub that is meant, and as whom it is asked.

    Who logged in at a hub, and names no other, means that login: the token in a variable may be
    one of the public service, which is no business of this hub.
    """
    from hublet.cli import credentials
    from hublet.cli.credentials import current_token
    from hublet.client import Hub, read_endpoint

    named = endpoint or first_variable(*_ENDPOINTS)
    address = read_endpoint(named or credentials.find_last_endpoint() or DEFAULT_ENDPOINT)
    if anonymously:
        return Identity(Hub(endpoint=address), _advice_to_log_in())
    if token:
        return Identity(Hub(endpoint=address, token=token), "That token came from --token.")
    variable = first_variable_set(*_TOKENS)
    if variable is not None and (named or credentials.find(address) is None):
        return Identity(
            Hub(endpoint=address, token=first_variable(variable)), _advice_for_variable(variable)
        )
    found = current_token(address)
    return Identity(
        Hub(endpoint=address, token=found),
        _advice_to_log_in() if found is None else _advice_for_login(),
    )


def find_overriding_variable(endpoint: str) -> str | None:
    """Return the variable that goes before a login at this hub, as the variables are now."""
    named = first_variable(*_ENDPOINTS) or ""
    return first_variable_set(*_TOKENS) if named.strip().rstrip("/") == endpoint else None


def _advice_to_log_in() -> str:
    return "Log in with `hublet login`, or give a token with --token or HUBLET_TOKEN."


def _advice_for_variable(variable: str) -> str:
    return f"That token came from the variable {variable}: unset it, or set one of this hub."


def _advice_for_login() -> str:
    from hublet.cli.credentials import path

    return f"That token is the one of your login in {path()}: log in again with `hublet login`."
