"""A repository with files, and the parts of its pages that tests look at."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx2

from hublet.core.database import Database
from people import Headers
from repos.content import put
from repositories import a_repo
from web.parsed_pages import HTML, Element, parse


@dataclass(slots=True)
class FilePage:
    """A page, its links by their text, and the texts of its innermost elements."""

    root: Element
    links: dict[str, str]
    texts: list[str]

    @property
    def text(self) -> str:
        return self.root.text


def read_page(response: httpx2.Response) -> FilePage:
    root = parse(response)
    links: dict[str, str] = {}
    for link in root.all("a"):
        links.setdefault(link.text, link.attributes.get("href", ""))
    return FilePage(root, links, list(_innermost(root)))


def _innermost(element: Element) -> list[str]:
    inner = [text for child in element.children for text in _innermost(child)]
    return inner or ([element.text] if element.text else [])


async def get_page(client: httpx2.AsyncClient, path: str, **headers: str) -> FilePage:
    response = await client.get(path, headers=HTML | headers)
    assert response.status_code == 200, (response.status_code, response.text[:2000])
    return read_page(response)


async def a_repo_with(
    client: httpx2.AsyncClient,
    database: Database,
    headers: Headers,
    files: Mapping[str, bytes],
    name: str = "ada/engine",
    **body: Any,
) -> tuple[str, str]:
    """Return the id of a new repository with these files, and its last commit."""
    repo_id = await a_repo(client, headers, name, **body)
    return repo_id, await put(database, repo_id, files, at=1_700_000_000)
