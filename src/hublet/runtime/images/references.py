"""References of images: the names that people write, as container tools read them everywhere."""

import re

from hublet.core.dataclasses import dataclass
from hublet.runtime.errors import CannotRun

DOCKER_HUB = "docker.io"
_DOCKER_HOSTS = frozenset({DOCKER_HUB, "index.docker.io", "registry-1.docker.io"})
_DOCKER_API = "registry-1.docker.io"
# Images of Docker Hub without an owner.
_OFFICIAL = "library"
_LATEST = "latest"
_MAX_LENGTH = 255
_COMPONENT = "[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*"
_REPOSITORY = re.compile(f"{_COMPONENT}(?:/{_COMPONENT})*")
_TAG = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}")
_HOST = re.compile(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:]+\])(?::[0-9]{1,5})?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageReference:
    """An image of a registry: by its digest if it has one, else by its tag."""

    # In lower case, with the port if it has one; docker.io for Docker Hub.
    host: str
    repository: str
    tag: str | None = None
    digest: str | None = None

    def __str__(self) -> str:
        version = f"@{self.digest}" if self.digest else f":{self.tag}"
        return f"{self.host}/{self.repository}{version}"

    @property
    def version(self) -> str:
        """The digest or the tag, as the path of a manifest names it."""
        return self.digest or self.tag or _LATEST

    @property
    def api_host(self) -> str:
        """Where the registry answers, which for Docker Hub has another name."""
        return _DOCKER_API if self.host == DOCKER_HUB else self.host


def parse_reference(text: str) -> ImageReference:
    """Read a name such as `ubuntu`, `ghcr.io/ada/tool:1` or `host:5000/a/b@sha256:…`.

    Raises CannotRun with a sentence that says what is wrong.
    """
    name, at, digest = text.partition("@")
    if at and not _DIGEST.fullmatch(digest):
        raise _invalid(text, "after @ comes sha256: and 64 hexadecimal digits")
    # A colon after the last slash begins a tag, one before it a port.
    rest, colon, tag = name.rpartition(":")
    if colon and "/" not in tag:
        name = rest
    else:
        tag = _LATEST
    if not _TAG.fullmatch(tag):
        raise _invalid(text, "a tag has letters, digits, '_', '.' and '-', 128 at most")
    host, repository = _split_host(name)
    if not _HOST.fullmatch(host):
        raise _invalid(text, "its registry is no host name")
    if not _REPOSITORY.fullmatch(repository) or len(name) > _MAX_LENGTH:
        raise _invalid(text, "its parts have lower-case letters, digits, and '.', '_', '-' between")
    # What has both is pulled by the digest; the tag is only for readers.
    return ImageReference(
        host=host, repository=repository, tag=None if digest else tag, digest=digest or None
    )


def _split_host(name: str) -> tuple[str, str]:
    """Split off the registry: the first part, if it has a dot or a colon or is localhost."""
    first, slash, rest = name.partition("/")
    is_host = slash and ("." in first or ":" in first or first.lower() == "localhost")
    host, repository = (first.lower(), rest) if is_host else (DOCKER_HUB, name)
    if host not in _DOCKER_HOSTS:
        return host, repository
    return DOCKER_HUB, repository if "/" in repository else f"{_OFFICIAL}/{repository}"


def _invalid(text: str, rule: str) -> CannotRun:
    return CannotRun(f"{text[:100]!r} is not the name of an image: {rule}.")
