"""Papers: adding, reading, finding and voting for them."""

from datetime import timedelta
from typing import Any

import httpx2
import pytest
from huggingface_hub.hf_api import PaperInfo

from account_responses import pages_of
from community.public_threads import PAPER, a_comment, author_card
from hublet.accounts.records import Role, User
from hublet.core import clock
from hublet.core.database import Database
from hublet.events import ThreadCreated, ThreadDeleted
from hublet.tokens.records import TokenRole
from outbox_events import published_events
from people import Headers, a_user, an_organization, sign_in

PATH = "/api/papers"
DAILY = "/api/daily_papers"
ONE = f"{PATH}/2401.12345"
CLAIM = "/api/settings/papers/claim"


async def a_paper(
    client: httpx2.AsyncClient, headers: Headers, paper_id: str, **changes: Any
) -> dict[str, Any]:
    body = PAPER | {"arxivId": paper_id} | changes
    response = await client.post(f"{PATH}/index", headers=headers, json=body)
    assert response.status_code == 200
    paper: dict[str, Any] = response.json()
    return paper


async def ids_of(client: httpx2.AsyncClient, path: str) -> list[str]:
    return [item["paper"]["id"] for item in (await client.get(path)).json()]


def submitter(user: User) -> dict[str, Any]:
    return author_card(user) | {"user": user.name}


async def test_a_paper_is_added_with_what_is_known_of_it(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    body = PAPER | {"publishedAt": "1843-09-01T00:00:00Z"}
    early = await client.post(f"{PATH}/index", headers=ada, json=body)
    paper = await a_paper(client, ada, "2401.12345", publishedAt="2024-01-23T02:00:00+02:00")

    assert early.json() == {"error": "publishedAt must lie between the year 1900 and now."}
    user = await a_user(database, "ada")
    assert paper == {
        "_id": paper["_id"],
        "id": "2401.12345",
        "title": "Notes on the Engine",
        "summary": "It weaves algebraic patterns.",
        "authors": [
            {"_id": paper["authors"][0]["_id"], "name": "Ada Lovelace", "hidden": False},
            {"_id": paper["authors"][1]["_id"], "name": "Luigi Menabrea", "hidden": False},
        ],
        "publishedAt": "2024-01-23T00:00:00.000Z",
        "submittedOnDailyAt": paper["submittedOnDailyAt"],
        "submittedOnDailyBy": submitter(user),
        "upvotes": 0,
        "discussionId": paper["_id"],
        "numComments": 0,
    }
    assert (await client.get(f"{PATH}/2401.12345")).json() == paper
    (fact,) = await published_events(database, ThreadCreated)
    assert (fact["thread"]["kind"], fact["thread"]["paper_id"]) == ("paper", "2401.12345")
    assert (fact["thread"]["author_id"], fact["actor_id"]) == (None, user.id)


async def test_a_paper_may_have_an_id_of_its_own(client: httpx2.AsyncClient, ada: Headers) -> None:
    body = {name: value for name, value in PAPER.items() if name != "arxivId"}
    response = await client.post(f"{PATH}/index", headers=ada, json=body | {"id": "the-engine"})

    assert (response.status_code, response.json()["id"]) == (200, "the-engine")
    # Nobody said when it was published.
    assert response.json()["publishedAt"] == response.json()["submittedOnDailyAt"]


async def test_a_paper_is_added_once(client: httpx2.AsyncClient, ada: Headers) -> None:
    await a_paper(client, ada, "2401.12345")

    again = await client.post(f"{PATH}/index", headers=ada, json=PAPER)

    assert (again.status_code, again.json()) == (
        409,
        {"error": "The paper 2401.12345 is here already."},
    )


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"id": "the-engine"}, "A paper needs exactly one of arxivId and id."),
        ({"arxivId": "search"}, "The id search is reserved."),
        ({"title": "ab"}, "title must have at least 3 character(s)."),
        ({"title": "x" * 201}, "title must have at most 200 characters."),
        ({"summary": "  "}, "summary: must say something, blanks alone do not count."),
        ({"summary": "x" * 20_001}, "summary must have at most 20000 characters."),
        ({"authors": []}, "authors must have at least 1 item(s)."),
        ({"authors": ["x"] * 501}, "authors must have at most 500 items."),
        ({"authors": [" "]}, "authors[0] must have at least 1 character(s)."),
        (
            {"publishedAt": "2999-01-01T00:00:00Z"},
            "publishedAt must lie between the year 1900 and now.",
        ),
        (
            {"publishedAt": "0001-01-01T00:00:00+14:00"},
            "publishedAt must lie between the year 1900 and now.",
        ),
        ({"upvotes": 7}, "upvotes is not a known field."),
    ],
)
async def test_a_paper_that_breaks_a_rule_is_refused(
    client: httpx2.AsyncClient, ada: Headers, change: dict[str, object], sentence: str
) -> None:
    response = await client.post(f"{PATH}/index", headers=ada, json=PAPER | change)

    assert (response.status_code, response.json()) == (400, {"error": sentence})
    assert (await client.get(PATH)).json() == []


