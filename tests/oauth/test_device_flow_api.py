"""Device codes: `POST /oauth/device`, and polling at the token endpoint (RFC 8628)."""

import asyncio
from datetime import timedelta

import httpx2
import pytest

from hublet.core import clock
from hublet.core.database import Database
from hublet.events import AccessEnded
from hublet.oauth import devices
from hublet.oauth.devices import (
    USER_CODE_ALPHABET,
    format_user_code,
    new_user_code,
    normalize_user_code,
)
from hublet.oauth.grants.context import PollTracker
from hublet.oauth.records import COMMAND_LINE_CLIENT_ID, Device, DeviceState
from hublet.tokens.records import ALL_SCOPES
from oauth.token_flows import (
    DEVICE,
    TOKEN,
    Answer,
    TestApp,
    an_app,
    bearer,
    decide,
    error_of,
    refreshed,
    works,
)
from outbox_events import published_events
from people import a_user

START = "/oauth/device"


async def started(client: httpx2.AsyncClient, app: TestApp, **more: str) -> Answer:
    response = await client.post(START, data={"client_id": app.client_id, **more})
    assert response.status_code == 200, response.text
    answer: Answer = response.json()
    return answer


async def poll(client: httpx2.AsyncClient, app: TestApp, device_code: str) -> httpx2.Response:
    body = {"grant_type": DEVICE, "device_code": device_code, "client_id": app.client_id}
    return await client.post(TOKEN, data=body)


def later(seconds: float) -> None:
    clock.move(timedelta(seconds=seconds))


async def test_starting_gives_a_code_for_the_app_and_one_for_the_person(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database)

    answer = await started(client, app)

    assert answer == {
        "device_code": answer["device_code"],
        "user_code": answer["user_code"],
        "verification_uri": "http://hub.test/device",
        "verification_uri_complete": f"http://hub.test/device?user_code={answer['user_code']}",
        "expires_in": 900,
        "interval": 5,
    }
    assert normalize_user_code(answer["user_code"]) == answer["user_code"].replace("-", "")


async def test_the_public_command_line_needs_no_registration(
    client: httpx2.AsyncClient, database: Database
) -> None:
    response = await client.post(START, data={"client_id": COMMAND_LINE_CLIENT_ID})
    started = response.json()
    await decide(database, started["user_code"])
    body = {"grant_type": DEVICE, "device_code": started["device_code"]}
    given = await client.post(TOKEN, data=body | {"client_id": COMMAND_LINE_CLIENT_ID})

    assert given.json()["expires_in"] == 30 * 86_400
    whoami = await client.get("/api/whoami-v2", headers=bearer(given.json()["access_token"]))
    assert whoami.json()["name"] == "ada"
    assert "accessToken" not in whoami.json()["auth"]


@pytest.mark.parametrize(
    ("client_id", "scope", "status"),
    [
        pytest.param(COMMAND_LINE_CLIENT_ID, None, 200, id="the command line"),
        pytest.param(COMMAND_LINE_CLIENT_ID, "openid jobs", 403, id="asked for less"),
        pytest.param("loom", None, 403, id="another app with every scope"),
    ],
)
async def test_only_the_command_line_reaches_the_inbox(
    client: httpx2.AsyncClient, database: Database, client_id: str, scope: str | None, status: int
) -> None:
    await an_app(database, client_id="loom", scopes=sorted(ALL_SCOPES))
    who = {"client_id": client_id}
    started = await client.post(START, data=who if scope is None else who | {"scope": scope})
    await decide(database, started.json()["user_code"])
    code = {"grant_type": DEVICE, "device_code": started.json()["device_code"]}
    given = (await client.post(TOKEN, data=who | code)).json()
    refresh = {"grant_type": "refresh_token", "refresh_token": given["refresh_token"]}
    renewed = (await client.post(TOKEN, data=who | refresh)).json()

    for token in (given["access_token"], renewed["access_token"]):
        inbox = await client.get("/api/notifications", headers=bearer(token))
        done = await client.delete("/api/notifications?applyToAll=true", headers=bearer(token))
        preferences = await client.patch(
            "/api/settings/notifications", json={"notifications": {}}, headers=bearer(token)
        )
        assert [each.status_code for each in (inbox, done, preferences)] == [status] * 3
        for beyond in ("/api/settings/tokens", "/api/settings/mcp", "/api/settings/oauth-accesses"):
            assert (await client.get(beyond, headers=bearer(token))).status_code == 403


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param({"scope": "jobs"}, (401, "invalid_client"), id="no client id"),
        pytest.param({"client_id": "f" * 24}, (401, "invalid_client"), id="an unknown one"),
        pytest.param({"client_id": "ü"}, (401, "invalid_client"), id="one that cannot be"),
    ],
)
async def test_an_app_must_say_who_it_is(
    client: httpx2.AsyncClient, body: dict[str, str], expected: tuple[int, str]
) -> None:
    response = await client.post(START, data=body)

    assert error_of(response) == expected


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        pytest.param("", (200, "read-repos webhooks"), id="none: those of the app"),
        pytest.param("webhooks", (200, "webhooks"), id="fewer"),
        pytest.param("offline_access", (200, "read-repos webhooks"), id="offline_access"),
        pytest.param("write-repos", (400, "invalid_scope"), id="more"),
        pytest.param("nonsense", (400, "invalid_scope"), id="no scope at all"),
        pytest.param("webhooks  read-repos", (400, "invalid_scope"), id="two spaces"),
    ],
)
async def test_the_scopes_stay_within_those_of_the_app(
    client: httpx2.AsyncClient, database: Database, scope: str, expected: tuple[int, str]
) -> None:
    app = await an_app(database, scopes=["read-repos", "webhooks"])

    response = await client.post(START, data={"client_id": app.client_id, "scope": scope})

    if expected[0] != 200:
        assert error_of(response) == expected
        return
    await decide(database, response.json()["user_code"])
    given = await poll(client, app, response.json()["device_code"])
    assert given.json()["scope"] == expected[1]


