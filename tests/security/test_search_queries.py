"""Hostile queries: whatever is asked, the work is bounded and nothing is interpreted."""

import httpx2
import pytest

from hublet.core.database import Database
from hublet.search import store, words
from hublet.search.records import IndexPosition
from hublet.search.store import WordQuery
from people import Headers
from repositories import a_repo

PATH = "/api/quicksearch"


@pytest.mark.parametrize(
    "q",
    [
        "%", "_", "*", "%%%%", "e*", "e%", "'", "' OR 1=1 --", '"', "\\", "${1}", "$1",
        "\x1b[31m", "\x7f\x01", "\u202eenigne", "\ud83d\ude80", "🚀" * 300, "\ufdfa" * 1000,
        "é" * 1000, "(" * 1000, "w " * 500, " ".join(str(n) for n in range(250)), "\U0010ffff",
    ],
)  # fmt: skip
async def test_a_hostile_query_finds_nothing_and_harms_nothing(
    client: httpx2.AsyncClient, database: Database, ada: Headers, q: str
) -> None:
    body = {"q": q.encode("utf-16", "surrogatepass").decode("utf-16")[:1000]}

    response = await client.post(PATH, headers=ada, json=body)

    assert response.status_code == 200
    assert response.json()["q"] == body["q"]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param({"q": "word " * 10_000}, id="ten thousand words"),
        pytest.param({"q": "x" * 1_000_000}, id="a megabyte"),
        pytest.param({"exclude": ["models/a/b"] * 101}, id="a long list"),
        pytest.param({"type": ["model"] * 21}, id="many types"),
        pytest.param({"namespace": "x" * 201}, id="a long owner"),
        pytest.param({"q": ["a"]}, id="no text"),
        pytest.param({"colour": "red"}, id="an unknown field"),
    ],
)
async def test_what_is_too_large_or_no_query_is_refused(
    client: httpx2.AsyncClient, body: dict[str, object]
) -> None:
    response = await client.post(PATH, json=body)

    assert response.status_code in {400, 413, 422}
    assert next(iter(body)) in response.json()["error"] or response.status_code == 413


async def test_a_nul_is_refused_as_in_every_body(client: httpx2.AsyncClient) -> None:
    assert (await client.post(PATH, json={"q": "a\x00b"})).status_code == 400


async def test_the_words_of_a_query_reach_sql_as_values_only(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")
    hostile = words.of_query("engine' OR '1'='1 %_* \x00 " + "z" * 500)
    query = WordQuery(driver=hostile[0], others=hostile[1:], whole=words.joined(hostile))

    async with database.read() as conn:
        found = await store.list_candidates(
            conn, ["m", "mo' OR 1=1"], query, after=IndexPosition(), limit=5
        )

    assert found == []
    assert all(word.isalnum() for word in hostile)
