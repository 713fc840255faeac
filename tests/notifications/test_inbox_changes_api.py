"""Marking as read and deleting: by ids, by filters, and never what came later."""

from typing import Any

import httpx2
import pytest

from hublet.core.clock import from_micros
from hublet.core.database import Database
from hublet.notifications.inbox import service
from hublet.notifications.records import Selection
from hublet.tokens.records import TokenRole
from notifications.inboxes import (
    INBOX,
    MARK,
    MENTIONED,
    WATCHED,
    an_item,
    delete,
    deliver,
    kept_counts,
    mark,
    rows_of,
    true_counts,
)
from people import Headers, a_user, sign_in

ONE, TWO, THREE = "1" * 23 + "a", "2" * 23 + "b", "3" * 23 + "c"
PLACE = "d" * 24


@pytest.fixture
async def user_id(database: Database, ada: Headers) -> str:
    """Ada, with three unread items: one, two in a place, and three in which she is mentioned."""
    user = await a_user(database, "ada")
    await deliver(database, an_item(ONE, event_id="e1"), {user.id: WATCHED})
    await deliver(database, an_item(TWO, type="dataset", place_id=PLACE), {user.id: WATCHED})
    await deliver(database, an_item(THREE, type="paper"), {user.id: MENTIONED})
    return user.id


async def unread(database: Database, user_id: str) -> list[str]:
    """Return what is unread, oldest first; the counts have to be right."""
    assert await kept_counts(database) == await true_counts(database)
    rows = await rows_of(database, user_id)
    return [row["thread_id"] for row in reversed(rows) if not row["read"]]


async def present(database: Database, user_id: str) -> list[str]:
    assert await kept_counts(database) == await true_counts(database)
    return [row["thread_id"] for row in reversed(await rows_of(database, user_id))]


async def test_threads_are_marked_by_their_ids_in_either_case(
    client: httpx2.AsyncClient, database: Database, ada: Headers, user_id: str
) -> None:
    ids = [ONE.upper(), TWO, "f" * 24]
    assert await mark(client, ada, {"discussionIds": ids}) == 2
    assert await unread(database, user_id) == [THREE]
    assert await mark(client, ada, {"discussionIds": ids}) == 0


async def test_marking_keeps_the_order_of_time(
    client: httpx2.AsyncClient, database: Database, ada: Headers, user_id: str
) -> None:
    before = await rows_of(database, user_id)
    await mark(client, ada, applyToAll="true")

    assert await rows_of(database, user_id) == [row | {"read": True} for row in before]


async def test_what_is_marked_as_unread_leads_to_what_happened_last(
    client: httpx2.AsyncClient, database: Database, ada: Headers, user_id: str
) -> None:
    await deliver(database, an_item(ONE, event_id="e2"), {user_id: WATCHED})
    await mark(client, ada, applyToAll="true")

    assert await mark(client, ada, {"discussionIds": [ONE, TWO], "read": False}) == 2
    assert await mark(client, ada, {"discussionIds": [ONE, TWO], "read": False}) == 0
    assert await unread(database, user_id) == [TWO, ONE]
    newest = (await rows_of(database, user_id))[0]
    assert (newest["event_id"], newest["last_event_id"]) == ("e2", "e2")


async def test_marking_as_read_keeps_where_it_leads(
    client: httpx2.AsyncClient, database: Database, ada: Headers, user_id: str
) -> None:
    await deliver(database, an_item(ONE, event_id="e2"), {user_id: WATCHED})
    await mark(client, ada, applyToAll="true")

    assert (await rows_of(database, user_id))[0]["event_id"] == "e1"


async def test_threads_are_deleted_by_their_ids_and_come_back_unread(
    client: httpx2.AsyncClient, database: Database, ada: Headers, user_id: str
) -> None:
    await mark(client, ada, applyToAll="true")
    assert await delete(client, ada, {"discussionIds": [ONE.upper(), "f" * 24]}) == 1
    assert await present(database, user_id) == [TWO, THREE]

    await deliver(database, an_item(ONE, event_id="e3"), {user_id: WATCHED})
    assert await unread(database, user_id) == [ONE]
    assert (await rows_of(database, user_id))[0]["event_id"] == "e3"


