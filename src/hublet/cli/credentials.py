"""Credentials file of `hublet login`: one login per hub, readable only by its owner, renewed in time."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from hublet.cli.environment import config_folder
from hublet.cli.output import say

_FILE = "credentials.json"
_OTHER_USERS = stat.S_IRWXG | stat.S_IRWXO
# A day, as in the public command line.
_RENEW_AHEAD_SECONDS = 86_400


class CredentialsError(Exception):
    """The file cannot be used; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    user: str
    token: str = field(repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    # Seconds since 1970; None for a token that was pasted.
    expires_at: int | None = None


def find(endpoint: str) -> Credential | None:
    entry = _read()["hubs"].get(endpoint)
    return None if entry is None else Credential(**entry)


def find_last_endpoint() -> str | None:
    """Return the hub of the last login that was not ended."""
    last: str | None = _read()["endpoint"]
    return last


def save(endpoint: str, credential: Credential, *, as_last: bool = True) -> None:
    """Save the login at a hub, in place of an earlier one."""
    with _edit_document() as document:
        document["hubs"][endpoint] = asdict(credential)
        if as_last:
            document["endpoint"] = endpoint


def remove(endpoint: str) -> None:
    with _edit_document() as document:
        document["hubs"].pop(endpoint, None)
        if document["endpoint"] == endpoint:
            # Another known hub is a better default than none.
            document["endpoint"] = next(reversed(document["hubs"]), None)


def path() -> Path:
    return config_folder() / "hublet" / _FILE


@contextmanager
def _edit_document() -> Iterator[dict[str, Any]]:
    """Yield the document to be changed under a lock, then write it."""
    import fcntl

    folder = path().parent
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise CredentialsError(f"{folder} cannot be used: {error.strerror}.") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        document = _read()
        yield document
        _write(document)
    finally:
        os.close(lock)


def _read() -> dict[str, Any]:
    import json

    file = path()
    try:
        if file.stat().st_mode & _OTHER_USERS:
            raise CredentialsError(
                f"Others on this machine may read {file}. Run `chmod 600 {file}`; if they may "
                "have read it, log out and log in again."
            )
        document = json.loads(file.read_text(encoding="utf-8"))
        return {
            "endpoint": document["endpoint"],
            "hubs": {name: asdict(Credential(**entry)) for name, entry in document["hubs"].items()},
        }
    except FileNotFoundError:
        return {"endpoint": None, "hubs": {}}
    except OSError as error:
        raise CredentialsError(f"{file} cannot be read: {error.strerror}.") from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise CredentialsError(f"{file} is damaged: remove it and log in again.") from None


def _write(document: dict[str, Any]) -> None:
    import json
    import tempfile

    file, written = path(), None
    try:
        # `mkstemp` creates a file that only its owner can read.
        handle, written = tempfile.mkstemp(dir=file.parent, prefix=f".{_FILE}.")
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            json.dump(document, stream, indent=2)
            stream.flush()
            os.fsync(stream.fileno())
        Path(written).replace(file)
    except OSError as error:
        if written is not None:
            Path(written).unlink(missing_ok=True)
        raise CredentialsError(f"{file} cannot be written: {error.strerror}.") from None


def current_token(endpoint: str) -> str | None:
    """Return the token of the login at this hub, renewed if it expires soon."""
    from hublet.core.clock import micros

    known = find(endpoint)
    if known is None:
        return None
    now = micros() // 1_000_000
    if known.expires_at is None or known.expires_at - _RENEW_AHEAD_SECONDS > now:
        return known.token
    return _renew(endpoint, known).token


def _renew(endpoint: str, known: Credential) -> Credential:
    from hublet.client import ClientError, Hub, Refused
    from hublet.client.device_login import refresh

    if known.refresh_token is None:
        return known
    try:
        tokens = refresh(Hub(endpoint=endpoint), known.refresh_token)
    except Refused as error:
        if error.code == "invalid_grant":
            say(f"The login at {endpoint} has ended; log in again with `hublet login`.")
        return known
    except ClientError:
        # The command itself reports why the hub does not answer.
        return known
    renewed = Credential(
        user=known.user,
        token=tokens.access_token,
        refresh_token=tokens.refresh_token or known.refresh_token,
        expires_at=tokens.expires_at,
    )
    save(endpoint, renewed, as_last=False)
    return renewed
