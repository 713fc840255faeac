"""Atom feeds."""

from datetime import UTC, datetime
from xml.etree import ElementTree as ET

from markupsafe import Markup

from hublet.web.rendering.feeds import Feed, FeedEntry, render_feed, tag_uri

ATOM = "{http://www.w3.org/2005/Atom}"
NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)
ENTRY = FeedEntry(
    id="tag:hub.example,2026-11-17:/ada/engine/commit/1",
    title='Longer <context> & "more"\x00\x1b',
    link="https://hub.example/ada/engine/commit/1?a=1&b=2",
    updated=NOON,
    published=NOON,
    author="ada",
    content=Markup('<p>It <a href="/x">is</a> &lt;b&gt;.</p>'),
)


def parsed(*entries: FeedEntry) -> ET.Element:
    feed = Feed(
        id="https://hub.example/ada/engine/commits.atom",
        title="Commits of ada/engine",
        link="https://hub.example/ada/engine/commits/main",
        self_link="https://hub.example/ada/engine/commits.atom",
        updated=NOON,
        entries=entries,
    )
    return ET.fromstring(render_feed(feed))


def test_a_feed_says_what_the_format_demands() -> None:
    feed = parsed()
    assert [child.tag.removeprefix(ATOM) for child in feed] == [
        "id", "title", "updated", "link", "link", "generator",
    ]  # fmt: skip
    assert feed.findtext(f"{ATOM}updated") == "2026-11-17T12:00:00.000Z"
    links = {link.get("rel"): link.get("href") for link in feed.iter(f"{ATOM}link")}
    assert links["self"] == "https://hub.example/ada/engine/commits.atom"


def test_an_entry_is_escaped_and_whole() -> None:
    [entry] = parsed(ENTRY).iter(f"{ATOM}entry")
    texts = {child.tag.removeprefix(ATOM): child.text for child in entry}
    assert texts["id"] == ENTRY.id
    assert texts["title"] == 'Longer <context> & "more"'
    assert texts["content"] == str(ENTRY.content)
    assert entry.findtext(f"{ATOM}author/{ATOM}name") == "ada"
    link, content = entry.find(f"{ATOM}link"), entry.find(f"{ATOM}content")
    assert link is not None
    assert link.get("href") == ENTRY.link
    assert content is not None
    assert content.get("{http://www.w3.org/XML/1998/namespace}base") == ENTRY.link


def test_hostile_texts_stay_text() -> None:
    hostile = ']]></title><script>alert(1)</script><!ENTITY x "y">&x;\ud800\uffff'
    entry = FeedEntry(
        id=hostile, title=hostile, link=f'https://x/"{hostile}', updated=NOON, author=hostile
    )
    [found] = parsed(entry).iter(f"{ATOM}entry")
    assert [child.tag.removeprefix(ATOM) for child in found] == [
        "id", "title", "updated", "link", "author",
    ]  # fmt: skip


def test_an_entry_without_a_title_has_one() -> None:
    bare = FeedEntry(id="x", title=" ", link="https://x", updated=NOON, author="ada")
    [entry] = parsed(bare).iter(f"{ATOM}entry")
    assert entry.findtext(f"{ATOM}title") == "(no title)"


def test_a_tag_names_something_for_ever() -> None:
    assert tag_uri("hub.example", NOON, "/ada/engine") == "tag:hub.example,2026-11-17:/ada/engine"
