"""What a user wants to hear of."""

from typing import Any

import httpx2
import pytest

from hublet.core.database import Database
from hublet.notifications.preferences import service
from hublet.notifications.preferences.switches import SWITCHES, PreferenceKey
from hublet.tokens.records import TokenRole
from people import Headers, a_user, sign_in

PATH = "/api/settings/notifications"

DEFAULTS = {
    "announcements": False,
    "api_inference_sunset": False,
    "arxiv_paper_activity": True,
    "content_access_policy_request": False,
    "daily_papers_digest": False,
    "discussions_participating": True,
    "discussions_watched": True,
    "gated_user_access_request": True,
    "inference_endpoint_status": False,
    "job_status": True,
    "launch_autonlp": False,
    "launch_prepaid_credits": False,
    "launch_spaces": False,
    "launch_training_cluster": False,
    "locked_out": True,
    "org_request": True,
    "org_suggestions": False,
    "org_suggestions_to_create": False,
    "org_verified_suggestions": False,
    "posts_participating": True,
    "repo_release": True,
    "secret_detected": True,
    "user_follows": True,
    "web_discussions_participating": True,
    "web_discussions_watched": True,
    "web_posts_participating": True,
}


async def change(
    client: httpx2.AsyncClient, headers: Headers, body: Any
) -> tuple[int, dict[str, Any]]:
    response = await client.patch(PATH, headers=headers, json=body)
    return response.status_code, response.json()


