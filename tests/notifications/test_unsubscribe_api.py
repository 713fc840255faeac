"""The link that stops mails of one kind."""

from collections.abc import Callable

import httpx2
import pytest

from hublet.core.database import Database
from hublet.notifications.mail import links
from hublet.notifications.preferences.switches import SWITCHES, PreferenceKey
from people import Headers, a_user

SETTINGS = "/api/settings/notifications"


async def link_for(database: Database, name: str, key: PreferenceKey) -> str:
    user = await a_user(database, name)
    url = links.unsubscribe_url(database.hub, user.id, key)
    assert url.startswith("http://hub.test/unsubscribe/")
    return url.removeprefix("http://hub.test")


async def settings_of(client: httpx2.AsyncClient, headers: Headers) -> dict[str, bool]:
    answer = (await client.get(SETTINGS, headers=headers)).json()
    switches: dict[str, bool] = answer["notifications"]
    return switches


async def test_looking_at_the_link_changes_nothing(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    link = await link_for(database, "ada", PreferenceKey.discussions_watched)
    before = await settings_of(client, ada)

    response = await client.get(link)

    assert response.status_code == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert response.headers["cache-control"] == "no-store"
    assert "<h1>Stop these mails?</h1>" in response.text
    assert (
        "These are mails about discussions and pull requests, posts and blogs of what you watch. "
        "All others still come." in response.text
    )
    assert ">Stop them</button>" in response.text
    assert await settings_of(client, ada) == before


@pytest.mark.parametrize("key", [key for key in PreferenceKey if SWITCHES[key].default])
async def test_one_click_stops_exactly_one_kind(
    client: httpx2.AsyncClient, database: Database, ada: Headers, key: PreferenceKey
) -> None:
    before = await settings_of(client, ada)
    link = await link_for(database, "ada", key)

    # As mail programs send it (RFC 8058), without cookies or a token.
    response = await client.post(link, data={"List-Unsubscribe": "One-Click"})

    assert response.status_code == 200
    assert "<h1>They are stopped</h1>" in response.text
    assert '<form class="fieldset"' not in response.text
    assert await settings_of(client, ada) == before | {key: False}


async def test_a_second_click_changes_nothing_more(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    link = await link_for(database, "ada", PreferenceKey.job_status)
    await client.patch(SETTINGS, headers=ada, json={"notifications": {"announcements": True}})
    await client.post(link)
    once = await settings_of(client, ada)

    assert (await client.post(link)).status_code == 200
    assert await settings_of(client, ada) == once
    assert (once["job_status"], once["announcements"]) == (False, True)


async def test_somebody_elses_link_does_not_touch_mine(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    before = await settings_of(client, ada)

    await client.post(await link_for(database, "bob", PreferenceKey.job_status))

    assert await settings_of(client, ada) == before


def flipped(link: str) -> str:
    place = len(link) - 20
    return link[:place] + ("A" if link[place] != "A" else "B") + link[place + 1 :]


def of_another_kind(link: str) -> str:
    return link.replace("/unsubscribe/", "/verify-email/")


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(flipped, id="one letter is another"),
        pytest.param(lambda link: link[:-5], id="the end is missing"),
        pytest.param(lambda link: link + "A", id="it goes on"),
        pytest.param(lambda _link: "/unsubscribe/hello", id="a word"),
        pytest.param(lambda _link: "/unsubscribe/ä%20", id="other letters"),
        pytest.param(lambda _link: "/unsubscribe/AQ", id="nothing sealed"),
        pytest.param(of_another_kind, id="a link for something else"),
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_broken_link_says_so_and_does_nothing(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    method: str,
    broken: Callable[[str], str],
) -> None:
    before = await settings_of(client, ada)
    link = broken(await link_for(database, "ada", PreferenceKey.job_status))

    response = await client.request(method, link)

    assert response.status_code == 404
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert "This link is not complete: please copy all of it from the mail." in response.text
    assert await settings_of(client, ada) == before
