"""Pages as a parser reads them: the texts, links and forms that a person would find."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

import httpx2

HTML = {"Accept": "text/html,application/xhtml+xml"}
_VOID = {"area", "base", "br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"}


@dataclass(slots=True)
class Element:
    tag: str
    attributes: dict[str, str]
    children: list["Element"] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())

    def all(self, tag: str, **attributes: str) -> list["Element"]:
        """Return the elements below this one, in order; `class_` must be among their classes."""
        found = [self] if self._is(tag, attributes) else []
        return found + [each for child in self.children for each in child.all(tag, **attributes)]

    def one(self, tag: str, **attributes: str) -> "Element":
        found = self.all(tag, **attributes)
        assert len(found) == 1, f"{len(found)} of {tag} {attributes}"
        return found[0]

    def _is(self, tag: str, attributes: dict[str, str]) -> bool:
        wanted = dict(attributes)
        class_ = wanted.pop("class_", None)
        if self.tag != tag or not wanted.items() <= self.attributes.items():
            return False
        return class_ is None or class_ in self.attributes.get("class", "").split()


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Element("", {})
        self._open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(element)
        if tag not in _VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        if tag in {each.tag for each in self._open}:
            while self._open.pop().tag != tag:
                pass

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.texts.append(data)


def parse(response: httpx2.Response) -> Element:
    assert response.headers["content-type"].startswith("text/html"), response.text[:200]
    reader = _Reader()
    reader.feed(response.text)
    return reader.root


async def submit(
    client: httpx2.AsyncClient, page: Element, action: str, **fields: str
) -> httpx2.Response:
    """Send the page's form to this path, with what is typed in by name."""
    form = page.one("form", action=action)
    hidden = {
        each.attributes["name"]: each.attributes["value"]
        for each in form.all("input", type="hidden")
    }
    return await client.post(action, data=hidden | fields, headers=HTML)
