"""Full text: cards, discussions and papers are found by their words, by whom they are for."""

from typing import Any

import httpx2
import pytest

from community.public_threads import PAPER
from hublet.accounts.records import OrganizationPlan, Role
from hublet.core.database import Database
from hublet.core.queue import tasks
from hublet.doctor.database import check_search
from hublet.search import full_text, index, text_index, text_store
from oauth.token_flows import an_app, bearer, tokens_of
from people import Headers, an_organization, sign_in
from repositories import a_push, a_repo, a_resource_group
from search.quick_searches import in_step
from workers import drain

PATH = "/api/search/full-text"
MODEL = "/api/models/ada/engine"


async def find(
    client: httpx2.AsyncClient, q: str, headers: Headers | None = None, **query: Any
) -> list[dict[str, Any]]:
    response = await client.get(PATH, params={"q": q, **query}, headers=headers or {})
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = response.json()
    return found


async def titles(
    client: httpx2.AsyncClient, q: str, headers: Headers | None = None, **query: Any
) -> list[str]:
    return [each["title"] for each in await find(client, q, headers, **query)]


async def a_card(
    client: httpx2.AsyncClient, database: Database, headers: Headers, name: str, text: str
) -> str:
    repo = await a_repo(client, headers, name)
    await a_push(database, repo, {"README.md": text.encode()})
    return repo


async def a_thread(
    client: httpx2.AsyncClient, headers: Headers, *, title: str, text: str, repo: str = MODEL
) -> str:
    body = {"title": title, "description": text}
    made = await client.post(f"{repo}/discussions", headers=headers, json=body)
    assert made.status_code == 200, made.text
    return f"{repo}/discussions/{made.json()['num']}"


async def a_comment(client: httpx2.AsyncClient, headers: Headers, thread: str, text: str) -> str:
    made = await client.post(f"{thread}/comment", headers=headers, json={"comment": text})
    assert made.status_code == 200, made.text
    return str(made.json()["newMessage"]["id"])


