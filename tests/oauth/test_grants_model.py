"""Codes, device codes and refresh tokens against a model of them, in any order and at once."""

import asyncio
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import cycle
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from hypothesis import HealthCheck, given, settings, strategies

from hublet.core import clock
from hublet.core.database import Database
from hublet.oauth.grants.context import GrantContext
from oauth.token_flows import (
    DEVICE,
    TOKEN,
    TestApp,
    a_code,
    an_app,
    decide,
    redemption,
    refreshed,
    works,
)

CODE_SECONDS = 60
DEVICE_SECONDS = 900
GRACE_SECONDS = 60


@dataclass(eq=False)
class Access:
    access_tokens: list[str] = field(default_factory=list)
    alive: bool = True


@dataclass(eq=False)
class Grant:
    """A code or a device code: what may come of it, and what came of it."""

    value: str
    since: float
    seconds: int
    user_code: str | None = None
    # fresh, approved, denied or spent.
    state: str = "fresh"
    access: Access | None = None


@dataclass(eq=False)
class Refresh:
    value: str
    access: Access
    replaced_at: float | None = None
    successor: str | None = None


class Model:
    """Says what each request must be answered with; a mistake is an AssertionError."""

    def __init__(self, client: httpx2.AsyncClient, database: Database, apps: list[TestApp]) -> None:
        self.client, self.database = client, database
        self.app, self.other = apps
        self.now = 0.0
        self.codes: list[Grant] = []
        self.devices: list[Grant] = []
        self.refreshes: list[Refresh] = []
        self.accesses: list[Access] = []

    async def wait(self, seconds: float) -> None:
        clock.move(timedelta(seconds=seconds))
        self.now += seconds

    async def new_code(self) -> None:
        value = await a_code(self.database, self.app)
        self.codes.append(
            Grant(value=value, since=self.now, seconds=CODE_SECONDS, state="approved")
        )

    async def new_device(self) -> None:
        answer = await self.client.post("/oauth/device", data={"client_id": self.app.client_id})
        started = answer.json()
        self.devices.append(
            Grant(
                value=started["device_code"],
                since=self.now,
                seconds=DEVICE_SECONDS,
                user_code=started["user_code"],
            )
        )

    async def decide(self, number: int, *, approved: bool) -> None:
        if not self.devices:
            return
        device = self.devices[number % len(self.devices)]
        counts = device.state == "fresh" and not self.is_expired(device)
        assert await decide(self.database, device.user_code or "", approved=approved) is counts
        if counts:
            device.state = "approved" if approved else "denied"

    def is_expired(self, grant: Grant) -> bool:
        return self.now - grant.since >= grant.seconds

    async def redeem(self, number: int, *, times: int, wrong: str | None) -> None:
        if not self.codes:
            return
        code = self.codes[number % len(self.codes)]
        app = self.other if wrong == "app" else self.app
        verifier = {"code_verifier": "w" * 43} if wrong == "verifier" else {}
        body = redemption(code.value, client_id=app.client_id, **verifier)
        await self.use(code, body, times=times, wrong=wrong)

    async def poll(self, number: int, *, times: int, wrong: str | None) -> None:
        if not self.devices:
            return
        device = self.devices[number % len(self.devices)]
        app = self.other if wrong == "app" else self.app
        body = {"grant_type": DEVICE, "device_code": device.value, "client_id": app.client_id}
        await self.use(device, body, times=times, wrong="app" if wrong == "app" else None)

    async def use(self, grant: Grant, body: Any, *, times: int, wrong: str | None) -> None:
        """Send the same request so many times at once."""
        answers = await asyncio.gather(*(self.client.post(TOKEN, data=body) for _ in range(times)))
        given = [answer.json() for answer in answers if answer.status_code == 200]
        assert {answer.status_code for answer in answers} <= {200, 400}
        usable = grant.state == "approved" and not self.is_expired(grant)
        assert len(given) == (1 if usable and wrong is None else 0)
        if wrong == "app":
            return
        if grant.state == "spent" or (usable and wrong is None and times > 1):
            self.end(grant.access)
        if usable:
            grant.state = "spent"
        for answer in given:
            grant.access = Access([answer["access_token"]], alive=times == 1)
            self.accesses.append(grant.access)
            self.refreshes.append(Refresh(answer["refresh_token"], grant.access))

    def end(self, access: Access | None) -> None:
        if access is not None:
            access.alive = False

    async def refresh(self, number: int, *, times: int, wrong: str | None) -> None:
        if not self.refreshes:
            return
        token = self.refreshes[number % len(self.refreshes)]
        app = self.other if wrong == "app" else self.app
        answers = await asyncio.gather(
            *(refreshed(self.client, app, token.value) for _ in range(times))
        )
        since = None if token.replaced_at is None else self.now - token.replaced_at
        forgiven = since is None or since < GRACE_SECONDS
        fine = token.access.alive and forgiven and wrong != "app"
        assert {answer.status_code for answer in answers} == {200 if fine else 400}
        if fine:
            self.note_successor(token, {answer.text for answer in answers}, answers[0].json())
        elif wrong != "app" and not forgiven:
            self.end(token.access)

    def note_successor(self, token: Refresh, texts: set[str], answer: dict[str, str]) -> None:
        assert len(texts) == 1
        if token.successor is not None:
            assert answer["refresh_token"] == token.successor
            return
        token.replaced_at, token.successor = self.now, answer["refresh_token"]
        token.access.access_tokens.append(answer["access_token"])
        self.refreshes.append(Refresh(answer["refresh_token"], token.access))

    async def check(self) -> None:
        for access in self.accesses:
            for value in access.access_tokens:
                assert await works(self.client, value) is access.alive


