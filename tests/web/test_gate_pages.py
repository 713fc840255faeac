"""The gate of a repository in the browser: what it asks, what becomes of it, who decides."""

import httpx2
import pytest

from hublet.core.database import Database
from hublet.repos import cards
from hublet.repos.records import RepoType
from login.login_pages import a_person, log_in
from people import Headers, sign_in
from repositories import a_push, a_repo
from web.parsed_pages import HTML, Element, parse, submit

README = """---
extra_gated_heading: Tell us who you are
extra_gated_prompt: Be **kind**. <script>alert(1)</script>
extra_gated_button_content: I promise
extra_gated_fields:
  Company: text
  Born: date_picker
  Use:
    type: select
    options: [Research, {label: Something else, value: other}]
  I agree: checkbox
---
# Gated
"""
ANSWERS = {"field-0": "Lab", "field-1": "1815-12-10", "field-2": "other", "field-3": "yes"}
REQUESTS = "/ada/engine/settings/access-requests"


@pytest.fixture
async def gated(client: httpx2.AsyncClient, database: Database) -> Headers:
    """The headers of ada, whose ada/engine is gated."""
    await a_person(database, "ada")
    await a_person(database, "bob", email="bob@example.com")
    ada = await sign_in(database, "ada")
    repo_id = await a_repo(client, ada, "ada/engine")
    card = cards.parse_card(README.encode(), RepoType.model)
    await a_push(database, repo_id, {"README.md": README.encode(), "a": b"x"}, card=card.data)
    await client.put("/api/models/ada/engine/settings", headers=ada, json={"gated": "manual"})
    return ada


async def open_page(client: httpx2.AsyncClient, path: str = "/ada/engine") -> Element:
    response = await client.get(path, headers=HTML)
    assert response.status_code == 200, response.text
    return parse(response)


def gate_of(page: Element) -> Element:
    return page.one("section", id="gate")


async def ask(client: httpx2.AsyncClient, **answers: str) -> httpx2.Response:
    await log_in(client, "bob")
    return await submit(
        client, await open_page(client), "/ada/engine/request-access", **ANSWERS | answers
    )


async def test_a_stranger_reads_the_card_and_what_is_asked(
    client: httpx2.AsyncClient, gated: Headers
) -> None:
    page = await open_page(client)

    gate = gate_of(page)
    assert page.one("article").text.startswith("Gated")
    assert gate.one("h2").text == "Tell us who you are"
    assert gate.one("div", class_="md").text == "Be kind."
    assert "What is asked: Company, Born, Use, I agree." in gate.text
    assert gate.one("a", class_="btn").attributes["href"] == "/login?next=/ada/engine"
    assert gate.all("form") == []


async def test_after_the_login_one_is_back_here(client: httpx2.AsyncClient, gated: Headers) -> None:
    response = await log_in(client, "bob", next="/ada/engine")

    assert response.headers["location"] == "/ada/engine"
    form = gate_of(await open_page(client)).one("form")
    assert [each.text for each in form.all("label")] == ["Company", "Born", "Use", "I agree"]
    assert form.one("button").text == "I promise"


async def test_a_request_waits_and_can_be_withdrawn(
    client: httpx2.AsyncClient, gated: Headers
) -> None:
    asked = await ask(client)
    waiting = await open_page(client)
    await submit(client, waiting, "/ada/engine/withdraw-request")

    assert (asked.status_code, asked.headers["location"]) == (303, "/ada/engine")
    assert "ada has not decided yet." in gate_of(waiting).text
    assert waiting.one("p", class_="toast").text.startswith("Your request is with the owner")
    assert gate_of(await open_page(client)).all("button", class_="main")


