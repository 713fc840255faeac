"""The inbox in a browser: groups, filters, tabs, changes of all sizes, and how they are undone."""

from datetime import timedelta
from functools import partial
from operator import itemgetter

import httpx2
import pytest

from hublet.core import clock
from hublet.core.database import Database
from hublet.notifications.messages import service as messages
from hublet.notifications.messages.texts import new_follower
from hublet.notifications.records import Involvement, SubscriptionTarget, WatchType
from hublet.notifications.watches_store import add_watches
from login.login_pages import a_person, log_in, notices_in
from notifications.inboxes import kept_counts, look, rows_of, true_counts
from people import Headers, a_user, sign_in
from statements import Statements
from web.inbox_pages import INBOX, hear_of, open_inbox, press, tabs_on, titles_on, undo
from web.parsed_pages import HTML, parse
from workers import drain

PAD, CARD, LOSS, WHEEL = "Pad on the left", "One 24 GB card?", "Loss is flat", "A broken wheel"


@pytest.fixture
async def ada(client: httpx2.AsyncClient, database: Database) -> Headers:
    """Ada, signed in with a browser."""
    await a_person(database, "ada")
    await log_in(client, "ada")
    return await sign_in(database, "ada")


@pytest.fixture
async def user_id(database: Database, ada: Headers) -> str:
    return (await a_user(database, "ada")).id


@pytest.fixture
async def ids(
    client: httpx2.AsyncClient, database: Database, ada: Headers, user_id: str
) -> dict[str, str]:
    """Four unread threads in two repositories of ada: one is merged, in one she is mentioned."""
    hear = partial(hear_of, client, database, ada, user_id=user_id)
    return {
        **await hear({"ada/engine": [PAD]}, status="merged"),
        **await hear({"ada/engine": [CARD]}, involvement=Involvement.mentioned),
        **await hear({"ada/loom": [LOSS], "ada/engine": [WHEEL]}),
    }


async def unread_titles(client: httpx2.AsyncClient, ada: Headers) -> set[str]:
    found = await look(client, ada, readStatus="unread")
    return {each["discussion"]["title"] for each in found["notifications"]}


async def follow(client: httpx2.AsyncClient, response: httpx2.Response) -> httpx2.Response:
    assert response.status_code == 303, response.text
    return await client.get(response.headers["location"], headers=HTML)


@pytest.mark.usefixtures("ids")
async def test_items_stand_by_their_repositories_newest_first(client: httpx2.AsyncClient) -> None:
    page = await open_inbox(client)

    assert titles_on(page) == {"ada/engine": [WHEEL, CARD, PAD], "ada/loom": [LOSS]}
    assert tabs_on(page) == ["Unread 4", "Participating 1", "Mentions 1", "All 4"]
    by_time = titles_on(await open_inbox(client, f"{INBOX}?group=none"))
    assert by_time == {"Items": [WHEEL, LOSS, CARD, PAD]}
    links = [each.attributes["href"] for each in page.all("a", class_="title")]
    assert links[0] == "/ada/engine/discussions/3"


@pytest.mark.usefixtures("ids")
async def test_the_address_has_the_filters_of_the_interface(client: httpx2.AsyncClient) -> None:
    cases: list[tuple[str, set[str]]] = [
        ("q=CARD", {CARD}),
        ("q=100%25", set()),
        ("repoName=ada/loom", {LOSS}),
        ("repoType=model&mention=participating", {CARD}),
        ("repoType=dataset", set()),
        ("repoType=paper", set()),
        ("mention=mentions&readStatus=all", {CARD}),
        ("lastUpdate=1999-12-31", set()),
        ("lastUpdate=2999-12-31&repoName=&q=", {PAD, CARD, LOSS, WHEEL}),
        ("p=7", {PAD, CARD, LOSS, WHEEL}),
    ]
    for query, titles in cases:
        page = await open_inbox(client, f"{INBOX}?{query}")
        found = {each for group in titles_on(page).values() for each in group}
        assert found == titles, query
        assert bool(titles) or "None of 4 match." in page.text


