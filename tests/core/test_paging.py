"""Lists that are read page by page."""

import base64
import zlib
from collections.abc import AsyncIterator

import httpx2
import pytest
from fastapi import APIRouter

from hublet.core.http.paging import PAGED_RESPONSES, PageQuery
from hublet.core.paging import InvalidCursor, next_url, read_cursor, write_cursor
from small_hub import small_hub

LETTERS = "abcdefg"

letters = APIRouter()


@letters.get("/api/letters/{kind}", responses=PAGED_RESPONSES)
async def list_letters(kind: str, page: PageQuery) -> list[str]:
    found = [letter for letter in LETTERS if letter > page.after][: page.reach]
    return page.cut(found, position=lambda letter: letter)


@pytest.fixture
async def caller() -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=small_hub(letters))
    # The hub's own address is http://hub.test, whatever name it is called by.
    async with httpx2.AsyncClient(transport=transport, base_url="http://proxy.test") as caller:
        yield caller


def forged(position: bytes) -> str:
    octets = zlib.crc32(position).to_bytes(4) + position
    return base64.urlsafe_b64encode(octets).decode().rstrip("=")


@pytest.mark.parametrize(
    "position",
    [
        pytest.param("0123456789abcdef01234567", id="an id"),
        pytest.param("2026-11-15|ada/engine", id="two parts"),
        pytest.param("ärger", id="letters beyond ASCII"),
        pytest.param("x", id="a single letter"),
    ],
)
def test_a_cursor_brings_back_its_position(position: str) -> None:
    cursor = write_cursor(position)

    assert read_cursor(cursor) == position
    assert cursor.isascii()
    assert not set(cursor) & set("+/=&#% ")


@pytest.mark.parametrize(
    "cursor",
    [
        pytest.param("x", id="too short to be one"),
        pytest.param("0123456789abcdef01234567", id="an id instead of a cursor"),
        pytest.param(write_cursor("abc")[:-1], id="its end is cut off"),
        pytest.param(write_cursor("abc") + "A", id="something was added"),
        pytest.param(write_cursor("abc") + "=", id="padding was added"),
        pytest.param(write_cursor("abc") + " ", id="a blank was added"),
        pytest.param("ä" * 8, id="letters beyond ASCII"),
        pytest.param(forged(b"a\x00b"), id="the NUL character inside"),
        pytest.param(forged(b"\xff\xfe"), id="not text at all"),
    ],
)
def test_what_is_no_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidCursor):
        read_cursor(cursor)


@pytest.mark.parametrize(
    ("path", "query", "url"),
    [
        pytest.param(b"/api/list", [], "/api/list?cursor=next", id="without filters"),
        pytest.param(
            b"/api/list",
            [("tag", "a b"), ("tag", "c&d"), ("limit", "5")],
            "/api/list?tag=a+b&tag=c%26d&limit=5&cursor=next",
            id="filters stay, also those given twice",
        ),
        pytest.param(
            b"/api/list",
            [("cursor", "this"), ("limit", "5")],
            "/api/list?limit=5&cursor=next",
            id="the cursor of this page goes",
        ),
        pytest.param(
            b"/api/tree/refs%2Fpr%2F1",
            [],
            "/api/tree/refs%2Fpr%2F1?cursor=next",
            id="an encoded slash stays one",
        ),
        pytest.param(
            b'/api/a>b"c', [], "/api/a%3Eb%22c?cursor=next", id="nothing ends the link early"
        ),
    ],
)
def test_the_next_address_is_the_same_list(
    path: bytes, query: list[tuple[str, str]], url: str
) -> None:
    found = next_url("https://hub.example.com", path=path, query=query, cursor="next")

    assert found == f"https://hub.example.com{url}"


async def test_links_lead_through_the_whole_list(caller: httpx2.AsyncClient) -> None:
    pages: list[list[str]] = []
    url: str | None = "http://proxy.test/api/letters/small?limit=3&order=up"
    while url:
        response = await caller.get(url)
        pages.append(response.json())
        url = response.links.get("next", {}).get("url")

    assert pages == [["a", "b", "c"], ["d", "e", "f"], ["g"]]


async def test_a_link_is_absolute_under_the_hubs_own_address(caller: httpx2.AsyncClient) -> None:
    response = await caller.get("/api/letters/sm%C3%A4ll?limit=2&order=up")

    cursor = write_cursor("b")
    assert response.headers["link"] == (
        f'<http://hub.test/api/letters/sm%C3%A4ll?limit=2&order=up&cursor={cursor}>; rel="next"'
    )


@pytest.mark.parametrize(
    ("query", "count"),
    [
        pytest.param("limit=7", 7, id="a page that fits exactly is the last one"),
        pytest.param("limit=100", 7, id="the largest page"),
        pytest.param("", 7, id="the usual page"),
        pytest.param(f"cursor={write_cursor('g')}", 0, id="nothing is left"),
        pytest.param("cursor=", 7, id="an empty cursor is none"),
    ],
)
async def test_the_last_page_has_no_link(
    caller: httpx2.AsyncClient, query: str, count: int
) -> None:
    response = await caller.get(f"/api/letters/small?{query}")

    assert len(response.json()) == count
    assert "link" not in response.headers


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("limit=0", "limit must be at least 1."),
        ("limit=101", "limit must be at most 100."),
        ("limit=many", "limit must be an integer."),
        ("cursor=abc", "cursor must be taken from the Link header of the page before."),
    ],
)
async def test_a_page_that_cannot_be_is_refused(
    caller: httpx2.AsyncClient, query: str, sentence: str
) -> None:
    response = await caller.get(f"/api/letters/small?{query}")

    assert (response.status_code, response.json()) == (400, {"error": sentence})