async def test_an_automatic_gate_opens_at_once(client: httpx2.AsyncClient, gated: Headers) -> None:
    await client.put("/api/models/ada/engine/settings", headers=gated, json={"gated": "auto"})

    before = await client.get("/ada/engine/resolve/main/a")
    await ask(client)
    page = await open_page(client)

    assert before.status_code in {401, 403}
    assert page.all("section", id="gate") == []
    assert "You have access to the files." in page.text
    assert (await client.get("/ada/engine/resolve/main/a")).content == b"x"


@pytest.mark.parametrize(
    ("answers", "problem"),
    [
        pytest.param({"field-0": "  "}, "This is needed.", id="an empty answer"),
        pytest.param(
            {"field-0": "x" * 2001}, "This has at most 2,000 characters.", id="a long one"
        ),
        pytest.param({"field-1": "soon"}, "This is a date, as in 2026-11-17.", id="no date"),
        pytest.param({"field-2": "war"}, "This is none of the choices.", id="another choice"),
        pytest.param({"field-3": ""}, "This has to be ticked.", id="not ticked"),
    ],
)
async def test_wrong_answers_come_back_with_what_was_typed(
    client: httpx2.AsyncClient, gated: Headers, answers: dict[str, str], problem: str
) -> None:
    response = await ask(client, **answers)

    gate = gate_of(parse(response))
    assert response.status_code == 422
    assert gate.one("p", class_="error").text == problem
    name = gate.one("input", name="field-0").attributes["value"]
    assert name == answers.get("field-0", "Lab").strip(" ") or name.isspace()
    pending = await client.get("/api/models/ada/engine/user-access-request/pending", headers=gated)
    assert pending.json() == []


async def test_the_owner_sees_who_waits_and_accepts(
    client: httpx2.AsyncClient, gated: Headers
) -> None:
    await ask(client)
    await log_in(client, "ada")

    card = await open_page(client)
    requests = await open_page(client, REQUESTS)
    decided = await submit(client, requests, f"{REQUESTS}/decide", status="accepted")
    after = await open_page(client, REQUESTS)
    await log_in(client, "bob")

    assert "1 person waits for your decision." in card.one("p", class_="notice").text
    request = requests.one("article")
    assert "bob@example.com" in request.text
    assert [each.text for each in request.all("dd")] == ["Lab", "1815-12-10", "other", "yes"]
    assert decided.status_code == 303
    assert after.one("div", class_="empty").one("h2").text == "Nobody waits."
    assert (await client.get("/ada/engine/resolve/main/a")).content == b"x"


async def test_a_rejection_tells_its_reason(client: httpx2.AsyncClient, gated: Headers) -> None:
    await ask(client)
    await log_in(client, "ada")
    requests = await open_page(client, REQUESTS)
    await submit(client, requests, f"{REQUESTS}/decide", status="rejected", reason="Too early")
    rejected = await open_page(client, f"{REQUESTS}?status=rejected")
    await log_in(client, "bob")

    assert "Reason: Too early" in rejected.one("article").text
    assert "ada rejected your request: “Too early”" in gate_of(await open_page(client)).text


@pytest.mark.parametrize("reason", ["maybe", "x" * 201])
async def test_a_decision_that_is_none_is_refused(
    client: httpx2.AsyncClient, gated: Headers, reason: str
) -> None:
    await ask(client)
    await log_in(client, "ada")
    requests = await open_page(client, REQUESTS)
    status = "rejected" if len(reason) > 200 else reason

    response = await submit(client, requests, f"{REQUESTS}/decide", status=status, reason=reason)

    assert response.status_code == 400


async def test_only_who_manages_a_repository_sees_its_requests(
    client: httpx2.AsyncClient, gated: Headers
) -> None:
    signed_out = await client.get(REQUESTS, headers=HTML)
    await log_in(client, "bob")
    other = await client.get(REQUESTS, headers=HTML)
    decided = await client.post(f"{REQUESTS}/decide", headers=HTML, data={"status": "accepted"})

    assert signed_out.headers["location"].startswith("/login?next=/ada/engine/settings")
    assert (other.status_code, decided.status_code) == (403, 403)