async def test_a_word_deep_in_a_card_is_found_with_its_place(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    text = "---\nlicense: mit\n---\n" + "steam " * 400 + "\n<b>Boilers</b>   of copper."
    await a_card(client, database, ada, "ada/engine", text)
    await in_step(database)

    [hit] = await find(client, "copper boilers")

    assert hit["repo"] == {"type": "model", "name": "ada/engine", "private": False}
    assert (hit["type"], hit["title"], hit["file"]) == ("model", "ada/engine", "README.md")
    assert hit["url"].endswith("/ada/engine")
    assert [each["text"] for each in hit["snippet"] if each["isHit"]] == ["Boilers", "copper"]
    assert "".join(each["text"] for each in hit["snippet"]).endswith("<b>Boilers</b> of copper.")
    assert await titles(client, "mit") == []


async def test_the_program_of_a_space_is_found(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    space = await a_repo(client, ada, "ada/demo", type="space", sdk="gradio")
    await a_push(database, space, {"app.py": b"launch_the_rocket()"})
    await in_step(database)

    [hit] = await find(client, "rocket", type="space")

    assert (hit["file"], hit["url"].split("/", 3)[3]) == (
        "app.py",
        "spaces/ada/demo/blob/main/app.py",
    )
    assert await find(client, "rocket", type=["model", "discussion"]) == []


async def test_discussions_are_found_by_title_opening_and_comments(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")
    thread = await a_thread(client, ada, title="Whistle too loud", text="It wakes the **valley**.")
    comment = await a_comment(client, ada, thread, "A muffler helps.")
    await in_step(database)

    [opening] = await find(client, "whistle valley")
    [reply] = await find(client, "muffler", type="discussion")

    assert (opening["num"], opening["isPullRequest"]) == (1, False)
    assert "commentId" not in opening
    assert reply["commentId"] == comment
    assert reply["url"].endswith(f"/ada/engine/discussions/1#{comment}")
    assert reply["title"] == "Whistle too loud"
    assert await find(client, "whistle muffler") == []


async def test_papers_and_their_comments_are_found(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    body = PAPER | {"summary": "Sequence transduction without recurrence."}
    await client.post("/api/papers/index", headers=ada, json=body)
    paper = f"/api/papers/{PAPER['arxivId']}"
    made = await client.post(f"{paper}/comment", headers=ada, json={"comment": "What of memory?"})
    assert made.status_code == 200, made.text
    await in_step(database)

    [hit] = await find(client, "transduction", type="paper")
    [comment] = await find(client, "memory")

    assert hit["url"].endswith(f"/papers/{PAPER['arxivId']}")
    assert (hit["paperId"], "commentId" in hit) == (PAPER["arxivId"], False)
    assert comment["url"].endswith(f"/papers/{PAPER['arxivId']}#{comment['commentId']}")


async def test_edited_and_hidden_comments_are_found_no_more(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")
    thread = await a_thread(client, ada, title="Noise", text="Opening")
    first = await a_comment(client, ada, thread, "muffler")
    second = await a_comment(client, ada, thread, "exhaust")
    await in_step(database)

    await client.post(f"{thread}/comment/{first}/edit", headers=ada, json={"content": "silencer"})
    await client.post(f"{thread}/comment/{second}/hide", headers=ada)
    late = [await find(client, word) for word in ("muffler", "exhaust", "silencer")]
    await in_step(database)

    assert late == [[], [], []]
    assert [len(await find(client, word)) for word in ("muffler", "exhaust", "silencer")] == [
        0,
        0,
        1,
    ]
    assert not [row for row in await words_of(database) if row in {"muffler", "exhaust"}]


async def words_of(database: Database) -> set[str]:
    async with database.read() as conn:
        rows = await conn.fetch_all("SELECT word FROM search_text_words")
    return {row["word"] for row in rows}


async def test_titles_renames_and_deletions_are_followed(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_card(client, database, ada, "ada/engine", "copper")
    thread = await a_thread(client, ada, title="Noise", text="whistle")
    await a_comment(client, ada, thread, "muffler")
    await client.post(f"{thread}/title", headers=ada, json={"title": "Silence"})
    move = {"fromRepo": "ada/engine", "toRepo": "ada/motor", "type": "model"}
    assert (await client.post("/api/repos/move", headers=ada, json=move)).status_code == 200
    await in_step(database)
    assert (await titles(client, "copper"), await titles(client, "noise")) == (["ada/motor"], [])
    assert await titles(client, "silence whistle") == ["Silence"]

    body = {"name": "motor", "type": "model"}
    await client.request("DELETE", "/api/repos/delete", headers=ada, json=body)
    assert await titles(client, "copper") == await titles(client, "muffler") == []
    await in_step(database)

    assert await words_of(database) == set()


async def test_a_gate_hides_the_card_at_once_and_its_words_soon(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_card(client, database, ada, "ada/engine", "copper")
    await in_step(database)
    assert await titles(client, "copper") == ["ada/engine"]

    await client.put(f"{MODEL}/settings", headers=ada, json={"gated": "auto"})
    at_once = await titles(client, "copper", ada)
    await in_step(database)

    assert at_once == []
    assert "copper" not in await words_of(database)


async def test_visibility_and_groups_are_followed_with_all_comments(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(text_index, "_AT_ONCE", 2)
    members = {"ada": Role.admin, "reader": Role.read}
    acme = await an_organization(database, "acme", plan=OrganizationPlan.team, members=members)
    group = await a_resource_group(database, acme)
    reader, stranger = await sign_in(database, "reader"), await sign_in(database, "stranger")
    await a_repo(client, ada, "acme/engine")
    root = "/api/models/acme/engine"
    thread = await a_thread(client, ada, title="Noise", text="whistle", repo=root)
    for word in ("one", "two", "three"):
        await a_comment(client, ada, thread, f"whistle {word}")
    await in_step(database)
    assert len(await find(client, "whistle")) == 4

    await client.put(f"{root}/settings", headers=ada, json={"private": True})
    assert await find(client, "whistle", stranger) == []
    await in_step(database)
    assert [len(await find(client, "whistle", each)) for each in ({}, stranger, reader)] == [
        0,
        0,
        4,
    ]

    await client.post(f"{root}/resource-group", headers=ada, json={"resourceGroupId": group.id})
    assert await find(client, "whistle", reader) == []
    await in_step(database)
    assert [len(await find(client, "whistle", each)) for each in (reader, ada)] == [0, 4]


@pytest.mark.parametrize(
    ("viewer", "count"),
    [
        pytest.param({}, 1, id="nobody in particular"),
        pytest.param({"name": "stranger"}, 1, id="a stranger"),
        pytest.param({"name": "root", "is_admin": True}, 1, id="an administrator of the hub"),
        pytest.param({"name": "reader"}, 3, id="a reader"),
        pytest.param({"name": "boss"}, 3, id="an administrator of the organization"),
        pytest.param({"name": "reader", "scopes": ["read-repos"]}, 3, id="a token with the scope"),
        pytest.param({"name": "reader", "scopes": ["profile"]}, 1, id="a token without the scope"),
    ],
)
async def test_everybody_finds_exactly_what_they_may_see(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    viewer: dict[str, Any],
    count: int,
) -> None:
    members = {"ada": Role.write, "reader": Role.read, "boss": Role.admin}
    await an_organization(database, "acme", members=members)
    await a_card(client, database, ada, "ada/open", "tide")
    secret = await a_repo(client, ada, "acme/secret", visibility="private")
    await a_push(database, secret, {"README.md": b"tide"})
    await a_thread(client, ada, title="Sea", text="tide", repo="/api/models/acme/secret")
    await in_step(database)
    headers = await sign_in(database, **viewer) if viewer else {}

    assert len(await find(client, "tide", headers)) == count


async def test_scopes_of_others_are_not_even_read(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    secret = await a_repo(client, ada, "ada/secret", visibility="private")
    await a_push(database, secret, {"README.md": b"tide"})
    await in_step(database)
    list_sources, looked_up = text_store.list_sources, list[Any]()

    async def note(conn: Any, numbers: Any) -> Any:
        looked_up.extend(numbers)
        return await list_sources(conn, numbers)

    monkeypatch.setattr(text_store, "list_sources", note)
    await find(client, "tide", await sign_in(database, "stranger"))

    assert looked_up == []


async def test_rare_words_short_texts_and_likes_come_first(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_card(client, database, ada, "ada/long", "copper " + "iron " * 500)
    await a_card(client, database, ada, "ada/often", "copper copper copper")
    await a_card(client, database, ada, "ada/once", "copper kettle")
    await a_card(client, database, ada, "ada/liked", "copper kettle")
    await client.post("/api/models/ada/liked/like", headers=ada)
    await in_step(database)

    assert await titles(client, "the copper") == ["ada/often", "ada/liked", "ada/once", "ada/long"]


async def test_pages_follow_each_other_without_gap_or_double(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(full_text, "_STEP", 2)
    for number in range(5):
        await a_card(client, database, ada, f"ada/engine-{number}", "copper")
    await in_step(database)

    seen, url = list[str](), f"{PATH}?q=copper&limit=2"
    while url:
        response = await client.get(url)
        seen += [each["title"] for each in response.json()]
        url = response.links.get("next", {}).get("url", "")

    assert sorted(seen) == [f"ada/engine-{number}" for number in range(5)]


@pytest.mark.parametrize(
    "query", [{"limit": 0}, {"limit": 51}, {"type": "user"}, {"cursor": "x"}, {"q": "a" * 1001}]
)
async def test_a_request_that_makes_no_sense_is_refused(
    client: httpx2.AsyncClient, query: dict[str, Any]
) -> None:
    response = await client.get(PATH, params={"q": "copper"} | query)

    assert response.status_code == 400
    assert next(iter(query)) in response.json()["error"]


@pytest.mark.parametrize("q", ["", "the", "?!", "a b c"])
async def test_nothing_is_found_by_words_that_say_nothing(
    client: httpx2.AsyncClient, q: str
) -> None:
    assert await find(client, q) == []


async def test_letters_of_all_scripts_are_found_and_marked(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_card(client, database, ada, "ada/engine", "Cafe\u0301 und 人工知能 der Größe")
    await in_step(database)

    for query, marked in {"CAFE": "Café", "工知": "工知", "grosse": "Größe"}.items():
        [hit] = await find(client, query)
        assert [each["text"] for each in hit["snippet"] if each["isHit"]] == [marked]


async def test_an_old_hub_fills_its_texts_and_goes_on_where_it_was_stopped(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(index, "BATCH", 2)
    monkeypatch.setattr(tasks, "_BATCHES_OF_TASK", 2)
    for number in range(3):
        await a_card(client, database, ada, f"ada/engine-{number}", "copper")
    root = "/api/models/ada/engine-0"
    thread = await a_thread(client, ada, title="Kettle", text="copper", repo=root)
    await a_comment(client, ada, thread, "copper again")
    async with database.transaction() as conn:
        # As if the hub were of a version without full text.
        await conn.execute("DELETE FROM tasks")
        assert "repositories, part 1 of 3" in (await check_search(conn)).found
    for _ in range(3):
        await text_index.FILLING.run(database)
        async with database.transaction() as conn:
            # The process is killed, and starts again.
            await conn.execute("DELETE FROM tasks")
            await text_index.FILLING.schedule(conn)
    await drain(database)

    async with database.read() as conn:
        assert await text_index.FILLING.find_part(conn) is None
    assert len(await find(client, "copper")) == 5


async def test_the_page_shows_marks_and_escapes_what_a_card_says(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_card(client, database, ada, "ada/engine", "<script>alert(1)</script> copper & coal")
    await in_step(database)

    found = await client.get("/search/full-text", params={"q": "copper", "type": "model"})
    names = await client.get("/search", params={"q": "copper"})
    wrong = await client.get("/search/full-text", params={"q": "copper", "cursor": "x"})

    assert found.status_code == 200
    assert "&lt;script&gt;alert(1)&lt;/script&gt; <mark>copper</mark> &amp; coal" in found.text
    assert "/search/full-text?q=copper" in names.text
    assert wrong.status_code == 400


async def test_an_app_finds_what_its_scopes_reach(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    secret = await a_repo(client, ada, "ada/secret", visibility="private")
    await a_push(database, secret, {"README.md": b"tide"})
    await in_step(database)

    for scopes, count in ((["openid", "profile"], 0), (["read-repos"], 1)):
        app = await an_app(database, scopes=scopes)
        given = await tokens_of(client, database, app)
        assert len(await find(client, "tide", bearer(given["access_token"]))) == count
