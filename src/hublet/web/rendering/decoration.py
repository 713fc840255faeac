"""Decoration of sanitized HTML: everything on a rendered text that is ours.

The input was written by the sanitizer, so its tags are balanced, in lower case, and quoted. One pass
over it colours code, draws formulas, wraps tables, links headings, and makes links of names.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from html import unescape
from itertools import islice

from markupsafe import Markup, escape

from hublet.community.threads.mentions import MENTION, REFERENCE
from hublet.web.rendering.code import escape_line, highlight_language, make_visible
from hublet.web.rendering.formulas import render_formula
from hublet.web.rendering.links import MarkdownPlace, id_of, is_remote, is_shown
from hublet.web.rendering.pictures import PictureSize

# Of one text; what is beyond them stays as it was written.
MAX_CODE_CHARACTERS = 200_000
MAX_FORMULA_CHARACTERS = 20_000
MAX_HEADING_LINKS = 1_000
MAX_NAME_LINKS = 1_000
# A block of code or a formula costs at least as much as so many characters.
_BLOCK_COST = 200
_FORMULA_COST = 20

_ATTRIBUTES = r'(?: [^\s"=<>/]+="[^"]*")*'
_ATTRIBUTE = re.compile(r' ([^\s"=<>/]+)="([^"]*)"')
_TOKEN = re.compile(
    rf"<pre><code(?P<block>{_ATTRIBUTES})>(?P<source>[^<]*)</code></pre>"
    rf"|<(?P<inline>code|span)(?P<style>{_ATTRIBUTES})>(?P<text>[^<]*)</(?P=inline)>"
    rf"|<(?P<end>/?)(?P<tag>[a-z][a-z0-9]*)(?P<attributes>{_ATTRIBUTES})>"
)
_PICTURE = re.compile(rf"<img({_ATTRIBUTES})>")
_PIXELS = re.compile(r"([1-9]\d{0,3})(?:px)?")
_HEADING = re.compile(r"h[1-6]")
_HEADING_END = re.compile(r"</h[1-6]>")
_ANY_TAG = re.compile(r"<[^>]*>")
_MAX_HEADING = 2_000
_NOT_IN_IDS = re.compile(r"[^\w\- ]")
_LINKLESS = {"a", "code", "kbd", "pre", "samp", "summary"}
_MEDIA = {"audio", "img", "video"}
_LANGUAGE = "language-"
# Wide tables scroll in a box, which the keyboard must reach.
_TABLE_BOX = '<div class="tbl" tabindex="0" role="group" aria-label="Table">'

_FULL_COMMIT = r"[0-9a-f]{40}"
# A word or a number is no commit, so both kinds of characters must be there.
_SHORT_COMMIT = r"(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{7,40}"
_NAMES, _NAMES_IN_COMMENTS = (
    re.compile(
        rf"{MENTION.pattern}|{REFERENCE.pattern}|(?<![\w/.\-])(?P<commit>{commit})(?![\w\-])"
    )
    for commit in (_FULL_COMMIT, _SHORT_COMMIT)
)

Attributes = Mapping[str, str]


class Decorator:
    """Decorates one text."""

    def __init__(self, place: MarkdownPlace, *, short_commits: bool = False) -> None:
        self._place = place
        self._names = _NAMES_IN_COMMENTS if short_commits else _NAMES
        self._open: Counter[str] = Counter()
        self._outline: list[int] = []
        self._headings: list[tuple[int, str]] = []
        self._ids: dict[str, int] = {}
        self._code_left = MAX_CODE_CHARACTERS
        self._formula_left = MAX_FORMULA_CHARACTERS
        self._names_left = MAX_NAME_LINKS

    def decorate(self, html: str) -> Markup:
        return Markup("".join(self._parts(html)))  # noqa: S704 - sanitized, and escaped here

    def _parts(self, html: str) -> Iterator[str]:
        position = 0
        for token in _TOKEN.finditer(html):
            yield self._text(html[position : token.start()])
            yield self._token(token)
            position = token.end()
        yield self._text(html[position:])

    def _token(self, token: re.Match[str]) -> str:
        if token["source"] is not None:
            return self._block(unescape(token["source"]), _attributes_of(token["block"]))
        if token["inline"]:
            return self._inline(token, _attributes_of(token["style"]))
        name, attributes = token["tag"], _attributes_of(token["attributes"])
        # Only text can be a formula.
        attributes.pop("data-math-style", None)
        if token["end"]:
            return self._end(name)
        if _HEADING.fullmatch(name):
            return self._heading(token, int(name[1]), attributes)
        return self._start(name, attributes)

    def _block(self, source: str, attributes: Attributes) -> str:
        language = attributes.get("class", "").removeprefix(_LANGUAGE)
        if "data-math-style" in attributes or language == "math":
            return self._formula(source, is_block=True)
        self._code_left -= len(source) + _BLOCK_COST
        lines = highlight_language(
            source, language if language and self._code_left >= 0 else "none"
        )
        return '<pre class="hl" tabindex="0"><code>' + "\n".join(lines) + "\n</code></pre>"

    def _inline(self, token: re.Match[str], attributes: Attributes) -> str:
        name, text = token["inline"], token["text"]
        if style := attributes.get("data-math-style"):
            return self._formula(unescape(text), is_block=style == "display")
        if name == "code":
            return f"<code>{_visible(unescape(text))}</code>"
        return f"<span{token['style']}>{self._text(text)}</span>"

    def _formula(self, latex: str, *, is_block: bool) -> str:
        self._formula_left -= len(latex) + _FORMULA_COST
        formula = (
            render_formula(latex.strip(), is_block=is_block) if self._formula_left >= 0 else None
        )
        return formula or f'<code class="math">{_visible(latex.strip())}</code>'

    def _start(self, name: str, attributes: Attributes) -> str:
        if name in _MEDIA:
            return self._media(name, attributes)
        if name == "source":
            is_refused = self._is_refused(name, unescape(attributes.get("src", "")))
            return "" if is_refused else _write(name, attributes)
        if name == "input":
            return _checkbox(attributes)
        self._open[name] += 1
        if name == "a" and self._open["a"] > 1:
            # Browsers would take it out of the first one, and much else with it.
            return ""
        if name == "center":
            return '<div align="center">'
        if name == "pre":
            attributes = {**attributes, "tabindex": "0"}
        return (_TABLE_BOX if name == "table" else "") + _write(name, attributes)

    def _end(self, name: str) -> str:
        self._open[name] -= 1
        if _HEADING.fullmatch(name) and self._headings:
            level, anchor = self._headings.pop()
            return f"{anchor}</h{level}>"
        if name == "table":
            return "</table></div>"
        if self._open[name] < 0 or (name == "a" and self._open["a"] > 0):
            # Its start was left out.
            self._open[name] = max(self._open[name], 0)
            return ""
        return "</div>" if name == "center" else f"</{name}>"

    def _heading(self, token: re.Match[str], written: int, attributes: Attributes) -> str:
        """Start a heading one level below the one it belongs to, so that none is left out."""
        while self._outline and self._outline[-1] >= written:
            self._outline.pop()
        level = min(self._place.heading_level + len(self._outline), 6)
        self._outline.append(written)
        if len(self._ids) >= MAX_HEADING_LINKS:
            self._headings.append((level, ""))
            return _write(f"h{level}", attributes)
        title = _title_at(token.string, token.end())
        id_ = attributes.get("id") or self._new_id(title)
        label = escape(f"Link to {title or 'this heading'}")
        self._headings.append((level, f'<a class="anchor" href="#{id_}" aria-label="{label}"></a>'))
        return _write(f"h{level}", {**attributes, "id": id_})

    def _new_id(self, title: str) -> str:
        slug = _NOT_IN_IDS.sub("", title.lower()).replace(" ", "-")[:100] or "section"
        wanted, count = slug, self._ids.get(slug, 0)
        while wanted in self._ids:
            count += 1
            wanted = f"{slug}-{count}"
        self._ids[slug] = count
        self._ids.setdefault(wanted, 0)
        return id_of(wanted, self._place)

    def _media(self, name: str, attributes: Attributes) -> str:
        source, in_link = unescape(attributes.get("src", "")), self._open["a"] > 0
        alt = attributes.get("alt", "") or (_file_name(source) if in_link else "")
        if self._is_refused(name, source):
            return self._link_to_media(source, alt or _file_name(source), in_link=in_link)
        if name == "img":
            return _write(name, {**attributes, "alt": alt, "loading": "lazy"}) if source else alt
        self._open[name] += 1
        return _write(name, {**attributes, "controls": "", "preload": "metadata"})

    def _link_to_media(self, source: str, label: str, *, in_link: bool) -> str:
        if in_link:
            return f'<span class="pic">{label}</span>'
        return f'<a class="pic" href="{escape(source)}" rel="nofollow noopener">{label}</a>'

    def _is_refused(self, name: str, source: str) -> bool:
        """Whether nothing is loaded from there; sound and video never are from other sites."""
        if name == "img":
            return bool(source) and not is_shown(source, self._place)
        return bool(source) and is_remote(source, self._place)

    def _text(self, text: str) -> str:
        if not text or any(self._open[name] > 0 for name in _LINKLESS):
            return text
        if not self._names_left:
            return text
        linked, count = self._names.subn(self._name_link, text, self._names_left)
        self._names_left -= count
        return linked

    def _name_link(self, found: re.Match[str]) -> str:
        place = self._place
        if found["name"]:
            return _link(place.mention_address, found["name"], found[0], "mention")
        if found["number"]:
            address = place.thread_address
            if (repo := found["repo"]) is not None:
                # Whether there is such a thread, and for whom, its own page tells.
                address = f"/{repo}/discussions/{{}}" if place.mention_address else ""
            return _link(address, found["number"], found[0], "thread")
        return _link(place.commit_address, found["commit"], found[0], "sha")


def list_unsized_pictures(html: Markup, *, most: int) -> list[str]:
    """Return the addresses of pictures in a decorated text whose width or height is not said."""
    found = (_attributes_of(picture[1]) for picture in _PICTURE.finditer(html))
    unsized = (each for each in found if not {"width", "height"} <= each.keys())
    return list(islice(dict.fromkeys(unescape(each.get("src", "")) for each in unsized), most))


def with_sizes(html: Markup, sizes: Mapping[str, PictureSize]) -> Markup:
    """Return a decorated text in which these pictures, by their addresses, say their size."""

    def write(picture: re.Match[str]) -> str:
        attributes = _attributes_of(picture[1])
        size = sizes.get(unescape(attributes.get("src", "")))
        return _write("img", attributes | _missing_size(attributes, size)) if size else picture[0]

    return Markup(_PICTURE.sub(write, html))  # noqa: S704 - decorated, and only numbers are added


def _missing_size(attributes: Attributes, size: PictureSize) -> dict[str, str]:
    """Return what the author did not say; of a part in pixels, the other one in proportion."""
    width, height = attributes.get("width"), attributes.get("height")
    if width is None and height is None:
        return {"width": str(size.width), "height": str(size.height)}
    if height is None and (said := _PIXELS.fullmatch(width or "")):
        return {"height": str(max(round(int(said[1]) * size.height / size.width), 1))}
    if width is None and (said := _PIXELS.fullmatch(height or "")):
        return {"width": str(max(round(int(said[1]) * size.width / size.height), 1))}
    return {}


def _title_at(html: str, start: int) -> str:
    """Return the text of the heading whose content starts there."""
    end = _HEADING_END.search(html, start, start + _MAX_HEADING)
    return unescape(_ANY_TAG.sub("", html[start : end.start()])).strip() if end else ""


def _link(address: str, name: str, text: str, kind: str) -> str:
    if not address:
        return text
    href = escape(address.replace("{}", name))
    return f'<a class="{kind}" href="{href}">{text}</a>'


def _checkbox(attributes: Attributes) -> str:
    if attributes.get("type") != "checkbox":
        return ""
    if "checked" in attributes:
        return '<input type="checkbox" checked disabled aria-label="Done">'
    return '<input type="checkbox" disabled aria-label="Not done">'


def _visible(text: str) -> str:
    return str(escape_line(make_visible(text)))


def _file_name(address: str) -> str:
    return str(escape(address.partition("?")[0].rpartition("/")[2][:100] or "picture"))


def _attributes_of(html: str) -> dict[str, str]:
    """Return attributes with their values as they stand in the HTML, still escaped."""
    return dict(_ATTRIBUTE.findall(html))


def _write(name: str, attributes: Attributes) -> str:
    written = "".join(f' {key}="{value}"' for key, value in attributes.items())
    return f"<{name}{written}>"
