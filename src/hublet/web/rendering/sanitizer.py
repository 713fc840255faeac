"""Sanitizer of untrusted HTML: what is not on a list here does not reach a page.

nh3 parses as browsers do and writes the allowed part anew; addresses, ids and classes are decided
by our filter, which sees every attribute that is left.
"""

import re
from collections.abc import Callable

from hublet.core.dataclasses import dataclass
from hublet.web.rendering.links import (
    MarkdownPlace,
    id_of,
    is_shown,
    link_address,
    source_address,
)

# What Markdown makes, and what people write as HTML in comments.
_COMMENT_TAGS = {
    "a", "abbr", "b", "blockquote", "br", "code", "dd", "del", "details", "div", "dl", "dt", "em",
    "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "img", "input", "ins", "kbd", "li", "mark",
    "ol", "p", "pre", "q", "s", "samp", "section", "small", "span", "strong", "sub", "summary",
    "sup", "table", "tbody", "td", "th", "thead", "tr", "ul", "var", "wbr",
}  # fmt: skip
_DOCUMENT_TAGS = _COMMENT_TAGS | {
    "audio", "bdi", "caption", "center", "cite", "col", "colgroup", "dfn", "figcaption", "figure",
    "picture", "rp", "rt", "ruby", "source", "strike", "tfoot", "time", "tt", "video",
}  # fmt: skip
# Their text is no text to read.
_DROPPED_WITH_CONTENT = {
    "applet", "embed", "iframe", "math", "noembed", "noframes", "noscript", "object", "script",
    "style", "svg", "template", "textarea", "title", "xmp",
}  # fmt: skip
_ALIGNED = {
    tag: {"align"} for tag in ("div", "h1", "h2", "h3", "h4", "h5", "h6", "p", "table", "tr")
}
_COMMENT_ATTRIBUTES = {
    "*": {"id", "class", "dir", "lang", "title"},
    "a": {"href", "aria-label"},
    "code": {"data-math-style"},
    "details": {"open"},
    "img": {"alt", "src"},
    "input": {"checked", "type"},
    "ol": {"start"},
    "span": {"data-math-style"},
    "td": {"align"},
    "th": {"align"},
}
_DOCUMENT_ATTRIBUTES = {
    **_COMMENT_ATTRIBUTES,
    **_ALIGNED,
    "a": {"href", "aria-label", "name"},
    "audio": {"controls", "src"},
    "col": {"span"},
    "img": {"alt", "src", "align", "height", "width"},
    "source": {"media", "srcset", "src", "type"},
    "td": {"align", "colspan", "rowspan", "width"},
    "th": {"align", "colspan", "rowspan", "scope", "width"},
    "video": {"controls", "height", "loop", "muted", "poster", "src", "width"},
}
_ALERTS = ["note", "tip", "important", "warning", "caution"]
_CLASSES = {
    "anchor", "contains-task-list", "footnote-backref", "footnote-ref", "footnotes", "markdown-alert",
    "markdown-alert-title", "task-list-item", *(f"markdown-alert-{kind}" for kind in _ALERTS),
}  # fmt: skip
_LANGUAGE = re.compile(r"language-[\w+#.\-]{1,40}")
_VALUES = {
    "align": re.compile(r"left|right|center|middle|top|bottom", re.IGNORECASE),
    "colspan": re.compile(r"\d{1,3}"),
    "dir": re.compile(r"ltr|rtl|auto"),
    "height": re.compile(r"\d{1,4}(px|%)?"),
    "lang": re.compile(r"[A-Za-z0-9\-]{1,35}"),
    "media": re.compile(r"[\w\s():,.\-]{1,200}"),
    "rowspan": re.compile(r"\d{1,3}"),
    "scope": re.compile(r"row|col|rowgroup|colgroup"),
    "span": re.compile(r"\d{1,3}"),
    "start": re.compile(r"\d{1,9}"),
    "type": re.compile(r"checkbox|(image|video|audio)/[\w.+\-]{1,40}"),
    "width": re.compile(r"\d{1,4}(px|%)?"),
}
# Controls that no text needs. Those of writing direction would reorder what stands around them; the
# marks U+200E and U+200F only set a direction and stay.
_UNWANTED = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
# Longer than any address that works in all browsers.
_MAX_VALUE = 8_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedHtml:
    tags: set[str]
    attributes: dict[str, set[str]]


DOCUMENT = AllowedHtml(tags=_DOCUMENT_TAGS, attributes=_DOCUMENT_ATTRIBUTES)
COMMENT = AllowedHtml(tags=_COMMENT_TAGS, attributes=_COMMENT_ATTRIBUTES)


def without_controls(text: str) -> str:
    return _UNWANTED.sub("", text)


def sanitize(html: str, place: MarkdownPlace, allowed: AllowedHtml = DOCUMENT) -> str:
    """Return only what is allowed, with its addresses and ids made right for the place."""
    import nh3  # noqa: PLC0415 - loaded by the first page, not at every start

    clean = nh3.clean(
        without_controls(html),
        tags=allowed.tags,
        clean_content_tags=_DROPPED_WITH_CONTENT,
        attributes=allowed.attributes,
        attribute_filter=_attribute_filter(place),
        link_rel="nofollow noopener",
        url_schemes={"http", "https", "mailto"},
    )
    # Once more, because some were written as entities.
    return without_controls(clean)


def _attribute_filter(place: MarkdownPlace) -> Callable[[str, str, str], str | None]:
    addresses: dict[str, Callable[[str, MarkdownPlace], str | None]] = {
        "href": link_address,
        "id": id_of,
        "name": id_of,
        "poster": _quiet_source,
        "src": source_address,
        "srcset": _source_set,
    }

    def keep(_tag: str, name: str, value: str) -> str | None:
        if len(value) > _MAX_VALUE:
            return None
        if convert := addresses.get(name):
            return convert(value, place)
        if name == "class":
            return _known_classes(value)
        pattern = _VALUES.get(name)
        return value if pattern is None or pattern.fullmatch(value) else None

    return keep


def _known_classes(value: str) -> str | None:
    names = [name for name in value.split() if name in _CLASSES or _LANGUAGE.fullmatch(name)]
    return " ".join(names) or None


def _quiet_source(value: str, place: MarkdownPlace) -> str | None:
    """Return a picture that cannot become a link, so it must be one that is shown."""
    address = source_address(value, place)
    return address if address and is_shown(address, place) else None


def _source_set(value: str, place: MarkdownPlace) -> str | None:
    """Return a list of pictures with their sizes; without all of it when one is not allowed."""
    pictures = []
    for part in value.split(","):
        address, _, size = part.strip().partition(" ")
        source = _quiet_source(address, place)
        if source is None or not re.fullmatch(r"|\d{1,5}(\.\d)?[wx]", size.strip()):
            return None
        pictures.append(f"{source} {size.strip()}".strip())
    return ", ".join(pictures)
