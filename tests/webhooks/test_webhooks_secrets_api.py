"""Secrets of webhooks: kept sealed, never shown, changed with an overlap."""

import asyncio
from datetime import timedelta
from typing import Any

import httpx2
import pytest
import structlog.testing

from hublet.core import clock
from hublet.core.clock import now
from hublet.core.database import Database
from hublet.core.ids import new_object_id
from hublet.core.sealing import SealBroken
from hublet.webhooks import sealed_secrets, service, store
from hublet.webhooks.errors import WebhookNotFound
from hublet.webhooks.records import WebhookSecrets
from hublet.webhooks.schemas import CreateWebhook, UpdateWebhook
from people import Headers
from webhooks.webhook_calls import (
    BODY,
    IMAGE_JOB,
    JOB_ID,
    PATH,
    URL,
    WATCHED,
    a_source_job,
    create,
    show,
    update,
)


@pytest.fixture(autouse=True)
async def _source_job(database: Database) -> None:
    await a_source_job(database)
    await a_source_job(database, job_id="f" * 24)


async def secrets_of(database: Database, webhook: Any) -> WebhookSecrets:
    async with database.read() as conn:
        return await service.secrets_of(conn, webhook["id"])


@pytest.mark.parametrize(
    "secret",
    [
        pytest.param("s3cret", id="a word"),
        pytest.param(" a b~", id="from the first to the last character that is allowed"),
        pytest.param("x" * 256, id="as long as it may be"),
    ],
)
async def test_a_secret_is_kept_for_the_deliverers_alone(
    client: httpx2.AsyncClient, database: Database, ada: Headers, secret: str
) -> None:
    created = await client.post(PATH, headers=ada, json=BODY | {"secret": secret})
    webhook = created.json()["webhook"]
    listed = await client.get(PATH, headers=ada)

    assert webhook["hasSecret"] is True
    assert await secrets_of(database, webhook) == WebhookSecrets(current=secret)
    assert secret not in created.text + listed.text


