"""From a change over HTTP to the deliveries that commit with it."""

import json
from typing import Any

import httpx2
import msgspec
import pytest

from community.discussions import a_discussion, a_pull_request
from hublet.accounts.records import OrganizationPlan, Role
from hublet.core.database import Database
from hublet.core.outbox import publish
from hublet.events import RepoContentUpdated, RepoSnapshot
from hublet.webhooks.triggers import service
from hublet.webhooks.triggers.records import Expansion
from people import Headers, a_user, an_organization, sign_in
from repositories import a_push, a_repo, a_resource_group, disable
from webhooks.watchers import a_watcher, list_triggered, payloads


@pytest.fixture
async def repo_id(client: httpx2.AsyncClient, ada: Headers) -> str:
    return await a_repo(client, ada, "ada/engine")


def fresh(scope: str, action: str) -> dict[str, Any]:
    return {"scope": scope, "action": action, "state": "fresh", "reason": None}


def unsent(scope: str, action: str, reason: str) -> dict[str, Any]:
    return {"scope": scope, "action": action, "state": "unsent", "reason": reason}


async def id_of(database: Database, name: str) -> str:
    return (await a_user(database, name)).id


async def test_what_happens_in_a_repository_is_to_be_delivered(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    webhook = await a_watcher(database, await id_of(database, "bob"), repo_id)

    await a_push(database, repo_id, {"a.txt": b"cogs"})
    await a_discussion(client, ada)
    await client.post(
        "/api/models/ada/engine/discussions/1/comment",
        headers=ada,
        json={"comment": "Yes."},
    )
    await client.put("/api/models/ada/engine/settings", headers=ada, json={"gated": "auto"})
    await client.post(
        "/api/repos/move",
        headers=ada,
        json={"fromRepo": "ada/engine", "toRepo": "ada/mill", "type": "model"},
    )
    await client.request("DELETE", "/api/repos/delete", headers=ada, json={"name": "ada/mill"})

    assert await list_triggered(database, webhook) == [
        fresh("repo.content", "update"),
        fresh("discussion", "create"),
        fresh("discussion.comment", "create"),
        fresh("repo.config", "update"),
        fresh("repo", "move"),
        fresh("repo", "delete"),
    ]


async def test_a_webhook_hears_only_of_the_domains_it_lists(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    bob = await id_of(database, "bob")
    repo = await a_watcher(database, bob, repo_id, domains=("repo",))
    discussion = await a_watcher(database, bob, repo_id, domains=("discussion",))

    await a_push(database, repo_id, {"a.txt": b"cogs"})
    await a_discussion(client, ada)

    assert await list_triggered(database, repo) == [fresh("repo.content", "update")]
    assert await list_triggered(database, discussion) == [fresh("discussion", "create")]


async def test_a_pull_request_is_a_discussion_and_a_new_ref(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    webhook = await a_watcher(database, await id_of(database, "bob"), repo_id)

    await a_pull_request(client, ada)

    assert fresh("discussion", "create") in await list_triggered(database, webhook)
    assert fresh("repo.content", "update") in await list_triggered(database, webhook)


async def test_one_delivery_however_many_watched_items_match(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    owner = await id_of(database, "ada")
    webhook = await a_watcher(database, await id_of(database, "bob"), owner, repo_id, owner)

    await a_push(database, repo_id, {"a.txt": b"cogs"})

    assert await list_triggered(database, webhook) == [fresh("repo.content", "update")]


async def test_nothing_is_kept_of_what_nobody_watches(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    other = await a_repo(client, ada, "ada/other")
    webhook = await a_watcher(database, await id_of(database, "bob"), other)

    await a_push(database, repo_id, {"a.txt": b"cogs"})

    assert await list_triggered(database, webhook) == []
    assert await payloads(database) == []


async def test_the_payload_is_kept_once_for_all_webhooks(database: Database, repo_id: str) -> None:
    bob = await id_of(database, "bob")
    for _ in range(3):
        await a_watcher(database, bob, repo_id)

    sha = await a_push(database, repo_id, {"a.txt": b"cogs"})

    kept = await payloads(database)
    assert [json.loads(each)["updatedRefs"][0]["newSha"] for each in kept] == [sha]


@pytest.mark.parametrize(
    ("state", "reason"),
    [("disabled", "disabled"), ("suspended-after-failure", "suspended-after-failure")],
)
async def test_a_webhook_that_is_off_keeps_what_it_missed(
    database: Database, repo_id: str, state: str, reason: str
) -> None:
    webhook = await a_watcher(database, await id_of(database, "bob"), repo_id, state=state)

    await a_push(database, repo_id, {"a.txt": b"cogs"})

    assert await list_triggered(database, webhook) == [unsent("repo.content", "update", reason)]


async def test_a_change_that_is_undone_delivers_nothing(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    webhook = await a_watcher(database, await id_of(database, "bob"), repo_id)
    event = RepoContentUpdated(
        repo=RepoSnapshot(
            id=repo_id, type="model", name="ada/engine", owner_id="a" * 24, private=False
        ),
        updated_refs=(),
        actor_id="a" * 24,
    )

    async def publish_and_fail() -> None:
        async with database.transaction() as conn:
            await publish(conn, event)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await publish_and_fail()

    assert await list_triggered(database, webhook) == []


async def test_a_deleted_repository_is_waited_for_under_its_name(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    webhook = await a_watcher(database, await id_of(database, "bob"), repo_id)
    await client.request("DELETE", "/api/repos/delete", headers=ada, json={"name": "ada/engine"})

    await a_repo(client, ada, "ada/engine", type="dataset")
    again = await a_repo(client, ada, "ada/Engine")
    await a_push(database, again, {"a.txt": b"cogs"})

    assert await list_triggered(database, webhook) == [
        fresh("repo", "delete"),
        fresh("repo", "create"),
        fresh("repo.content", "update"),
    ]


async def test_a_deleted_repository_is_shown_under_its_last_name_to_who_may_know_it(
    client: httpx2.AsyncClient, database: Database, ada: Headers, repo_id: str
) -> None:
    secret = await a_repo(client, ada, "ada/secret", private=True)
    watchers = [
        await a_watcher(database, await id_of(database, name), repo_id, secret)
        for name in ("ada", "bob")
    ]
    for name in ("engine", "secret"):
        moved = {"fromRepo": f"ada/{name}", "toRepo": f"ada/old-{name}", "type": "model"}
        await client.post("/api/repos/move", headers=ada, json=moved)
        gone = {"name": f"ada/old-{name}"}
        await client.request("DELETE", "/api/repos/delete", headers=ada, json=gone)

    assert [await watched_names(database, each) for each in watchers] == [
        ["ada/old-engine", "ada/old-secret"],
        ["ada/old-engine", "ada/engine"],
    ]


async def watched_names(database: Database, webhook_id: str) -> list[str]:
    async with database.read() as conn:
        rows = await conn.fetch_all(
            "SELECT name FROM webhook_watched WHERE webhook_id = $1 ORDER BY position", webhook_id
        )
    return [row["name"] for row in rows]


class TestPrivateRepositories:
    @pytest.fixture
    async def secret_id(self, client: httpx2.AsyncClient, database: Database, ada: Headers) -> str:
        await an_organization(
            database, "acme", members={"ada": Role.admin, "bob": Role.read, "eve": Role.read}
        )
        return await a_repo(client, ada, "acme/secret", private=True)

    async def test_members_and_the_organization_hear_and_strangers_learn_nothing(
        self, database: Database, secret_id: str
    ) -> None:
        owner = await owner_of(database, secret_id)
        await disable(database, "eve")
        watchers = {
            name: await a_watcher(database, account, owner)
            for name, account in {
                "acme": owner,
                "bob": await id_of(database, "bob"),
                "eve": await id_of(database, "eve"),
                "mallory": await id_of(database, "mallory"),
            }.items()
        }

        await a_push(database, secret_id, {"a.txt": b"cogs"})

        heard = {name: await list_triggered(database, each) for name, each in watchers.items()}
        pushed = [fresh("repo.content", "update")]
        assert heard == {"acme": pushed, "bob": pushed, "eve": [], "mallory": []}

    async def test_who_watched_it_before_is_told_that_the_access_is_gone(
        self, database: Database, secret_id: str
    ) -> None:
        webhook = await a_watcher(database, await id_of(database, "mallory"), secret_id)

        await a_push(database, secret_id, {"a.txt": b"cogs"})

        assert await list_triggered(database, webhook) == [
            unsent("repo.content", "update", "no-access")
        ]

    async def test_a_resource_group_keeps_its_repositories_to_its_members(
        self, client: httpx2.AsyncClient, database: Database
    ) -> None:
        organization = await an_organization(
            database,
            "rockets",
            plan=OrganizationPlan.team,
            members={"ada": Role.admin, "bob": Role.write, "carl": Role.read},
        )
        group = await a_resource_group(database, organization, members={"carl": Role.read})
        ada = await sign_in(database, "ada")
        repo_id = await a_repo(
            client, ada, "rockets/engine", private=True, resourceGroupId=group.id
        )
        watchers = {
            name: await a_watcher(database, await id_of(database, name), organization.id)
            for name in ("ada", "bob", "carl")
        }

        await a_push(database, repo_id, {"a.txt": b"cogs"})

        heard = {
            name: bool(await list_triggered(database, each)) for name, each in watchers.items()
        }
        assert heard == {"ada": True, "bob": False, "carl": True}


async def owner_of(database: Database, repo_id: str) -> str:
    async with database.read() as conn:
        owner_id: str = await conn.fetch_value("SELECT owner_id FROM repos WHERE id = $1", repo_id)
    return owner_id


class TestManyWebhooks:
    @pytest.fixture(autouse=True)
    def few_at_a_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(service, "INLINE", 4)
        monkeypatch.setattr(service, "BATCH", 3)

    async def test_the_worker_adds_what_is_too_much_for_one_transaction(
        self, database: Database, repo_id: str
    ) -> None:
        owner, bob = await id_of(database, "ada"), await id_of(database, "bob")
        watchers = [await a_watcher(database, bob, repo_id) for _ in range(7)]
        watchers += [await a_watcher(database, bob, owner) for _ in range(2)]
        watchers += [await a_watcher(database, bob, owner, repo_id)]

        await a_push(database, repo_id, {"a.txt": b"cogs"})
        assert [await list_triggered(database, each) for each in watchers] == [[]] * 10
        late = await a_watcher(database, bob, repo_id)
        await expanded(database)

        once = [fresh("repo.content", "update")]
        assert [await list_triggered(database, each) for each in watchers] == [once] * 10
        assert await list_triggered(database, late) == []
        assert len(await payloads(database)) == 1

    async def test_up_to_the_limit_they_commit_with_the_event(
        self, database: Database, repo_id: str
    ) -> None:
        bob = await id_of(database, "bob")
        watchers = [await a_watcher(database, bob, repo_id) for _ in range(4)]

        await a_push(database, repo_id, {"a.txt": b"cogs"})

        once = [fresh("repo.content", "update")]
        assert [await list_triggered(database, each) for each in watchers] == [once] * 4


async def expanded(database: Database) -> None:
    """Let a worker run the tasks that expand, and nothing else."""
    async with database.transaction() as conn:
        await conn.execute("DELETE FROM tasks WHERE kind <> $1", service.EXPAND)
    for _ in range(20):
        async with database.transaction() as conn:
            rows = await conn.fetch_all("SELECT id, body FROM tasks")
            if not rows:
                return
            for row in rows:
                await conn.execute("DELETE FROM tasks WHERE id = $1", row["id"])
                await service.expand(conn, msgspec.json.decode(row["body"], type=Expansion))
    raise AssertionError("The expansion does not end.")