async def test_a_filter_that_says_nothing_is_refused(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    response = await client.get(f"{INBOX}?repoType=engine", headers=HTML)

    assert response.status_code == 400
    assert "repoType" in response.text


@pytest.mark.parametrize(
    "case",
    [
        ("done selected", [PAD, LOSS], {CARD, WHEEL}),
        ("done page", [], set()),
        ("done all", [], set()),
        ("done finished", [], {CARD, LOSS, WHEEL}),
        ("mute selected", [CARD], {PAD, LOSS, WHEEL}),
        ("mute page", [], set()),
    ],
    ids=itemgetter(0),
)
async def test_what_a_button_changed_is_undone_to_the_letter(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    ids: dict[str, str],
    case: tuple[str, list[str], set[str]],
) -> None:
    button, ticked, left = case
    user_id = (await a_user(database, "ada")).id
    before = await rows_of(database, user_id)
    page = await open_inbox(client)
    after = await follow(
        client, await press(client, page, button, ticked=[ids[each] for each in ticked])
    )

    assert await unread_titles(client, ada) == left
    muted = (await client.get("/api/settings/mute", headers=ada)).json()["muted"]
    assert {each["name"] for each in muted} == ({*ids} - left if "mute" in button else set())
    assert await kept_counts(database) == await true_counts(database)

    again = await follow(client, await undo(client, parse(after)))
    assert not parse(again).all("form", class_="undo")
    assert await rows_of(database, user_id) == before
    assert (await client.get("/api/settings/mute", headers=ada)).json() == {"muted": []}
    assert await kept_counts(database) == await true_counts(database)


async def test_one_item_or_one_group_is_done_and_unread_again(
    client: httpx2.AsyncClient, database: Database, ada: Headers, ids: dict[str, str], user_id: str
) -> None:
    await press(client, await open_inbox(client), f"done item {ids[LOSS]}")
    assert await unread_titles(client, ada) == {PAD, CARD, WHEEL}
    [engine, _] = {row["place_id"]: 0 for row in await rows_of(database, user_id)}
    await press(client, await open_inbox(client), f"done group {engine}")
    assert await unread_titles(client, ada) == set()

    everything = await open_inbox(client, f"{INBOX}?readStatus=all")
    assert tabs_on(everything) == ["Unread 0", "Participating 0", "Mentions 0", "All 4"]
    response = await press(client, everything, f"unread item {ids[PAD]}")
    assert "1 unread again." in (await follow(client, response)).text
    assert await unread_titles(client, ada) == {PAD}


async def test_what_came_since_is_neither_changed_nor_undone(
    client: httpx2.AsyncClient, database: Database, ada: Headers, ids: dict[str, str], user_id: str
) -> None:
    page = await open_inbox(client)
    await hear_of(client, database, ada, {"ada/loom": ["Later"]}, user_id=user_id)
    after = parse(await follow(client, await press(client, page, "done all")))
    assert await unread_titles(client, ada) == {"Later"}

    # Marked as unread by another program, and done again there: the state of another change.
    mark = "/api/notifications/mark-as-read"
    await client.post(mark, headers=ada, json={"discussionIds": [ids[PAD]], "read": False})
    await press(client, await open_inbox(client), "done page")
    await undo(client, after)

    assert await unread_titles(client, ada) == {PAD, CARD, LOSS, WHEEL}
    assert notices_in(await undo(client, after)) == [
        "It was undone already, or it is too long ago to be undone."
    ]


@pytest.mark.usefixtures("ids")
async def test_a_change_can_be_undone_for_an_hour_and_only_by_who_made_it(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    response = await press(client, await open_inbox(client), "done page")
    await a_person(database, "bob")
    client.cookies.clear()
    await log_in(client, "bob")
    assert "Undo" not in (await client.get(response.headers["location"], headers=HTML)).text
    client.cookies.clear()
    await log_in(client, "ada")

    page = parse(await follow(client, response))
    later = clock.now() + timedelta(minutes=61)
    monkeypatch.setattr("hublet.notifications.inbox_changes.now", lambda: later)
    assert (await undo(client, page)).status_code == 422
    assert await unread_titles(client, ada) == set()


@pytest.mark.usefixtures("ids")
async def test_a_script_gets_the_part_that_changed(client: httpx2.AsyncClient) -> None:
    page = await open_inbox(client)
    nothing = await press(client, page, "done selected", Fragment="inbox")
    assert nothing.status_code == 422
    assert "tick the boxes" in nothing.text
    response = await press(client, page, "done finished", Fragment="inbox")

    assert response.status_code == 200
    assert response.text.strip().startswith('<div id="inbox">')
    assert "1 done." in response.text
    assert PAD not in response.text
    live = await client.get(INBOX, headers=HTML | {"Fragment": "live"})
    assert [each.attributes["id"] for each in parse(live).children] == [
        "inbox-tabs",
        "inbox-bar",
        "inbox-list",
        "inbox-pages",
    ]


async def test_an_empty_inbox_says_what_is_watched(
    client: httpx2.AsyncClient, database: Database, user_id: str
) -> None:
    targets = [SubscriptionTarget(type=WatchType.repo, id=f"{n:024x}") for n in range(12)]
    async with database.transaction() as conn:
        await add_watches(conn, targets, user_id=user_id)

    page = await open_inbox(client)

    assert "Nothing unread." in page.text
    assert "You watch 12 repositories." in page.text


async def test_a_message_of_the_hub_has_its_own_page(
    client: httpx2.AsyncClient, database: Database, user_id: str
) -> None:
    async with database.transaction() as conn:
        await messages.notify_in_inbox(conn, [user_id], new_follower(follower="grace"))
    page = await open_inbox(client)
    assert titles_on(page) == {"Hublet": ["grace follows you"]}
    [link] = page.all("a", class_="title")
    message = await client.get(link.attributes["href"], headers=HTML)
    assert "grace began to follow you" in message.text

    await a_person(database, "bob")
    client.cookies.clear()
    await log_in(client, "bob")
    assert (await client.get(link.attributes["href"], headers=HTML)).status_code == 404


async def test_a_row_says_who_did_what_last(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    bob = await sign_in(database, "bob")
    await client.post("/api/repos/create", headers=ada, json={"name": "engine"})
    path = "/api/models/ada/engine/discussions"
    await client.post(path, headers=bob, json={"title": PAD, "description": "Look, @ada."})
    await drain(database)
    page = await open_inbox(client)
    assert "bob wrote" in page.text
    assert "you were mentioned" in page.text

    await client.post(f"{path}/1/status", headers=bob, json={"status": "closed"})
    await drain(database)
    page = await open_inbox(client)
    assert "bob closed it" in page.text
    [link] = page.all("a", class_="title")
    assert link.attributes["href"].startswith("/ada/engine/discussions/1#")


async def test_a_page_takes_few_statements_however_much_is_on_it(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    statements: Statements,
    ids: dict[str, str],
) -> None:
    user_id = (await a_user(database, "ada")).id
    more = {f"ada/engine{n}": [f"A thread {n}"] for n in range(5)}
    await hear_of(client, database, ada, more, user_id=user_id)
    async with database.transaction() as conn:
        await messages.notify_in_inbox(conn, [user_id], new_follower(follower="grace"))
    response = await press(client, await open_inbox(client), f"done item {ids[PAD]}")

    # The session, the counts, the page, what its items are about, messages, events, the groups.
    counted = []
    for path in (INBOX, response.headers["location"], f"{INBOX}?repoName=ada/engine&q=a"):
        statements.begin()
        await open_inbox(client, path)
        counted.append(len(statements.noted))
    assert counted == [7, 8, 8], statements.noted