async def test_a_webhook_without_a_secret_has_none(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    for body in ({}, {"secret": ""}):
        webhook = await create(client, ada, **body)
        assert webhook["hasSecret"] is False
        assert await secrets_of(database, webhook) == WebhookSecrets()


async def test_a_changed_secret_lets_the_old_one_sign_along_for_a_day(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    webhook = await create(client, ada, secret="first")

    await update(client, ada, webhook["id"], secret="second")
    changed = await secrets_of(database, webhook)
    clock.move(timedelta(hours=23, minutes=59))
    still = await secrets_of(database, webhook)
    clock.move(timedelta(minutes=2))
    over = await secrets_of(database, webhook)

    assert (changed.current, changed.old) == ("second", "first")
    assert changed.old_until is not None
    assert abs(changed.old_until + timedelta(minutes=1) - now()) < timedelta(minutes=1)
    assert still == changed
    assert over == WebhookSecrets(current="second")


async def test_of_several_changes_the_last_two_count(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    webhook = await create(client, ada, secret="first")

    for secret in ("second", "third"):
        await update(client, ada, webhook["id"], secret=secret)

    secrets = await secrets_of(database, webhook)
    assert (secrets.current, secrets.old) == ("third", "second")


async def test_the_same_secret_again_changes_nothing(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    webhook = await create(client, ada, secret="first")
    await update(client, ada, webhook["id"], secret="second")
    before = await secrets_of(database, webhook)
    clock.move(timedelta(hours=1))

    await update(client, ada, webhook["id"], secret="second")
    await update(client, ada, webhook["id"], url=f"{URL}/2")

    assert await secrets_of(database, webhook) == before


async def test_an_empty_secret_takes_it_away_at_once(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    webhook = await create(client, ada, secret="first")
    await update(client, ada, webhook["id"], secret="second")

    after = await update(client, ada, webhook["id"], secret="")

    assert after["hasSecret"] is False
    assert await secrets_of(database, webhook) == WebhookSecrets()
    again = await update(client, ada, webhook["id"], secret="third")
    assert again["hasSecret"] is True
    assert await secrets_of(database, webhook) == WebhookSecrets(current="third")


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        pytest.param({"A": "3"}, {"A": "3", "B": "2"}, id="a listed one is replaced"),
        pytest.param({"C": "3"}, {"A": "1", "B": "2", "C": "3"}, id="a new one is added"),
        pytest.param({"A": ""}, {"B": "2"}, id="an empty one is removed"),
        pytest.param({"Z": ""}, {"A": "1", "B": "2"}, id="one that is not there is not removed"),
        pytest.param({}, {"A": "1", "B": "2"}, id="none listed, all kept"),
    ],
)
@pytest.mark.parametrize("target", [{"jobSourceId": JOB_ID}, {"jobSourceId": "f" * 24}, {}])
async def test_secrets_of_a_source_job_are_merged(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    body: dict[str, str],
    kept: dict[str, str],
    target: dict[str, str],
) -> None:
    webhook = await create(client, ada, jobSourceId=JOB_ID, secrets={"A": "1", "B": "2"})

    after = await update(client, ada, webhook["id"], watched=[], secrets=body, **target)

    assert after == webhook | target
    assert (await secrets_of(database, webhook)).for_job == kept


async def test_the_secrets_of_a_job_are_merged_too_and_shown_by_name(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    webhook = await create(client, ada, job=IMAGE_JOB | {"secrets": {"A": "1", "B": "2"}})

    without = await update(client, ada, webhook["id"], job=IMAGE_JOB)
    after = await update(
        client, ada, webhook["id"], job=IMAGE_JOB | {"secrets": {"A": "", "C": "3"}}
    )

    assert webhook["job"]["secrets"] == without["job"]["secrets"] == ["A", "B"]
    assert after["job"]["secrets"] == ["B", "C"]
    assert (await secrets_of(database, webhook)).for_job == {"B": "2", "C": "3"}
    gone = await update(client, ada, webhook["id"], job=IMAGE_JOB | {"secrets": {"B": "", "C": ""}})
    assert "secrets" not in gone["job"]
    assert (await secrets_of(database, webhook)).for_job == {}


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"url": URL}, id="a url"),
        pytest.param({"job": IMAGE_JOB}, id="a job"),
    ],
)
async def test_another_kind_of_target_gets_none_of_the_secrets(
    client: httpx2.AsyncClient, database: Database, ada: Headers, other: dict[str, Any]
) -> None:
    webhook = await create(
        client, ada, jobSourceId=JOB_ID, secrets={"A": "1"}, secret="of the webhook"
    )

    after = await update(client, ada, webhook["id"], **other)

    assert ("jobSourceId" in after, "secrets" in after.get("job", {})) == (False, False)
    assert await secrets_of(database, webhook) == WebhookSecrets(current="of the webhook")
    back = await update(client, ada, webhook["id"], jobSourceId=JOB_ID)
    assert back == webhook
    assert (await secrets_of(database, webhook)).for_job == {}