async def test_a_paper_without_an_id_is_refused(client: httpx2.AsyncClient, ada: Headers) -> None:
    body = {name: value for name, value in PAPER.items() if name != "arxivId"}

    response = await client.post(f"{PATH}/index", headers=ada, json=body)

    assert response.json() == {"error": "A paper needs exactly one of arxivId and id."}


async def test_adding_a_paper_needs_a_full_token(
    client: httpx2.AsyncClient, database: Database
) -> None:
    reader = await sign_in(database, "ada", role=TokenRole.read)

    assert (await client.post(f"{PATH}/index", headers=reader, json=PAPER)).status_code == 403
    assert (await client.post(f"{PATH}/index", json=PAPER)).status_code == 401


async def test_only_hub_administrators_submit_for_others(
    client: httpx2.AsyncClient, database: Database, ada: Headers, admin: Headers
) -> None:
    bob = await a_user(database, "bob")
    body = PAPER | {"submittedBy": "Bob"}

    refused = await client.post(f"{PATH}/index", headers=ada, json=body)
    unknown = await client.post(f"{PATH}/index", headers=admin, json=PAPER | {"submittedBy": "eve"})
    accepted = await client.post(f"{PATH}/index", headers=admin, json=body)

    assert (refused.status_code, refused.json()) == (
        403,
        {"error": "submittedBy: only hub administrators submit a paper for Bob."},
    )
    assert (unknown.status_code, unknown.json()) == (404, {"error": "There is no user eve."})
    assert accepted.json()["submittedOnDailyBy"] == submitter(bob)


