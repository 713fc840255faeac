"""How many webhooks an owner may have, and how often one may act."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import httpx2
import pytest

from hublet.accounts.records import Role
from hublet.core import clock
from hublet.core.config import Settings
from hublet.core.database import Database
from people import Headers, an_organization, sign_in
from webhooks.engine_rows import delivering, settle, trigger
from webhooks.webhook_calls import BODY, PATH, create, refusal

OF_ENGINES = "/api/organizations/engines/settings/webhooks"


@pytest.fixture
async def settings(settings: Settings) -> Settings:
    return replace(settings, webhooks=replace(settings.webhooks, per_owner=3, daily_triggers=2))


async def test_a_user_and_an_organization_have_as_many_as_the_settings_allow(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await an_organization(database, "engines", members={"ada": Role.admin})

    for path, owner in ((PATH, "ada"), (OF_ENGINES, "engines")):
        for _ in range(3):
            await create(client, ada, path=path)
        assert await refusal(client, ada, BODY, path=path) == (
            409,
            f"{owner} has 3 webhooks, which is the most there may be: delete one first.",
        )
        listed = (await client.get(path, headers=ada)).json()
        assert len(listed) == 3
        # What is there may still change, and one that goes leaves its place.
        one = f"{path}/{listed[0]['id']}"
        assert (await client.post(one, headers=ada, json=BODY)).status_code == 200
        assert (await client.delete(one, headers=ada)).status_code == 200
        await create(client, ada, path=path)
    await create(client, await sign_in(database, "bob"))


async def test_many_at_the_same_moment_do_not_get_past_the_limit(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    answers = await asyncio.gather(*(client.post(PATH, headers=ada, json=BODY) for _ in range(8)))

    assert sorted(answer.status_code for answer in answers) == [200] * 3 + [409] * 5
    assert len((await client.get(PATH, headers=ada)).json()) == 3


async def test_the_activity_says_that_the_daily_limit_is_reached(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    webhook_id = (await create(client, ada))["id"]
    shown = []
    async with delivering(database) as deliverer:
        await client.post(f"{PATH}/{webhook_id}/disable", headers=ada)
        for _ in range(3):
            await trigger(database, webhook_id)
            await settle(deliverer)
            shown.append(await client.get(f"{PATH}/{webhook_id}/activity", headers=ada))
        clock.move(timedelta(hours=25))
        shown.append(await client.get(f"{PATH}/{webhook_id}/activity", headers=ada))

    base = {"secretNames": [], "dailyLimit": 2}
    assert [each.json() for each in shown] == [
        base | {"triggers": 1, "throttled": False},
        base | {"triggers": 2, "throttled": True},
        base | {"triggers": 3, "throttled": True},
        base | {"triggers": 0, "throttled": False},
    ]
    latest = (await client.get(f"{PATH}/{webhook_id}/deliveries", headers=ada)).json()[0]
    assert (latest["state"], latest["reason"]) == ("unsent", "throttled")