async def test_all_secrets_together_are_limited_when_they_are_added_one_by_one(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    webhook = await create(client, ada, jobSourceId=JOB_ID)
    # Together with its name each has a quarter of what there may be.
    for name in "ABCD":
        await update(client, ada, webhook["id"], secrets={name: "v" * 65_535})

    response = await client.post(
        f"{PATH}/{webhook['id']}", headers=ada, json={"secrets": {"E": "v"}}
    )

    assert (response.status_code, response.json()) == (
        400,
        {"error": "secrets: all of them together must have at most 262144 bytes."},
    )
    assert list((await secrets_of(database, webhook)).for_job) == ["A", "B", "C", "D"]


SECRET, IN_SOURCE, IN_JOB = "qx7-of-the-webhook", "qx7-of-the-source", "qx7-of-the-job"


async def test_no_secret_is_in_the_database_an_answer_or_the_log(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    with structlog.testing.capture_logs() as log:
        by_source = await client.post(
            PATH,
            headers=ada,
            json={
                "watched": WATCHED,
                "domains": ["repo"],
                "jobSourceId": JOB_ID,
                "secrets": {"KEY": IN_SOURCE},
                "secret": SECRET,
            },
        )
        webhook_id = by_source.json()["webhook"]["id"]
        answers = [
            by_source,
            await client.post(f"{PATH}/{webhook_id}", headers=ada, json={"secret": f"{SECRET}2"}),
            await client.post(
                f"{PATH}/{webhook_id}",
                headers=ada,
                json={"job": IMAGE_JOB | {"secrets": {"KEY": IN_JOB}}},
            ),
            # Secrets in the wrong place are not repeated either.
            await client.post(
                f"{PATH}/{webhook_id}",
                headers=ada,
                json={"secrets": {f"{IN_SOURCE}-as-a-name": "v"}, "secret": [SECRET]},
            ),
            await client.post(
                f"{PATH}/{webhook_id}",
                headers=ada,
                json={"job": {"secrets": {IN_JOB: IN_JOB}, "environment": {IN_JOB: IN_JOB}}},
            ),
            await client.get(PATH, headers=ada),
        ]

    assert [answer.status_code for answer in answers] == [200, 200, 200, 400, 400, 200]
    async with database.read() as conn:
        rows = [str(tuple(row)) for row in await conn.fetch_all("SELECT * FROM webhooks")]
        rows += [str(tuple(row)) for row in await conn.fetch_all("SELECT * FROM outbox")]
    everything = "".join([*(answer.text for answer in answers), str(log), *rows])
    assert "qx7" not in everything


async def test_sealed_values_cannot_be_moved_to_another_webhook(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    webhook = await create(client, ada, jobSourceId=JOB_ID, secrets={"KEY": "v"}, secret="s")
    async with database.read() as conn:
        sealed = await store.find_sealed(conn, webhook["id"])
    assert sealed is not None

    keys, other = database.hub.keys, new_object_id()
    for part in (
        sealed_secrets.SealedSecrets(secret=sealed.secret),
        sealed_secrets.SealedSecrets(for_job=sealed.for_job),
        sealed_secrets.SealedSecrets(secret=sealed.for_job),
    ):
        with pytest.raises(SealBroken):
            sealed_secrets.unseal(
                keys, other if part.secret != sealed.for_job else webhook["id"], part
            )


async def test_a_deleted_webhook_has_no_secrets(database: Database) -> None:
    async with database.read() as conn:
        with pytest.raises(WebhookNotFound):
            await service.secrets_of(conn, new_object_id())


def test_what_carries_secrets_does_not_print_them() -> None:
    job = IMAGE_JOB | {"secrets": {"KEY": IN_JOB}}
    carried: list[object] = [
        CreateWebhook.model_validate(
            {"watched": WATCHED, "domains": ["repo"], "job": job, "secret": SECRET}
        ),
        UpdateWebhook.model_validate({"secrets": {"KEY": IN_SOURCE}, "secret": SECRET}),
        WebhookSecrets(current=SECRET, old=SECRET, for_job={"KEY": IN_JOB}),
    ]

    assert [each for each in carried if "qx7" in f"{each!r}{each}"] == []


async def test_switching_a_webhook_keeps_its_secrets(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    webhook = await create(client, ada, jobSourceId=JOB_ID, secrets={"KEY": "v"}, secret="s")

    for word in ("disable", "enable"):
        await client.post(f"{PATH}/{webhook['id']}/{word}", headers=ada)

    assert await secrets_of(database, webhook) == WebhookSecrets(current="s", for_job={"KEY": "v"})
    assert await show(client, ada, webhook["id"]) == webhook


async def test_changes_at_the_same_moment_lose_no_secret(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    webhook = await create(client, ada, jobSourceId=JOB_ID)
    names = [f"KEY{number}" for number in range(6)]

    await asyncio.gather(
        *(update(client, ada, webhook["id"], secrets={name: "v"}) for name in names)
    )

    assert sorted((await secrets_of(database, webhook)).for_job) == names