async def test_whoever_submits_may_say_so(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    paper = await a_paper(client, ada, "2401.12345", submittedBy="ADA")

    assert paper["submittedOnDailyBy"] == submitter(await a_user(database, "ada"))


async def test_a_paper_that_nobody_added_is_not_found(client: httpx2.AsyncClient) -> None:
    for path in (f"{PATH}/2401.99999", "/papers/2401.99999.md", f"{PATH}/2401.99999/comments"):
        response = await client.get(path)
        assert (response.status_code, response.json()) == (
            404,
            {"error": "There is no paper 2401.99999, or you cannot see it."},
        )


async def test_a_paper_can_be_read_as_markdown(client: httpx2.AsyncClient, ada: Headers) -> None:
    await a_paper(client, ada, "2401.12345", publishedAt="2024-01-23T12:00:00Z")

    response = await client.get("/papers/2401.12345.md")

    assert response.headers["content-type"] == "text/markdown; charset=utf-8"
    assert response.text == (
        "# Notes on the Engine\n\n"
        "- Paper: 2401.12345\n"
        "- Authors: Ada Lovelace, Luigi Menabrea\n"
        "- Published: 2024-01-23\n\n"
        "## Abstract\n\nIt weaves algebraic patterns.\n"
    )


async def test_papers_are_listed_newest_first(client: httpx2.AsyncClient, ada: Headers) -> None:
    papers = [await a_paper(client, ada, f"2401.0000{number}") for number in range(3)]

    assert (await client.get(PATH)).json() == papers[::-1]
    assert await pages_of(client, f"{PATH}?limit=2", "id") == [
        ["2401.00002", "2401.00001"],
        ["2401.00000"],
    ]


FINDINGS = {
    # The newest publications come first, and at most so many as are asked for.
    "q=attention": ["2401.00002", "2401.00001"],
    "q=ATTENTION&limit=1": ["2401.00002"],
    # Every word has to occur, in the title, the summary, the authors or the id.
    "q=attention%20needs": ["2401.00001"],
    "q=grace": ["2401.00001"],
    "q=2401.00003": ["2401.00003"],
    "q=loom": [],
    # Letters fold, and signs that mean something to SQL mean themselves.
    "q=stra%C3%9Fe": ["2401.00003"],
    "q=100%25": ["2401.00003"],
    "q=a_tention": [],
    "q=wow!": ["2401.00002"],
    # Who asks for nothing finds everything.
    "": ["2401.00003", "2401.00002", "2401.00001"],
    "q=%20": ["2401.00003", "2401.00002", "2401.00001"],
}


async def test_papers_are_found_by_their_words(client: httpx2.AsyncClient, ada: Headers) -> None:
    texts: dict[str, dict[str, Any]] = {
        "2401.00001": {"title": "Attention needs you", "authors": ["Grace Hopper"]},
        "2401.00002": {"summary": "On attention. Wow!"},
        "2401.00003": {"summary": "100% of a STRASSE."},
    }
    for day, (paper_id, change) in enumerate(texts.items(), start=1):
        await a_paper(client, ada, paper_id, publishedAt=f"2024-01-0{day}T00:00:00Z", **change)

    findings = {query: await ids_of(client, f"{PATH}/search?{query}") for query in FINDINGS}

    assert findings == FINDINGS


async def test_searches_have_bounds(client: httpx2.AsyncClient) -> None:
    for query in (f"q={'x' * 201}", "limit=0", "limit=101"):
        assert (await client.get(f"{PATH}/search?{query}")).status_code == 400


async def test_a_found_paper_is_what_the_public_client_reads(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    paper = await a_paper(client, ada, "2401.12345", publishedAt="2024-01-23T12:00:00Z")
    user = await a_user(database, "ada")

    (item,) = (await client.get(f"{PATH}/search?q=engine")).json()

    assert item == {
        "paper": paper,
        "title": paper["title"],
        "summary": paper["summary"],
        "publishedAt": paper["submittedOnDailyAt"],
        "submittedBy": submitter(user),
        "numComments": 0,
    }
    for info in (PaperInfo(**item), PaperInfo(**paper)):
        assert (info.id, info.title) == ("2401.12345", "Notes on the Engine")
        assert [author.name for author in info.authors or []] == ["Ada Lovelace", "Luigi Menabrea"]
        assert info.published_at is not None
        assert info.published_at.isoformat() == "2024-01-23T12:00:00+00:00"
        assert info.submitted_by is not None
        assert info.submitted_by.username == "ada"


async def test_daily_papers_are_those_of_a_day_a_week_or_a_month(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    await a_paper(client, ada, "2401.00001")
    first = clock.now().date()
    clock.move(timedelta(days=40))
    await a_paper(client, bob, "2401.00002")
    await a_paper(client, ada, "2401.00003")
    day = clock.now().date()

    assert await ids_of(client, DAILY) == ["2401.00003", "2401.00002", "2401.00001"]
    for span in (f"date={day}", f"week={day:%G-W%V}", f"month={day:%Y-%m}"):
        assert await ids_of(client, f"{DAILY}?{span}") == ["2401.00003", "2401.00002"]
    assert await ids_of(client, f"{DAILY}?date={first}") == ["2401.00001"]
    assert await ids_of(client, f"{DAILY}?date={day + timedelta(days=1)}") == []
    assert await ids_of(client, f"{DAILY}?submitter=Ada") == ["2401.00003", "2401.00001"]
    assert await ids_of(client, f"{DAILY}?submitter=nobody") == []
    assert await ids_of(client, f"{DAILY}?limit=2&p=1") == ["2401.00001"]


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("date=yesterday", "date must be a day such as 2026-11-15."),
        ("sort=best", "sort must be one of 'publishedAt' or 'trending'."),
        ("p=-1", "p must be at least 0."),
        ("limit=101", "limit must be at most 100."),
    ],
)
async def test_what_daily_papers_cannot_be_asked(
    client: httpx2.AsyncClient, query: str, sentence: str
) -> None:
    response = await client.get(f"{DAILY}?{query}")

    assert (response.status_code, response.json()) == (400, {"error": sentence})


async def test_who_votes_for_a_paper_moves_it_up(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob", scopes=["write-discussions"])
    await a_paper(client, ada, "2401.00001")
    await a_paper(client, ada, "2401.00002")
    votes = f"{PATH}/2401.00001/upvote"

    async def vote(method: str, headers: Headers) -> dict[str, Any]:
        answer: dict[str, Any] = (await client.request(method, votes, headers=headers)).json()
        return answer

    assert await vote("POST", ada) == {"upvotes": 1, "isUpvotedByUser": True}
    assert await vote("POST", ada) == {"upvotes": 1, "isUpvotedByUser": True}
    assert await vote("POST", bob) == {"upvotes": 2, "isUpvotedByUser": True}
    assert await ids_of(client, f"{DAILY}?sort=trending") == ["2401.00001", "2401.00002"]
    assert await ids_of(client, f"{DAILY}?sort=publishedAt") == ["2401.00002", "2401.00001"]
    assert await vote("DELETE", ada) == {"upvotes": 1, "isUpvotedByUser": False}
    assert await vote("DELETE", ada) == {"upvotes": 1, "isUpvotedByUser": False}
    assert (await client.get(f"{PATH}/2401.00001")).json()["upvotes"] == 1


async def test_a_vote_needs_the_scope_to_react(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_paper(client, ada, "2401.00001")
    reader = await sign_in(database, "bob", role=TokenRole.read)

    response = await client.post(f"{PATH}/2401.00001/upvote", headers=reader)

    assert (response.status_code, response.json()) == (
        403,
        {"error": "The token lacks the scope write-discussions."},
    )


async def test_only_hub_administrators_delete_a_paper(
    client: httpx2.AsyncClient, database: Database, ada: Headers, admin: Headers
) -> None:
    await a_paper(client, ada, "2401.00001")
    await a_comment(client, ada, f"{PATH}/2401.00001")
    await client.post(f"{PATH}/2401.00001/upvote", headers=ada)

    refused = await client.delete(f"{PATH}/2401.00001", headers=ada)
    deleted = await client.delete(f"{PATH}/2401.00001", headers=admin)

    assert (refused.status_code, deleted.status_code, deleted.json()) == (403, 200, {})
    assert (await client.get(f"{PATH}/2401.00001")).status_code == 404
    assert (await client.get(PATH)).json() == []
    (fact,) = await published_events(database, ThreadDeleted)
    assert fact["thread"]["paper_id"] == "2401.00001"
    # The id is free again, and nothing is left of what was there.
    assert (await a_paper(client, ada, "2401.00001"))["upvotes"] == 0


async def test_who_submitted_a_paper_says_where_more_of_it_is(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    organization = await an_organization(database, "engines", members={"ada": Role.write})
    await a_paper(client, ada, "2401.12345")
    links = {
        "projectPage": "https://example.com/engine",
        "githubRepo": "https://github.com/ada/engine",
        "organizationId": organization.id,
    }

    changed = await client.post(f"{ONE}/links", headers=ada, json=links)
    shown = (await client.get(ONE)).json()
    await client.post(f"{ONE}/links", headers=ada, json={"githubRepo": None})
    less = (await client.get(ONE)).json()

    assert (changed.status_code, changed.json()) == (200, {})
    assert (shown["projectPage"], shown["githubRepo"]) == (
        links["projectPage"],
        links["githubRepo"],
    )
    assert shown["organization"]["name"] == "engines"
    assert "githubRepo" not in less
    assert less["projectPage"] == links["projectPage"]


async def test_strangers_and_tricks_change_no_links(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    foreign = await an_organization(database, "engines", members={"bob": Role.admin})
    await a_paper(client, ada, "2401.12345")

    async def status(headers: Headers, **links: str) -> int:
        return (await client.post(f"{ONE}/links", headers=headers, json=links)).status_code

    assert await status(bob, projectPage="https://example.com") == 403
    assert await status({}, projectPage="https://example.com") == 401
    assert await status(ada, projectPage="javascript:alert(1)") == 400
    assert await status(ada, organizationId=foreign.id) == 400
    assert "projectPage" not in (await client.get(ONE)).json()


async def test_an_author_claims_a_paper_and_may_change_its_links(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    paper = await a_paper(client, ada, "2401.12345")
    [author, *_] = paper["authors"]
    body = {"paperId": paper["id"], "claimAuthorId": author["_id"]}

    claimed = await client.post(CLAIM, headers=bob, json=body)
    link = {"projectPage": "https://example.com"}
    changed = await client.post(f"{ONE}/links", headers=bob, json=link)
    shown = (await client.get(ONE)).json()

    assert claimed.json() == {"ok": True, "claimedPaperId": paper["id"]}
    assert changed.status_code == 200
    assert shown["authors"][0]["user"]["name"] == "bob"


async def test_a_claim_is_set_right_by_hub_administrators_only(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob, root = await sign_in(database, "bob"), await sign_in(database, "root", is_admin=True)
    paper = await a_paper(client, ada, "2401.12345")
    body = {"paperId": paper["id"], "claimAuthorId": paper["authors"][0]["_id"]}
    await client.post(CLAIM, headers=bob, json=body)
    for_ada = body | {"targetUserId": (await a_user(database, "ada")).id}

    async def claim(headers: Headers, **changed: str) -> int:
        return (await client.post(CLAIM, headers=headers, json=for_ada | changed)).status_code

    assert await claim(ada) == 409
    assert await claim(bob) == 400
    assert await claim(root, targetUserId="0" * 24) == 400
    assert await claim(root, claimAuthorId="0" * 24) == 400
    assert await claim(root, paperId="2401.99999") == 404
    assert await claim(root) == 200
    assert (await client.get(ONE)).json()["authors"][0]["user"]["name"] == "ada"