async def test_an_app_with_a_secret_proves_it_at_both_calls(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database, secret=True)
    refused = await client.post(START, data={"client_id": app.client_id})
    start = await client.post(START, headers=app.basic, data={"client_id": app.client_id})
    await decide(database, start.json()["user_code"])
    body = {"grant_type": DEVICE, "device_code": start.json()["device_code"]}

    without = await client.post(TOKEN, data=body | {"client_id": app.client_id})
    proven = await client.post(TOKEN, data=body, headers=app.basic)

    assert error_of(refused) == (401, "invalid_client")
    assert error_of(without) == (401, "invalid_client")
    assert proven.status_code == 200


async def test_the_first_poll_may_come_at_once_and_an_approval_is_answered_at_once(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database, scopes=["profile"])
    start = await started(client, app)

    first = await poll(client, app, start["device_code"])
    assert await decide(database, start["user_code"])
    second = await poll(client, app, start["device_code"])

    assert first.status_code == 400
    assert first.json() == {
        "error": "authorization_pending",
        "error_description": "The person has not decided yet.",
    }
    given = second.json()
    assert given == {
        "access_token": given["access_token"],
        "token_type": "bearer",
        "expires_in": 28_800,
        "scope": "profile",
        "refresh_token": given["refresh_token"],
    }
    assert await works(client, given["access_token"])
    assert (await refreshed(client, app, given["refresh_token"])).status_code == 200


async def test_each_poll_that_comes_too_early_adds_five_seconds(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database)
    start = await started(client, app)
    await poll(client, app, start["device_code"])

    early = [await poll(client, app, start["device_code"]) for _ in range(3)]

    assert [answer.json() for answer in early] == [
        {
            "error": "slow_down",
            "error_description": f"Poll every {interval} seconds.",
            "interval": interval,
        }
        for interval in (10, 15, 20)
    ]


@pytest.mark.parametrize(
    ("wait", "error"),
    [
        pytest.param(4.6, "authorization_pending", id="half a second is forgiven"),
        pytest.param(4.3, "slow_down", id="more is not"),
        pytest.param(-60, "authorization_pending", id="a clock that was turned back"),
    ],
)
async def test_the_interval_is_held_with_a_little_tolerance(
    client: httpx2.AsyncClient, database: Database, wait: float, error: str
) -> None:
    app = await an_app(database)
    start = await started(client, app)
    await poll(client, app, start["device_code"])
    later(wait)

    response = await poll(client, app, start["device_code"])

    assert error_of(response) == (400, error)


async def test_a_good_poll_does_not_make_the_interval_short_again(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database)
    start = await started(client, app)
    waits = [0.0, 0.0, 10.0, 6.0]
    errors = []

    for wait in waits:
        later(wait)
        errors.append((await poll(client, app, start["device_code"])).json()["error"])

    assert errors == [
        "authorization_pending",
        "slow_down",
        "authorization_pending",
        "slow_down",
    ]