async def test_at_first_every_switch_has_its_default(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    response = await client.get(PATH, headers=ada)

    assert response.status_code == 200
    assert response.json() == {"notifications": DEFAULTS}


async def test_a_change_keeps_what_it_does_not_name(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await change(client, ada, {"notifications": {"announcements": True}})

    status, answer = await change(
        client,
        ada,
        {
            "notifications": {
                "discussions_watched": False,
                "product_updates_after": "2026-11-15T01:44:56.123Z",
            }
        },
    )

    expected = {
        "notifications": DEFAULTS
        | {
            "announcements": True,
            "discussions_watched": False,
            "product_updates_after": "2026-11-15T01:44:56.123Z",
        }
    }
    assert (status, answer) == (200, expected)
    assert (await client.get(PATH, headers=ada)).json() == expected
    bob = await sign_in(database, "bob")
    assert (await client.get(PATH, headers=bob)).json() == {"notifications": DEFAULTS}


async def test_an_empty_change_changes_nothing(client: httpx2.AsyncClient, ada: Headers) -> None:
    assert await change(client, ada, {"notifications": {}}) == (200, {"notifications": DEFAULTS})


async def test_every_key_can_be_switched_both_ways(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    turned = {key: not default for key, default in DEFAULTS.items()}

    status, answer = await change(client, ada, {"notifications": turned, "prepaidAmount": "10"})

    assert (status, answer) == (200, {"notifications": turned, "prepaidAmount": "10"})
    assert await change(client, ada, {"notifications": DEFAULTS}) == (
        200,
        {"notifications": DEFAULTS},
    )


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        pytest.param({}, "notifications is required.", id="nothing"),
        pytest.param([], "The body must be an object.", id="a list"),
        pytest.param({"notifications": None}, "notifications must be an object.", id="null"),
        pytest.param(
            {"notifications": {"announcement": True}},
            "notifications.announcement is not a known field.",
            id="an unknown key",
        ),
        pytest.param(
            {"notifications": {}, "amount": "1"}, "amount is not a known field.", id="a stray field"
        ),
        pytest.param(
            {"notifications": {"locked_out": "yes"}},
            "notifications.locked_out must be true or false.",
            id="a word for a switch",
        ),
        pytest.param(
            {"notifications": {"locked_out": 1}},
            "notifications.locked_out must be true or false.",
            id="a number for a switch",
        ),
        pytest.param(
            {"notifications": {"locked_out": None}},
            "notifications.locked_out must be true or false.",
            id="null for a switch",
        ),
        pytest.param(
            {"notifications": {"product_updates_after": True}},
            "notifications.product_updates_after must be a timestamp such as 2026-11-15T01:44:56Z.",
            id="a switch for a time",
        ),
        pytest.param(
            {"notifications": {"product_updates_after": "2026-11-15T01:44:56"}},
            "notifications.product_updates_after must be a timestamp with a time zone, such as "
            "2026-11-15T01:44:56Z.",
            id="a time without a zone",
        ),
        pytest.param(
            {"notifications": {}, "prepaidAmount": "1" * 25},
            "prepaidAmount must have at most 24 characters.",
            id="an amount that is too long",
        ),
        pytest.param(
            {"notifications": {}, "prepaidAmount": 10},
            "prepaidAmount must be a string.",
            id="an amount that is a number",
        ),
    ],
)
async def test_what_has_the_wrong_shape_is_refused_and_changes_nothing(
    client: httpx2.AsyncClient, ada: Headers, body: Any, sentence: str
) -> None:
    if isinstance(body, dict) and isinstance(body.get("notifications"), dict):
        body = body | {"notifications": {"announcements": True} | body["notifications"]}

    assert await change(client, ada, body) == (400, {"error": sentence})
    assert (await client.get(PATH, headers=ada)).json() == {"notifications": DEFAULTS}


NEEDED = "prepaidAmount is required in the request that switches launch_prepaid_credits on."


@pytest.mark.parametrize("amount", [{}, {"prepaidAmount": ""}, {"prepaidAmount": "  "}])
async def test_prepaid_credits_need_an_amount(
    client: httpx2.AsyncClient, ada: Headers, amount: dict[str, str]
) -> None:
    body = {"notifications": {"launch_prepaid_credits": True, "announcements": True}}

    assert await change(client, ada, body | amount) == (400, {"error": NEEDED})
    assert (await client.get(PATH, headers=ada)).json() == {"notifications": DEFAULTS}


async def test_the_amount_is_kept_while_prepaid_credits_are_on(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    on = {"notifications": {"launch_prepaid_credits": True}}
    settings = DEFAULTS | {"launch_prepaid_credits": True}

    first = await change(client, ada, on | {"prepaidAmount": "9" * 24})
    again = await change(client, ada, on)
    other = await change(client, ada, {"notifications": {}, "prepaidAmount": "20"})
    emptied = await change(client, ada, {"notifications": {}, "prepaidAmount": ""})
    off = await change(client, ada, {"notifications": {"launch_prepaid_credits": False}})

    assert first == again == (200, {"notifications": settings, "prepaidAmount": "9" * 24})
    assert other == (200, {"notifications": settings, "prepaidAmount": "20"})
    assert emptied == (400, {"error": NEEDED})
    assert off == (200, {"notifications": DEFAULTS})
    assert await change(client, ada, on) == (400, {"error": NEEDED})


async def test_an_amount_without_prepaid_credits_is_not_kept(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    answer = await change(client, ada, {"notifications": {}, "prepaidAmount": "20"})

    assert answer == (200, {"notifications": DEFAULTS})


async def test_a_token_that_reads_may_look_and_not_change(
    client: httpx2.AsyncClient, database: Database
) -> None:
    headers = await sign_in(database, "ada", role=TokenRole.read)

    assert (await client.get(PATH, headers=headers)).status_code == 200
    status, _ = await change(client, headers, {"notifications": {"announcements": True}})
    assert status == 403


async def test_a_fine_grained_token_may_neither_look_nor_change(
    client: httpx2.AsyncClient, database: Database
) -> None:
    headers = await sign_in(database, "ada", scopes=["write-repos"])

    assert (await client.get(PATH, headers=headers)).status_code == 403
    status, _ = await change(client, headers, {"notifications": {"announcements": True}})
    assert status == 403


async def test_without_a_token_there_are_no_settings(client: httpx2.AsyncClient) -> None:
    assert (await client.get(PATH)).status_code == 401
    assert (await client.patch(PATH, json={"notifications": {}})).status_code == 401


async def test_who_wants_something_is_told_by_choice_and_by_default(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    body = {"notifications": {"discussions_watched": False, "daily_papers_digest": True}}
    await change(client, ada, body)
    ids = [(await a_user(database, name)).id for name in ("ada", "bob", "eve")]

    async with database.read() as conn:
        watched = await service.who_wants(conn, PreferenceKey.discussions_watched, ids)
        digest = await service.who_wants(conn, PreferenceKey.daily_papers_digest, ids)
        nobody = await service.who_wants(conn, PreferenceKey.discussions_watched, [])

    assert watched == {ids[1], ids[2]}
    assert digest == {ids[0]}
    assert nobody == frozenset()


def test_every_key_says_what_honours_it() -> None:
    assert set(SWITCHES) == set(PreferenceKey)
    assert SWITCHES[PreferenceKey.repo_release].sentence == (
        "Mail about new tags in repositories that you watch. At first on."
    )
    assert SWITCHES[PreferenceKey.announcements].sentence == (
        "Kept for the client; nothing in this hub sends it. At first off."
    )
    assert {key for key, switch in SWITCHES.items() if switch.in_inbox} == {
        key for key in PreferenceKey if key.startswith("web_")
    }
