"""Answers that a client may keep: the version it has is compared with the current one."""

from hashlib import sha256

from starlette.requests import Request


def etag_of(content: bytes) -> str:
    return f'"{sha256(content).hexdigest()[:32]}"'


def has_version(request: Request, etag: str) -> bool:
    """Tell whether the client has this version, so that 304 is answer enough."""
    # RFC 9110, 13.1.2: the comparison is the weak one, and "*" means any version.
    lines = request.headers.getlist("if-none-match")
    tags = [tag.strip().removeprefix("W/") for line in lines for tag in line.split(",")]
    return etag in tags or "*" in tags
