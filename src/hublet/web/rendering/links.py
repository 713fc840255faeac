"""Addresses in Markdown: where a link or a picture of a document leads on the hub."""

import posixpath
import re
from urllib.parse import quote, unquote, urlsplit

from hublet.core.dataclasses import dataclass

_SCHEMES = {"http", "https", "mailto"}
_SCHEME = re.compile(r"([a-z][a-z0-9+.\-]*):", re.IGNORECASE)
# Browsers leave these out of addresses before they read them.
_IGNORED = re.compile(r"[\t\n\r]|^[\x00-\x20]+|[\x00-\x20]+$")
# Refs that addresses name with their slashes.
_UNENCODED_REF = re.compile(r"refs/(pr|convert)/[^/]+")
_ID_CHARACTERS = re.compile(r"[^\w.\-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkdownPlace:
    """Where a text stands, which decides what its relative links mean.

    `hub` is the base address of this hub. `repo` is the address of the repository's page, such as
    `/datasets/ada/numbers`; without one, relative links lead nowhere. The addresses for mentions,
    threads and commits have a `{}` for what was named, and empty ones make no links.
    """

    hub: str = ""
    repo: str = ""
    revision: str = "main"
    folder: str = ""
    # Whether pictures of other sites are shown; otherwise they are links.
    remote_images: bool = False
    # The level of the first heading, below the headings of the page.
    heading_level: int = 1
    # Keeps ids of several texts on one page apart.
    anchor: str = ""
    mention_address: str = "/{}"
    thread_address: str = ""
    commit_address: str = ""

    @property
    def id_prefix(self) -> str:
        return f"user-content-{self.anchor}-" if self.anchor else "user-content-"


def place_in_repo(
    repo: str,
    *,
    revision: str = "main",
    folder: str = "",
    hub: str = "",
    remote_images: bool = False,
) -> MarkdownPlace:
    """Return the place of a file in a repository, with links to its threads and commits."""
    return MarkdownPlace(
        hub=hub,
        repo=repo,
        revision=revision,
        folder=folder,
        remote_images=remote_images,
        thread_address=f"{repo}/discussions/{{}}",
        commit_address=f"{repo}/commit/{{}}",
    )


def revision_segment(revision: str) -> str:
    """Return a revision as addresses name it: one segment, except for the refs of pull requests."""
    return quote(revision, safe="/" if _UNENCODED_REF.fullmatch(revision) else "")


def link_address(value: str, place: MarkdownPlace) -> str | None:
    """Return where a link leads, None when it may not lead there."""
    address = _IGNORED.sub("", value)
    if address.startswith("#"):
        return "#" + id_of(unquote(address[1:]), place)
    return _absolute(address) or _in_repo(address, place, "blob")


def source_address(value: str, place: MarkdownPlace) -> str | None:
    """Return where a picture, sound or video is loaded from, None when it may not be."""
    address = _absolute(_IGNORED.sub("", value)) or _in_repo(value, place, "resolve")
    return None if address is None or address.startswith("mailto:") else address


def is_remote(address: str, place: MarkdownPlace) -> bool:
    """Whether a browser that loads the address would ask another site."""
    if address.startswith("/") and not address.startswith("//"):
        return False
    return not (place.hub and address.startswith(place.hub.rstrip("/") + "/"))


def is_shown(picture: str, place: MarkdownPlace) -> bool:
    """Whether a page loads the picture at this address; the policy of pages says the same."""
    is_allowed = place.remote_images and picture.lower().startswith("https:")
    return is_allowed or not is_remote(picture, place)


def id_of(name: str, place: MarkdownPlace) -> str:
    """Return an id that no element of the page has."""
    if name.startswith("user-content-"):
        name = name.removeprefix(place.id_prefix)
    return place.id_prefix + _ID_CHARACTERS.sub("-", name)[:200]


def _absolute(address: str) -> str | None:
    """Return an address of another site or from the root of the hub, None for any other."""
    if scheme := _SCHEME.match(address):
        return address if scheme[1].lower() in _SCHEMES else None
    if address[:1] not in {"/", "\\"}:
        return None
    # Browsers take a backslash for a slash, and two of them for another site.
    slashed = address.replace("\\", "/")
    return f"https:{slashed}" if slashed.startswith("//") else slashed


def _in_repo(address: str, place: MarkdownPlace, view: str) -> str | None:
    """Return the address of a file whose path is relative to the place."""
    if not place.repo or _SCHEME.match(address):
        return None
    try:
        parts = urlsplit(address)
    except ValueError:
        return None
    path = posixpath.normpath("/" + posixpath.join(place.folder, unquote(parts.path))).strip("/")
    if view == "blob" and (parts.path.endswith("/") or not path):
        view = "tree"
    file = f"{place.repo}/{view}/{revision_segment(place.revision)}/{quote(path)}".rstrip("/")
    query = f"?{quote(parts.query, safe='=&%+/:,;@')}" if parts.query else ""
    return file + query + _fragment(path, unquote(parts.fragment), place)


def _fragment(path: str, name: str, place: MarkdownPlace) -> str:
    """Return the end of an address: a heading of a document, or a line of another file."""
    if not name:
        return ""
    is_document = path.lower().endswith((".md", ".markdown", ".ipynb"))
    return f"#{id_of(name, place)}" if is_document else f"#{quote(name)}"