async def test_a_poll_in_time_writes_nothing(
    client: httpx2.AsyncClient, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = await an_app(database)
    start = await started(client, app)

    def refuse(*_: object) -> None:
        raise AssertionError("A poll in time must not open a transaction.")

    monkeypatch.setattr(type(database), "transaction", refuse)

    assert (await poll(client, app, start["device_code"])).json()["error"] == (
        "authorization_pending"
    )


async def test_of_many_polls_at_once_one_gets_the_tokens(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database)
    start = await started(client, app)
    await decide(database, start["user_code"])

    answers = await asyncio.gather(*(poll(client, app, start["device_code"]) for _ in range(5)))

    assert sorted(answer.status_code for answer in answers) == [200] + [400] * 4


async def test_a_used_device_code_is_refused_and_what_it_gave_ends(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database)
    start = await started(client, app)
    await decide(database, start["user_code"])
    given = (await poll(client, app, start["device_code"])).json()

    response = await poll(client, app, start["device_code"])

    assert error_of(response) == (400, "invalid_grant")
    assert not await works(client, given["access_token"])
    assert error_of(await refreshed(client, app, given["refresh_token"])) == (400, "invalid_grant")
    assert [fact["reason"] for fact in await published_events(database, AccessEnded)] == ["reuse"]


async def test_another_app_gets_nothing_and_changes_nothing(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app, other = await an_app(database), await an_app(database)
    start = await started(client, app)
    await decide(database, start["user_code"])

    stolen = await poll(client, other, start["device_code"])
    own = await poll(client, app, start["device_code"])

    assert error_of(stolen) == (400, "invalid_grant")
    assert own.status_code == 200


async def test_a_refusal_is_told_until_the_code_expires(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database)
    start = await started(client, app)
    await decide(database, start["user_code"], approved=False)

    errors = [error_of(await poll(client, app, start["device_code"])) for _ in range(3)]

    assert errors == [(400, "access_denied")] * 3


@pytest.mark.parametrize("approved", [None, True, False])
async def test_an_expired_code_is_told_apart_for_an_hour(
    client: httpx2.AsyncClient, database: Database, *, approved: bool | None
) -> None:
    app = await an_app(database)
    start = await started(client, app)
    if approved is not None:
        await decide(database, start["user_code"], approved=approved)

    later(901)
    expired = await poll(client, app, start["device_code"])
    later(3598)
    still = await poll(client, app, start["device_code"])
    later(2)
    await started(client, app)
    forgotten = await poll(client, app, start["device_code"])

    assert [error_of(each) for each in (expired, still, forgotten)] == [
        (400, "expired_token"),
        (400, "expired_token"),
        (400, "invalid_grant"),
    ]


@pytest.mark.parametrize(
    ("body", "error"),
    [
        pytest.param({}, "invalid_request", id="no device code"),
        pytest.param({"device_code": "dc_unknown"}, "invalid_grant", id="an unknown one"),
    ],
)
async def test_a_poll_needs_a_code_of_ours(
    client: httpx2.AsyncClient, database: Database, body: dict[str, str], error: str
) -> None:
    app = await an_app(database)

    response = await client.post(
        TOKEN, data={"grant_type": DEVICE, "client_id": app.client_id} | body
    )

    assert error_of(response) == (400, error)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("second", [True, False])
async def test_the_first_decision_counts(
    client: httpx2.AsyncClient, database: Database, *, first: bool, second: bool
) -> None:
    app = await an_app(database)
    start = await started(client, app)
    async with database.transaction() as conn:
        device = await devices.find_by_user_code(conn, start["user_code"])
        assert device is not None
    people = [await a_user(database, name) for name in ("ada", "bob")]

    decisions = []
    for person, approved in zip(people, (first, second), strict=True):
        async with database.transaction() as conn:
            decided = await devices.decide(
                conn, device, approved=approved, user_id=person.id, authenticated_at=clock.now()
            )
        decisions.append(decided)
    given = await poll(client, app, start["device_code"])

    assert decisions == [True, False]
    assert given.status_code == (200 if first else 400)


async def test_a_decision_that_comes_too_late_does_not_count(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database)
    start = await started(client, app)
    async with database.transaction() as conn:
        device = await devices.find_by_user_code(conn, start["user_code"])
    assert device is not None
    ada = await a_user(database, "ada")
    later(901)

    async with database.transaction() as conn:
        decided = await devices.decide(
            conn, device, approved=True, user_id=ada.id, authenticated_at=clock.now()
        )
        found = await devices.find_by_user_code(conn, start["user_code"])

    assert (decided, found) == (False, None)


async def test_a_user_who_was_disabled_since_gets_nothing(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database)
    start = await started(client, app)
    await decide(database, start["user_code"])
    async with database.transaction() as conn:
        await conn.execute("UPDATE users SET disabled_at = 1 WHERE name = 'ada'")

    response = await poll(client, app, start["device_code"])

    assert error_of(response) == (400, "invalid_grant")


async def test_an_app_may_have_a_thousand_open_codes(
    client: httpx2.AsyncClient, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "MAX_PENDING", 2)
    app = await an_app(database)
    for _ in range(2):
        await started(client, app)

    refused = await client.post(START, data={"client_id": app.client_id})
    later(901)
    again = await client.post(START, data={"client_id": app.client_id})

    assert error_of(refused) == (429, "slow_down")
    assert refused.headers["retry-after"] == "60"
    assert again.status_code == 200


async def test_an_address_that_starts_too_many_is_told_to_slow_down(
    client: httpx2.AsyncClient,
) -> None:
    answers = [await client.post(START, data={"client_id": "x"}) for _ in range(121)]

    assert [answer.status_code for answer in answers] == [401] * 120 + [429]
    assert answers[-1].json()["error"] == "slow_down"
    assert int(answers[-1].headers["retry-after"]) <= 900


async def test_a_user_code_that_is_taken_is_generated_again(
    client: httpx2.AsyncClient, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    draws = iter(["BBBBBBBB", "BBBBBBBB", "CCCCCCCC"])
    monkeypatch.setattr(devices, "new_user_code", lambda: next(draws))
    app = await an_app(database)

    codes = [(await started(client, app))["user_code"] for _ in range(2)]

    assert codes == ["BBBB-BBBB", "CCCC-CCCC"]


async def test_selected_organizations_and_who_asks_are_kept(
    client: httpx2.AsyncClient, database: Database
) -> None:
    app = await an_app(database)
    start = await client.post(
        START, data={"client_id": app.client_id}, headers={"User-Agent": "engine/1 " + "x" * 500}
    )

    async with database.read() as conn:
        device = await devices.find_by_user_code(conn, start.json()["user_code"])

    assert device is not None
    assert (device.app_id, device.address) == (app.app.id, "127.0.0.1")
    assert device.agent == ("engine/1 " + "x" * 500)[:200]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        pytest.param("WDJB-MJHT", "WDJBMJHT", id="as shown"),
        pytest.param("wdjb-mjht", "WDJBMJHT", id="lower case"),
        pytest.param("wdjbmjht", "WDJBMJHT", id="without a hyphen"),
        pytest.param(" WDJB MJHT ", "WDJBMJHT", id="with spaces"),
        pytest.param("WDJB\u2013MJHT", "WDJBMJHT", id="with a dash"),
        pytest.param("WDJB_MJHT", "WDJBMJHT", id="with an underscore"),
        pytest.param("WDJB-MJH", None, id="too short"),
        pytest.param("WDJB-MJHTT", None, id="too long"),
        pytest.param("WDJB-MJHA", None, id="a vowel"),
        pytest.param("WDJB-MJH0", None, id="a digit"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_a_user_code_may_be_typed_in_many_ways(typed: str, expected: str | None) -> None:
    assert normalize_user_code(typed) == expected


def test_user_codes_have_neither_vowels_nor_digits_nor_look_alikes() -> None:
    codes = {new_user_code() for _ in range(500)}

    assert len(codes) > 490
    assert set("".join(codes)) == set(USER_CODE_ALPHABET)
    assert not set(USER_CODE_ALPHABET) & set("AEIOUY0123456789")
    assert format_user_code("WDJBMJHT") == "WDJB-MJHT"


def test_the_memory_of_polls_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hublet.oauth.grants.context._MAX_TRACKED_CODES", 2)
    polls = PollTracker()
    codes = [
        Device(
            digest=str(number),
            app_id="",
            scopes=frozenset(),
            state=DeviceState.pending,
            interval=5,
            created_at=clock.now(),
            expires_at=clock.now(),
        )
        for number in range(3)
    ]

    first = [polls.is_too_early(code) for code in codes]
    again = [polls.is_too_early(code) for code in reversed(codes)]
    polls.forget(codes[0])

    # The one that was idle longest was forgotten, so it may come at once.
    assert first == [False, False, False]
    assert again == [True, True, False]
    assert not polls.is_too_early(codes[0])
