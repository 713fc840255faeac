"""Failure messages: sentences about failed calls for the owner, and lines for the log."""

from urllib.parse import urlsplit

from hublet.core.database import DatabaseUnavailable
from hublet.core.logs import get_logger
from hublet.core.outgoing.records import OutgoingResponse

_GONE = 410
_REDIRECT, _REFUSED, _FAILED = 3, 4, 5
_DENIED = {401, 403}
_NOT_UNDERSTOOD = 422
# What the receiving server of the public client knows; it answers 422 to all others.
_WELL_KNOWN_TYPES = {"model", "dataset", "space"}


def explain_failure(answer: OutgoingResponse, *, repo_type: str) -> str:
    """Say why an answer is no success; `repo_type` is what the delivery is about."""
    if answer.reason is not None or answer.status is None:
        return storable(answer.detail)
    if answer.status // 100 == _REDIRECT:
        host = _host(answer.headers.get("location", ""))
        return f"The target redirected{f' to {host}' if host else ''}; this is not followed."
    return _explain_status(answer.status, repo_type)


def _explain_status(status: int, repo_type: str) -> str:
    if status in _DENIED:
        return f"The target refused with {status}: the secret it expects may be another one."
    if status == _GONE:
        return "The target answered that it is gone for good (410)."
    if status == _NOT_UNDERSTOOD and repo_type not in _WELL_KNOWN_TYPES:
        return (
            "The target refused with 422: old receivers know only models, datasets and spaces, "
            f"and this is about a {repo_type}."
        )
    verb = {_REFUSED: "refused", _FAILED: "failed"}.get(status // 100, "answered")
    return f"The target {verb} with {status}."


def _host(location: str) -> str:
    """Return the host alone: the rest of an address may hold secrets."""
    try:
        host = urlsplit(location).hostname or ""
    except ValueError:
        return ""
    return host if host.isascii() and host.isprintable() else ""


def storable(text: str) -> str:
    """Return the text without what no database takes."""
    return text.replace("\x00", "").encode(errors="replace").decode()


log = get_logger("webhooks")


def log_failure(error: BaseException) -> None:
    if isinstance(error, DatabaseUnavailable):
        log.warning("deliveries wait for the database", reason=error.reason)
    else:
        log.error("the delivery of webhooks stumbled", exc_info=error)
