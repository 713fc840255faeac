"""The description in its three forms, static files, and what robots ask for."""

import asyncio
import re
import threading
from collections.abc import AsyncIterator
from html.parser import HTMLParser
from typing import Any

import httpx2
import pytest

from hublet.description import describe, to_json, to_markdown
from hublet.login.routes import router as login
from hublet.web import site_routes as routes
from patience import SOON_SECONDS
from small_hub import BASE_URL, small_hub
from small_hub import router as small

DOCUMENTS = ["/.well-known/openapi.json", "/.well-known/openapi.md", "/docs"]
STATIC_FILES = [
    "/static/docs.css",
    "/static/docs.js",
    "/static/hublet.css",
    "/static/hublet.js",
    "/static/icon.svg",
    "/static/icons.svg",
    "/static/passkeys.js",
]
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "media-src 'self'; connect-src 'self'; frame-src 'none'; base-uri 'none'; "
    "frame-ancestors 'none'; form-action 'none'"
)


@pytest.fixture
async def reader() -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=small_hub(small, routes.router, login))
    async with httpx2.AsyncClient(transport=transport, base_url=BASE_URL) as reader:
        yield reader


class Tags(HTMLParser):
    """Collects the tags of a page with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def values_of(self, attribute: str) -> list[str]:
        return [found[attribute] or "" for _, found in self.found if attribute in found]


async def test_the_description_is_served_as_json(reader: httpx2.AsyncClient) -> None:
    response = await reader.get("/.well-known/openapi.json")

    assert response.headers["content-type"] == "application/json"
    assert response.content == to_json(describe(small_hub(small, routes.router), base_url=BASE_URL))


async def test_the_description_is_served_as_markdown(reader: httpx2.AsyncClient) -> None:
    response = await reader.get("/.well-known/openapi.md")

    assert response.headers["content-type"] == "text/markdown; charset=utf-8"
    assert response.text == to_markdown(
        describe(small_hub(small, routes.router), base_url=BASE_URL)
    )


async def test_the_three_forms_describe_themselves(reader: httpx2.AsyncClient) -> None:
    paths = (await reader.get("/.well-known/openapi.json")).json()["paths"]

    documents = {path: operations["get"] for path, operations in paths.items() if path in DOCUMENTS}
    assert [operation["operationId"] for operation in documents.values()] == [
        "get_openapi_json",
        "get_openapi_markdown",
        "get_docs_page",
    ]
    assert all(operation["tags"] == ["docs"] for operation in documents.values())
    assert all(operation["security"] == [] for operation in documents.values())


@pytest.mark.parametrize("path", DOCUMENTS)
async def test_a_document_may_be_kept_for_five_minutes(
    reader: httpx2.AsyncClient, path: str
) -> None:
    response = await reader.get(path)

    assert response.status_code == 200
    assert response.headers["cache-control"] == "public, max-age=300"


@pytest.mark.parametrize("path", STATIC_FILES)
async def test_a_static_file_may_be_kept_for_a_year(reader: httpx2.AsyncClient, path: str) -> None:
    response = await reader.get(path)

    assert response.status_code == 200
    assert response.headers["cache-control"] == "public, max-age=31536000, immutable"


async def test_there_are_no_other_static_files(reader: httpx2.AsyncClient) -> None:
    response = await reader.get("/static/secret.txt")

    assert response.status_code == 404
    assert response.json() == {"error": "There is no file secret.txt."}


@pytest.mark.parametrize("path", [*DOCUMENTS, *STATIC_FILES])
@pytest.mark.parametrize(
    ("form", "status"),
    [
        pytest.param("{}", 304, id="the same version"),
        pytest.param("W/{}", 304, id="the same version after a proxy has packed it"),
        pytest.param('"other", {}', 304, id="one of several versions"),
        pytest.param("*", 304, id="any version"),
        pytest.param('"other"', 200, id="another version"),
    ],
)
async def test_a_reader_is_not_sent_what_it_has(
    reader: httpx2.AsyncClient, path: str, form: str, status: int
) -> None:
    etag = (await reader.get(path)).headers["etag"]

    response = await reader.get(path, headers={"If-None-Match": form.format(etag)})

    assert response.status_code == status
    assert response.headers["etag"] == etag
    assert bool(response.content) == (status == 200)


async def test_documents_are_drawn_once(
    reader: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await reader.get("/docs")
    monkeypatch.delattr(routes, "describe")

    assert (await reader.get("/docs")).content == first.content


async def test_a_page_loads_nothing_from_elsewhere(reader: httpx2.AsyncClient) -> None:
    response = await reader.get("/docs")
    tags = Tags(response.text)

    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert response.headers["content-security-policy"] == POLICY
    addresses = tags.values_of("href") + tags.values_of("src")
    assert addresses
    assert [address for address in addresses if not re.match(r"/(?!/)|#", address)] == []


async def test_a_page_has_no_script_or_style_inside(reader: httpx2.AsyncClient) -> None:
    tags = Tags((await reader.get("/docs")).text).found

    assert [
        attributes for tag, attributes in tags if tag == "script" and "src" not in attributes
    ] == []
    assert "style" not in {tag for tag, _ in tags}
    names = {name for _, attributes in tags for name in attributes}
    assert {name for name in names if name == "style" or name.startswith("on")} == set()


async def test_every_address_of_a_page_answers(reader: httpx2.AsyncClient) -> None:
    tags = Tags((await reader.get("/docs")).text)
    ids = tags.values_of("id")

    assert len(set(ids)) == len(ids)
    for address in set(tags.values_of("href") + tags.values_of("src")):
        if address.startswith("#"):
            assert address[1:] in ids
        else:
            # The start page belongs to another router.
            assert address == "/" or (await reader.get(address)).status_code == 200


async def test_the_page_has_a_card_for_every_operation(reader: httpx2.AsyncClient) -> None:
    page = (await reader.get("/docs")).text

    cards = [found["id"] for tag, found in Tags(page).found if tag == "article"]
    assert cards == [
        "list_tree",
        "start_device_login",
        "get_openapi_json",
        "get_openapi_markdown",
        "get_docs_page",
        "list_docs",
        "search_docs",
        "search_docs_full_text",
        "get_llms_txt",
        "list_webhooks",
        "create_webhook",
        "get_webhook",
    ]


async def test_the_filter_is_hidden_until_the_script_runs(reader: httpx2.AsyncClient) -> None:
    tags = Tags((await reader.get("/docs")).text).found

    assert [found for _, found in tags if found.get("class") == "search"] == [
        {"class": "search", "hidden": None}
    ]


async def test_text_of_the_description_is_not_markup(reader: httpx2.AsyncClient) -> None:
    page = (await reader.get("/docs")).text

    assert "List the files of a &lt;b&gt;revision&lt;/b&gt;." in page
    assert "<b>" not in page


async def test_code_in_sentences_is_shown_as_code(reader: httpx2.AsyncClient) -> None:
    page = (await reader.get("/docs")).text

    assert '<p class="access">Needs the scope <code>webhooks</code>.</p>' in page


@pytest.mark.parametrize(
    ("accepted", "encoding"),
    [
        pytest.param("gzip, deflate, br", "gzip", id="a browser"),
        pytest.param("identity", None, id="a program that packs nothing out"),
        pytest.param("gzip;q=0", None, id="one that refuses it"),
    ],
)
async def test_a_document_is_packed_for_who_can_open_it(
    reader: httpx2.AsyncClient, accepted: str, encoding: str | None
) -> None:
    plain = await reader.get("/static/hublet.css", headers={"Accept-Encoding": "identity"})

    packed = await reader.get("/static/hublet.css", headers={"Accept-Encoding": accepted})

    assert packed.headers.get("content-encoding") == encoding
    assert packed.content == plain.content
    assert packed.headers["vary"] == "Accept-Encoding"


async def test_browsers_and_robots_find_what_they_ask_for_unasked(
    reader: httpx2.AsyncClient,
) -> None:
    assert (await reader.get("/favicon.ico")).headers["content-type"] == "image/svg+xml"
    assert "Disallow: /api/" in (await reader.get("/robots.txt")).text


async def test_others_are_served_while_the_description_is_made(
    reader: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_go_on = threading.Event()

    def slow(*args: Any, **options: Any) -> dict[str, Any]:
        assert may_go_on.wait(SOON_SECONDS)
        return describe(*args, **options)

    monkeypatch.setattr(routes, "describe", slow)
    waiting = [asyncio.ensure_future(reader.get(path)) for path in ("/docs", DOCUMENTS[0])]
    assert (await reader.get("/robots.txt")).status_code == 200
    may_go_on.set()

    assert [(await each).status_code for each in waiting] == [200, 200]


async def test_operations_are_found_by_the_beginnings_of_words(
    reader: httpx2.AsyncClient,
) -> None:
    found = (await reader.get("/api/docs/search", params={"q": "mark descr"})).json()

    [first] = found[:1]
    assert first["heading2"] == "Get Markdown"
    assert first["source_page_url"] == f"{BASE_URL}/docs#{first['id']}"
    assert "GET /.well-known/openapi.md" in first["text"]


async def test_every_word_has_to_occur_and_nothing_finds_nothing(
    reader: httpx2.AsyncClient,
) -> None:
    for query in ("markdown nonsense", "", "!!"):
        hits = await reader.get("/api/docs/search/full-text", params={"q": query})
        assert hits.json() == {"hits": []}
    other = await reader.get("/api/docs/search", params={"q": "markdown", "product": "peft"})
    assert other.json() == []


async def test_hits_have_headings_and_an_anchor(reader: httpx2.AsyncClient) -> None:
    response = await reader.get("/api/docs/search/full-text", params={"q": "openapi", "limit": 1})

    [hit] = response.json()["hits"]
    assert hit["url"].endswith(f"/docs#{hit['anchor']}")
    assert (hit["hierarchy_lvl0"], hit["hierarchy_lvl1"]) == ("API reference", "docs")
    page = (await reader.get("/docs")).text
    assert f'id="{hit["anchor"]}"' in page


async def test_what_documents_this_hub_is_listed(reader: httpx2.AsyncClient) -> None:
    listed = (await reader.get("/api/docs")).json()

    assert [each["url"] for each in listed] == ["/docs", "/.well-known/openapi.md"]
    assert [(await reader.get(each["url"])).status_code for each in listed] == [200, 200]