@pytest.mark.parametrize(
    ("filters", "touched"),
    [
        pytest.param({}, [ONE, TWO, THREE], id="everything"),
        pytest.param({"p": 3}, [ONE, TWO, THREE], id="a page means nothing here"),
        pytest.param({"repoType": "dataset"}, [TWO], id="a type"),
        pytest.param({"mention": "mentions"}, [THREE], id="mentions"),
        pytest.param({"mention": "participating"}, [THREE], id="participating"),
        pytest.param({"readStatus": "unread"}, [TWO, THREE], id="unread"),
        pytest.param({"repoName": "ada/nothing"}, [], id="an unknown name"),
    ],
)
async def test_all_that_matches_is_deleted(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    user_id: str,
    filters: dict[str, Any],
    touched: list[str],
) -> None:
    await mark(client, ada, {"discussionIds": [ONE]})

    assert await delete(client, ada, applyToAll="true", **filters) == len(touched)
    left = [thread for thread in (ONE, TWO, THREE) if thread not in touched]
    assert await present(database, user_id) == left


@pytest.mark.parametrize(
    ("filters", "touched"),
    [
        pytest.param({}, [TWO, THREE], id="everything that is unread"),
        pytest.param({"repoType": "dataset"}, [TWO], id="a type"),
        pytest.param({"repoType": "model"}, [], id="nothing that differs"),
        pytest.param({"mention": "participating"}, [THREE], id="involved"),
        pytest.param({"repoName": "ada/nothing"}, [], id="an unknown name"),
    ],
)
async def test_all_that_matches_and_differs_is_marked(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    user_id: str,
    filters: dict[str, Any],
    touched: list[str],
) -> None:
    await mark(client, ada, {"discussionIds": [ONE]})

    assert await mark(client, ada, {}, applyToAll="true", **filters) == len(touched)
    assert await unread(database, user_id) == [t for t in (TWO, THREE) if t not in touched]


async def test_filters_narrow_what_ids_name(
    client: httpx2.AsyncClient, database: Database, ada: Headers, user_id: str
) -> None:
    body = {"discussionIds": [ONE, TWO, THREE]}
    assert await mark(client, ada, body, repoType="dataset") == 1
    assert await delete(client, ada, body, mention="mentions") == 1
    assert await present(database, user_id) == [ONE, TWO]
    assert await unread(database, user_id) == [ONE]


@pytest.mark.parametrize("change", [mark, delete])
async def test_last_update_bounds_a_change_to_the_microsecond(
    client: httpx2.AsyncClient, database: Database, ada: Headers, user_id: str, change: Any
) -> None:
    moment = from_micros((await rows_of(database, user_id))[1]["updated_at"])
    shown = moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    await deliver(database, an_item(ONE), {user_id: WATCHED})

    assert await change(client, ada, {"discussionIds": [ONE]}, lastUpdate=shown) == 0
    assert await change(client, ada, applyToAll="true", lastUpdate=shown) == 1
    assert await unread(database, user_id) == [THREE, ONE]


async def test_what_came_after_the_request_began_is_left_alone(
    database: Database, user_id: str
) -> None:
    async with database.read() as conn:
        selection = await service.limit_to_now(conn, user_id, Selection())
    await deliver(database, an_item(ONE), {user_id: WATCHED})
    async with database.transaction() as conn:
        assert await service.mark(conn, user_id, selection, read=True) == 2
        assert await service.delete(conn, user_id, selection) == 2

    assert await unread(database, user_id) == [ONE]


