"""Atom feeds (RFC 4287) for people who follow a repository with a reader."""

import re
from collections.abc import Iterator
from datetime import datetime
from xml.sax.saxutils import escape, quoteattr

from markupsafe import Markup

from hublet.core.clock import wire
from hublet.core.dataclasses import dataclass

VERSION = "feeds-1"

MEDIA_TYPE = "application/atom+xml; charset=utf-8"

# XML has no way to write these.
_NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedEntry:
    # An address or a tag URI that never changes.
    id: str
    title: str
    link: str
    updated: datetime
    author: str
    published: datetime | None = None
    # Rendered HTML; addresses in it are relative to the link.
    content: Markup | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Feed:
    id: str
    title: str
    # The page that the feed is about, and the feed itself.
    link: str
    self_link: str
    # Of the newest entry; of a feed without entries, of what it is about.
    updated: datetime
    entries: tuple[FeedEntry, ...] = ()


def tag_uri(host: str, created: datetime, path: str) -> str:
    """Return an id that stays even when the address changes (RFC 4151)."""
    return f"tag:{host},{created:%Y-%m-%d}:{path}"


def render_feed(feed: Feed) -> bytes:
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        '<feed xmlns="http://www.w3.org/2005/Atom">',
        *_head(feed.id, feed.title, feed.updated),
        f'<link rel="alternate" type="text/html" href={_quoted(feed.link)}/>',
        f'<link rel="self" type="application/atom+xml" href={_quoted(feed.self_link)}/>',
        "<generator>Hublet</generator>",
        *(line for entry in feed.entries for line in _entry(entry)),
        "</feed>",
    ]
    return "\n".join(lines).encode()


def _entry(entry: FeedEntry) -> Iterator[str]:
    yield "<entry>"
    yield from _head(entry.id, entry.title, entry.updated)
    yield f'<link rel="alternate" type="text/html" href={_quoted(entry.link)}/>'
    yield f"<author><name>{_escaped(entry.author)}</name></author>"
    if entry.published is not None:
        yield f"<published>{wire(entry.published)}</published>"
    if entry.content is not None:
        base = _quoted(entry.link)
        yield f'<content type="html" xml:base={base}>{_escaped(str(entry.content))}</content>'
    yield "</entry>"


def _head(id_: str, title: str, updated: datetime) -> Iterator[str]:
    yield f"<id>{_escaped(id_)}</id>"
    # A reader shows an entry without a title as nothing at all.
    yield f"<title>{_escaped(title.strip() or '(no title)')}</title>"
    yield f"<updated>{wire(updated)}</updated>"


def _escaped(text: str) -> str:
    return escape(_NOT_IN_XML.sub("", text))


def _quoted(text: str) -> str:
    return quoteattr(_NOT_IN_XML.sub("", text))
