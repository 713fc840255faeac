"""Whatever acts later in somebody's name has no more rights than were granted and are left."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from hublet.accounts.organizations import service as organizations
from hublet.accounts.records import OPERATOR, Organization, Role
from hublet.core.database import Database
from jobs.jobs_api import BODY, initiator_of, run
from people import Headers, a_user, an_organization, sign_in
from repos.content import put
from repositories import a_repo, disable
from security.credentials import (
    ALL_NEEDED,
    FULL,
    JOBS,
    NO_REPOS,
    OF_APP,
    OF_ORGANIZATION,
    READ,
    WEBHOOKS,
    credential,
)
from security.delayed_actions import DELAYED, WATCHED, Scene, a_trigger
from webhooks.engine_rows import delivering, settle, trigger

LACKS_JOBS = (403, "The token lacks the scope jobs.")
LACKS_WEBHOOKS = (403, "The token lacks the scope webhooks.")
DONE = (200, None)


def volume(source: str) -> dict[str, Any]:
    return {"volumes": [{"type": "model", "source": source, "mountPath": "/data"}]}


def no_volume(source: str) -> tuple[int, str]:
    return 404, f"volumes[0]: there is no model {source}, or you cannot read it."


@pytest.fixture
async def engines(database: Database) -> Organization:
    members = {"ada": Role.admin, "bob": Role.admin}
    return await an_organization(database, "engines", members=members)


@pytest.fixture
async def scene(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    engines: Organization,
) -> AsyncIterator[Scene]:
    """Private models of ada and of the organization, and a public one; an engine that delivers."""
    for name in ("ada/vault", f"{engines.name}/plans", "ada/open"):
        repo_id = await a_repo(client, ada, name, private=name != "ada/open")
        await put(database, repo_id, {"a": b"1"})
    async with delivering(database) as engine:
        yield Scene(client=client, database=database, engine=engine, ada=ada)


async def outcome(scene: Scene, who: Headers, path: str, body: Any = None) -> tuple[int, Any]:
    response = await scene.client.post(path, headers=who, json=body)
    return response.status_code, response.json().get("error")


TARGETS: list[dict[str, Any]] = [
    {"job": BODY},
    {"job": BODY | volume("ada/vault")},
    {"job": BODY | volume("engines/plans")},
    {},
]


async def set_up(
    scene: Scene, who: Headers, target: dict[str, Any], *, source_id: str = ""
) -> tuple[int, Any]:
    """Return how it ends when a webhook is created with this credential."""
    body = {"watched": WATCHED, "domains": ["repo"]} | (target or {"jobSourceId": source_id})
    return await outcome(scene, who, scene.webhooks, body)


# For one's own webhooks: a job without volumes, one with each of two, and a copy of a job.
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (FULL, [DONE, DONE, DONE, DONE]),
        (READ, [LACKS_WEBHOOKS] * 4),
        (JOBS, [LACKS_WEBHOOKS] * 4),
        (WEBHOOKS, [LACKS_JOBS] * 4),
        (NO_REPOS, [DONE, no_volume("ada/vault"), no_volume("engines/plans"), DONE]),
        (ALL_NEEDED, [DONE, DONE, DONE, DONE]),
        (OF_APP, [DONE, DONE, no_volume("engines/plans"), DONE]),
        (OF_ORGANIZATION, [LACKS_WEBHOOKS] * 4),
    ],
)
async def test_a_webhook_that_starts_a_job_needs_every_right_of_that_job(
    scene: Scene, engines: Organization, name: str, expected: list[Any]
) -> None:
    who = await credential(scene.database, name, organization_id=engines.id)
    source_id = (await run(scene.client, scene.ada))["id"]

    found = [await set_up(scene, who, each, source_id=source_id) for each in TARGETS]

    assert found == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (FULL, [DONE, DONE, DONE]),
        (WEBHOOKS, [LACKS_JOBS] * 3),
        (NO_REPOS, [DONE, no_volume("ada/vault"), no_volume("engines/plans")]),
        (OF_APP, [LACKS_WEBHOOKS] * 3),
        (OF_ORGANIZATION, [DONE, no_volume("ada/vault"), DONE]),
    ],
)
async def test_a_webhook_of_an_organization_needs_the_rights_for_it(
    scene: Scene, engines: Organization, name: str, expected: list[Any]
) -> None:
    who = await credential(scene.database, name, organization_id=engines.id)
    scene = replace(scene, organization="engines")

    assert [await set_up(scene, who, each) for each in TARGETS[:3]] == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (FULL, [DONE, DONE, DONE, DONE, DONE, DONE]),
        (READ, [LACKS_JOBS] * 3 + [LACKS_WEBHOOKS] * 3),
        (WEBHOOKS, [LACKS_JOBS] * 6),
        (JOBS, [no_volume("ada/vault")] * 3 + [LACKS_WEBHOOKS] * 3),
        # A webhook acts with what was granted to it, whoever lets it act.
        (NO_REPOS, [no_volume("ada/vault")] * 3 + [DONE] * 3),
        (ALL_NEEDED, [DONE, DONE, DONE, DONE, DONE, DONE]),
        (OF_APP, [DONE, DONE, DONE, DONE, DONE, DONE]),
        (OF_ORGANIZATION, [LACKS_JOBS] * 3 + [LACKS_WEBHOOKS] * 3),
    ],
)
async def test_who_starts_a_job_by_hand_needs_the_scope_for_it(
    scene: Scene, engines: Organization, name: str, expected: list[Any]
) -> None:
    mounts = volume("ada/vault")
    job = await run(scene.client, scene.ada, **mounts)
    schedule = {"schedule": "@hourly", "concurrency": True, "jobSpec": BODY | mounts}
    scheduled = await scene.post(scene.ada, "/api/scheduled-jobs/ada", schedule)
    webhook = f"{scene.webhooks}/{await scene.webhook(scene.ada, **mounts)}"
    [delivery_id] = await trigger(scene.database, webhook.rpartition("/")[2])
    await settle(scene.engine)
    who = await credential(scene.database, name, organization_id=engines.id)

    found = [
        await outcome(scene, who, "/api/scheduled-jobs/ada", schedule),
        await outcome(scene, who, f"/api/scheduled-jobs/ada/{scheduled['id']}/run"),
        await outcome(scene, who, f"/api/jobs/ada/{job['id']}/duplicate"),
        await outcome(scene, who, f"{webhook}/ping"),
        await outcome(scene, who, f"{webhook}/replay/{delivery_id}"),
        await outcome(scene, who, f"{webhook}/recover", {"since": "2020-01-01T00:00:00Z"}),
    ]

    assert found == expected


@pytest.mark.parametrize("delayed", DELAYED)
async def test_what_acts_later_has_no_scope_that_it_was_not_granted(
    scene: Scene, engines: Organization, delayed: Any
) -> None:
    names = (FULL, ALL_NEEDED, OF_APP, NO_REPOS)
    credentials = [await credential(scene.database, n, organization_id=engines.id) for n in names]
    later = [await delayed(scene, who, **volume("ada/open")) for who in credentials]

    settings = {"headers": scene.ada, "json": {"private": True}}
    hidden = await scene.client.put("/api/models/ada/open/settings", **settings)

    assert hidden.status_code == 200
    assert [await act() for act in later] == [None, None, None, no_volume("ada/open")[1]]


async def demote(database: Database, engines: Organization) -> None:
    async with database.transaction() as conn:
        ada = await a_user(database, "ada")
        await organizations.set_member(conn, OPERATOR, engines, ada, Role.read)


async def remove(database: Database, engines: Organization) -> None:
    async with database.transaction() as conn:
        await organizations.remove_member(conn, OPERATOR, engines, await a_user(database, "ada"))


async def switch_off(database: Database, _engines: Organization) -> None:
    await disable(database, "ada")


@pytest.mark.parametrize(
    ("lose", "sentence"),
    [
        (demote, "This needs the role contributor in the organization engines."),
        (remove, "Whoever set this up may not run jobs of this owner any more."),
        (switch_off, "Whoever set this up has no account on this hub any more."),
    ],
)
@pytest.mark.parametrize("name", [FULL, OF_ORGANIZATION])
async def test_what_acts_later_has_no_right_that_its_creator_lost(
    scene: Scene, engines: Organization, lose: Any, sentence: str, name: str
) -> None:
    bob = await sign_in(scene.database, "bob")
    scene = replace(scene, organization="engines", ada=bob)
    who = await credential(scene.database, name, organization_id=engines.id)
    later = [await delayed(scene, who) for delayed in DELAYED]

    await lose(scene.database, engines)

    assert [await act() for act in later] == [sentence] * len(DELAYED)


async def test_a_revoked_token_stops_nothing_that_it_set_up(
    scene: Scene, engines: Organization
) -> None:
    who = await credential(scene.database, ALL_NEEDED, organization_id=engines.id)
    later = [await delayed(scene, who, **volume("ada/vault")) for delayed in DELAYED]
    async with scene.database.transaction() as conn:
        await conn.execute("UPDATE tokens SET revoked_at = 1 WHERE role = 'fineGrained'")

    assert [await act() for act in later] == [None] * len(DELAYED)


async def test_what_was_set_up_before_delegations_acts_with_what_its_creator_has(
    scene: Scene,
) -> None:
    later = [await delayed(scene, scene.ada, **volume("ada/vault")) for delayed in DELAYED]
    async with scene.database.transaction() as conn:
        for table in ("jobs", "scheduled_jobs", "webhooks"):
            await conn.execute(f"UPDATE {table} SET delegation = NULL")

    assert [await act() for act in later] == [None] * len(DELAYED)

    await disable(scene.database, "ada")
    gone = "Whoever set this up has no account on this hub any more."
    assert await later[DELAYED.index(a_trigger)]() == gone


CHANGES: list[dict[str, Any]] = [
    {"job": BODY},
    {"watched": [{"type": "user", "name": "bob"}]},
    {"domains": ["discussion"]},
    {"secret": "other"},
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: next(iter(change)))
async def test_a_weaker_token_changes_nothing_of_a_webhook_that_starts_a_job(
    scene: Scene, engines: Organization, change: dict[str, Any]
) -> None:
    webhook = f"{scene.webhooks}/{await scene.webhook(scene.ada, **volume('ada/vault'))}"
    before = (await scene.client.get(webhook, headers=scene.ada)).json()
    weak = await credential(scene.database, WEBHOOKS, organization_id=engines.id)
    no_repos = await credential(scene.database, NO_REPOS, organization_id=engines.id)

    assert await outcome(scene, weak, webhook, change) == LACKS_JOBS
    if "job" not in change:
        assert await outcome(scene, no_repos, webhook, change) == no_volume("ada/vault")
    assert (await scene.client.get(webhook, headers=scene.ada)).json() == before


async def test_secrets_of_a_source_are_part_of_the_job(scene: Scene, engines: Organization) -> None:
    source_id = (await run(scene.client, scene.ada))["id"]
    body = {"watched": WATCHED, "domains": ["repo"], "jobSourceId": source_id}
    webhook_id = (await scene.post(scene.ada, scene.webhooks, body))["webhook"]["id"]
    weak = await credential(scene.database, WEBHOOKS, organization_id=engines.id)

    # A variable such as LD_PRELOAD decides what a program does.
    change = {"secrets": {"LD_PRELOAD": "/tmp/mine.so"}}
    assert await outcome(scene, weak, f"{scene.webhooks}/{webhook_id}", change) == LACKS_JOBS


async def test_a_job_acts_for_whoever_last_changed_its_webhook(scene: Scene) -> None:
    scene = replace(scene, organization="engines")
    bob = await sign_in(scene.database, "bob")
    webhook_id = await scene.webhook(scene.ada, **volume("ada/vault"))
    webhook = f"{scene.webhooks}/{webhook_id}"

    # The volume is ada's: bob cannot make use of it through her webhook.
    assert await outcome(scene, bob, webhook, {"domains": ["repo"]}) == no_volume("ada/vault")
    assert await creator_of_next_job(scene, webhook_id) == "ada"

    assert await outcome(scene, bob, webhook, {"job": BODY | volume("engines/plans")}) == DONE
    assert await creator_of_next_job(scene, webhook_id) == "bob"
    await disable(scene.database, "ada")
    assert await creator_of_next_job(scene, webhook_id) == "bob"


async def creator_of_next_job(scene: Scene, webhook_id: str) -> str:
    """Return who the job runs for that the next event starts."""
    await trigger(scene.database, webhook_id)
    await settle(scene.engine)
    bob = await sign_in(scene.database, "bob")
    newest = (await scene.client.get("/api/jobs/engines", headers=bob)).json()[0]
    assert await initiator_of(scene.database, newest["id"]) == ("webhook", webhook_id)
    name: str = newest["createdBy"]["name"]
    return name


async def test_a_webhook_that_gets_a_url_keeps_no_delegation(scene: Scene) -> None:
    webhook_id = await scene.webhook(scene.ada)
    url = {"url": "https://example.com/hook"}
    assert await outcome(scene, scene.ada, f"{scene.webhooks}/{webhook_id}", url) == DONE

    async with scene.database.read() as conn:
        kept = await conn.fetch_value("SELECT delegation FROM webhooks WHERE id = $1", webhook_id)
    assert kept is None


async def test_a_delegation_without_the_scope_jobs_starts_nothing(scene: Scene) -> None:
    act = await a_trigger(scene, scene.ada)
    async with scene.database.transaction() as conn:
        await conn.execute(
            "UPDATE webhooks SET delegation = replace(delegation, '\"write\"', '\"read\"')"
        )

    assert await act() == LACKS_JOBS[1]