async def test_an_inbox_that_never_got_anything_changes_nothing(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    assert await mark(client, ada, applyToAll="true") == 0
    assert await delete(client, ada, applyToAll="true") == 0


async def test_nobody_changes_anothers_inbox(
    client: httpx2.AsyncClient, database: Database, user_id: str
) -> None:
    bob = await sign_in(database, "bob")
    for change in (mark, delete):
        assert await change(client, bob, {"discussionIds": [ONE]}) == 0
        assert await change(client, bob, applyToAll="true") == 0

    assert await unread(database, user_id) == [ONE, TWO, THREE]


@pytest.mark.parametrize(
    ("method", "query", "body"),
    [
        pytest.param("POST", {}, None, id="marking without a body"),
        pytest.param("POST", {}, {}, id="marking with an empty body"),
        pytest.param("POST", {}, {"discussionIds": []}, id="marking no ids"),
        pytest.param("POST", {"applyToAll": "false"}, {"read": True}, id="marking not all"),
        pytest.param("POST", {"repoType": "dataset"}, None, id="marking by a filter alone"),
        pytest.param("POST", {}, {"discussionIds": ["abc", "f" * 24, ""]}, id="unknown ids"),
        pytest.param("DELETE", {}, None, id="deleting without a body"),
        pytest.param("DELETE", {}, {}, id="deleting with an empty body"),
        pytest.param("DELETE", {"repoType": "dataset"}, None, id="deleting by a filter alone"),
    ],
)
async def test_without_a_selection_nothing_changes(  # noqa: PLR0917 - the request and its people
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    user_id: str,
    method: str,
    query: dict[str, str],
    body: Any,
) -> None:
    address = MARK if method == "POST" else INBOX
    response = await client.request(method, address, headers=ada, params=query, json=body)

    assert (response.status_code, response.json()) == (200, {"count": 0})
    assert await unread(database, user_id) == [ONE, TWO, THREE]


@pytest.mark.parametrize("change", [mark, delete])
async def test_with_apply_to_all_the_filters_count_and_not_the_ids(
    client: httpx2.AsyncClient, database: Database, ada: Headers, user_id: str, change: Any
) -> None:
    body = {"discussionIds": [ONE]}

    assert await change(client, ada, body, applyToAll="true", repoType="dataset") == 1
    assert await unread(database, user_id) == [ONE, THREE]


# Method, query, body, and what is answered.
Refused = tuple[str, dict[str, str], Any, dict[str, str]]
REFUSED = [
    pytest.param(
        (
            "DELETE",
            {"applyToAll": "true"},
            {"discussionIds": []},
            {"error": "discussionIds must have at least 1 item(s)."},
        ),
        id="deleting an empty list",
    ),
    pytest.param(
        (
            "DELETE",
            {},
            {"discussionIds": [ONE, "g" * 24]},
            {"error": "discussionIds[1] must match ^[0-9a-fA-F]{24}$."},
        ),
        id="deleting what is no id",
    ),
    pytest.param(
        ("POST", {}, {"discussionIds": ONE}, {"error": "discussionIds must be an array."}),
        id="marking with ids that are no list",
    ),
    pytest.param(
        (
            "POST",
            {"applyToAll": "true"},
            {"read": "maybe"},
            {"error": "read must be true or false."},
        ),
        id="marking as something else",
    ),
    pytest.param(
        ("POST", {"applyToAll": "true"}, {"seen": True}, {"error": "seen is not a known field."}),
        id="a field that is not known",
    ),
    pytest.param(
        ("POST", {"applyToAll": "true"}, [ONE], {"error": "The body must be an object."}),
        id="a body that is a list",
    ),
]


@pytest.mark.parametrize("refused", REFUSED)
async def test_what_is_not_said_rightly_changes_nothing(
    client: httpx2.AsyncClient, database: Database, ada: Headers, user_id: str, refused: Refused
) -> None:
    method, query, body, answer = refused
    address = MARK if method == "POST" else INBOX
    response = await client.request(method, address, headers=ada, params=query, json=body)

    assert (response.status_code, response.json()) == (400, answer)
    assert await unread(database, user_id) == [ONE, TWO, THREE]


@pytest.mark.parametrize("value", ["yes", "1", "True", ""])
@pytest.mark.parametrize(("method", "address"), [("POST", MARK), ("DELETE", INBOX)])
async def test_apply_to_all_is_true_or_false(
    client: httpx2.AsyncClient, ada: Headers, method: str, address: str, value: str
) -> None:
    response = await client.request(method, f"{address}?applyToAll={value}", headers=ada)

    assert response.status_code == 400
    assert response.json() == {"error": "applyToAll must be one of 'true' or 'false'."}


@pytest.mark.parametrize(("method", "address"), [("POST", MARK), ("DELETE", INBOX)])
async def test_changes_need_a_full_token_with_the_role_write(
    client: httpx2.AsyncClient, database: Database, method: str, address: str
) -> None:
    reader = await sign_in(database, "ada", role=TokenRole.read)
    scoped = await sign_in(database, "ada", scopes=["manage-repos"])
    for headers in (reader, scoped):
        response = await client.request(method, f"{address}?applyToAll=true", headers=headers)
        assert response.status_code == 403
        assert response.json() == {"error": "This needs a token with the role write."}
    assert (await client.request(method, f"{address}?applyToAll=true")).status_code == 401