numbers = strategies.integers(0, 3)
times = strategies.sampled_from([1, 1, 1, 3])
wrongs = strategies.sampled_from([None, None, None, "app", "verifier"])
steps = strategies.lists(
    strategies.one_of(
        strategies.tuples(strategies.just("wait"), strategies.sampled_from([0.5, 100])),
        strategies.tuples(strategies.sampled_from(["new_code", "new_device"])),
        strategies.tuples(strategies.just("decide"), numbers, strategies.booleans()),
        strategies.tuples(
            strategies.sampled_from(["redeem", "poll", "refresh", "refresh"]),
            numbers,
            times,
            wrongs,
        ),
    ),
    min_size=8,
    max_size=24,
)


async def take(model: Model, step: tuple[Any, ...]) -> None:
    match step:
        case ("wait", seconds):
            await model.wait(seconds)
        case ("new_code",):
            await model.new_code()
        case ("new_device",):
            await model.new_device()
        case ("decide", number, approved):
            await model.decide(number, approved=approved)
        case (name, number, count, wrong):
            await getattr(model, name)(number, times=count, wrong=wrong)


# Each example has apps of its own, so that they can share a database.
@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(history=steps)
async def test_whatever_the_order_each_answer_is_the_one_the_model_gives(
    client: httpx2.AsyncClient,
    app: FastAPI,
    database: Database,
    history: list[tuple[Any, ...]],
) -> None:
    """Two contexts share nothing but the database, as two processes do."""
    contexts = cycle([GrantContext(database, app.state.limiter) for _ in range(2)])
    apps = [await an_app(database) for _ in range(2)]
    model = Model(client, database, apps)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hublet.oauth.routes.grant_context_of", lambda _request: next(contexts))
        # Codes of both kinds are there from the beginning, so that short histories say something.
        for step in [("new_code",), ("new_device",), ("decide", 0, True), *history]:
            await take(model, step)
        await model.check()
    clock.reset()


HISTORIES = {
    "a code that is used twice ends what it gave": [
        ("redeem", 0, 1, None),
        ("refresh", 0, 3, None),
        ("wait", 100),
        ("redeem", 0, 1, None),
        ("refresh", 1, 1, None),
    ],
    "a device code that is used twice at once ends what it gave": [
        ("poll", 0, 3, None),
        ("refresh", 0, 1, None),
    ],
    "an old refresh token ends its whole family": [
        ("redeem", 0, 1, None),
        ("refresh", 0, 1, None),
        ("refresh", 1, 1, None),
        ("wait", 100),
        ("refresh", 0, 1, "app"),
        ("refresh", 2, 1, None),
        ("refresh", 0, 1, None),
        ("refresh", 2, 1, None),
    ],
    "a wrong verifier spends the code": [
        ("redeem", 0, 1, "verifier"),
        ("redeem", 0, 1, None),
    ],
}


@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
async def test_histories_that_happen(
    client: httpx2.AsyncClient, database: Database, history: list[tuple[Any, ...]]
) -> None:
    model = Model(client, database, [await an_app(database) for _ in range(2)])

    for step in [("new_code",), ("new_device",), ("decide", 0, True), *history]:
        await take(model, step)
        await model.check()
