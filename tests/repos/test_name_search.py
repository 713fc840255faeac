"""Lists that are searched by a part of a name: what they find, in which order, and for whom."""

from datetime import timedelta
from typing import Any

import httpx2
import pytest

from hublet.accounts import name_parts_store
from hublet.accounts.records import Role
from hublet.core import clock, metadata
from hublet.core.database import Database, open_database
from hublet.core.database.migrations import known_migrations, migrate
from hublet.core.queue import tasks
from hublet.repos import name_backfill, name_index_store
from hublet.repos.browse import lists
from hublet.repos.browse import store as lists_store
from hublet.repos.browse.records import ListOrder, ListSort, RepoFilter
from hublet.repos.records import Reach, RepoType
from people import Headers, an_organization, sign_in
from processes import Place
from repositories import a_repo, a_resource_group
from scratch_database import hub_of
from statements import Statements
from workers import drain

MIGRATION = 50
MODELS = "/api/models"
OWN = ["ada/engine", "ada/Engine-2_b", "ada/e.n.g", "ada/x", "ada/tangent_engine-large-instruct-v2"]
HIDDEN = ["bob/engine-of-bob", "acme/secret-engine"]
SEARCHED = [
    *(
        "e",
        "E",
        "engine",
        "ENGINE",
        "a/e",
        "ada/",
        "ada/x",
        "/",
        "_",
        "-",
        ".",
        "2_",
        "bob",
        "acme",
    ),
    *(
        "%",
        "\\",
        "~",
        "é",
        "\u017f",
        "nothing",
        "gent_engine-large-instruct-v2",
        "x" * 100,
        "engine 2",
    ),
    *(
        "eng large",
        "e n g",
        "large-instruct-v3",
        "secret",
        "of-bob",
        "ada/tangent_engine-large-inst",
    ),
]


@pytest.fixture
async def people(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> dict[str, Headers | None]:
    """Callers who see different repositories; acme's secret one is in a group without bob."""
    bob = await sign_in(database, "bob")
    acme = await an_organization(database, "acme", members={"ada": Role.admin, "bob": Role.write})
    group = await a_resource_group(database, acme)
    for name in OWN:
        await a_repo(client, ada, name)
    await a_repo(client, ada, "ada/engine", type="dataset")
    await a_repo(client, bob, "bob/engine-of-bob", private=True)
    await a_repo(client, ada, "acme/secret-engine", private=True, resourceGroupId=group.id)
    return {"nobody": None, "ada": ada, "bob": bob, "eve": await sign_in(database, "eve")}


SEEN = {
    "nobody": OWN,
    "eve": OWN,
    "ada": [*OWN, "acme/secret-engine"],
    "bob": [*OWN, "bob/engine-of-bob"],
}


async def found(
    client: httpx2.AsyncClient, search: str, headers: Headers | None = None, **query: str
) -> list[str]:
    response = await client.get(MODELS, params={"search": search, **query}, headers=headers or {})
    assert response.status_code == 200, response.text
    return [repo["id"] for repo in response.json()]


@pytest.mark.parametrize("who", SEEN)
@pytest.mark.parametrize("most", [0, 1, 3, 2000])
async def test_a_list_has_what_contains_all_words_and_is_the_callers_to_see(
    client: httpx2.AsyncClient,
    people: dict[str, Headers | None],
    monkeypatch: pytest.MonkeyPatch,
    who: str,
    most: int,
) -> None:
    # The fewer are read by their ids, the more is looked for along the order of the list.
    monkeypatch.setattr(name_parts_store, "MOST_FOUND", most)
    for search in SEARCHED:
        expected = [
            name
            for name in SEEN[who]
            if all(word.casefold() in name.casefold() for word in search.split())
        ]
        ids = await found(client, search, people[who])
        # The newest first.
        assert ids == expected[::-1], search


@pytest.mark.parametrize("most", [0, 1, 3, 2000])
async def test_pages_of_a_search_are_in_the_order_of_the_list(
    client: httpx2.AsyncClient,
    people: dict[str, Headers | None],
    monkeypatch: pytest.MonkeyPatch,
    most: int,
) -> None:
    monkeypatch.setattr(name_parts_store, "MOST_FOUND", most)
    for query in ({}, {"sort": "likes"}, {"sort": "createdAt", "direction": "1"}):
        whole = await found(client, "engine", people["ada"], **query)
        paged, url = list[str](), f"{MODELS}?search=engine&limit=1"
        url += "".join(f"&{key}={value}" for key, value in query.items())
        while url:
            response = await client.get(url, headers=people["ada"])
            paged += [repo["id"] for repo in response.json()]
            url = response.links.get("next", {}).get("url", "")
        assert paged == whole
        assert len(whole) == 4


@pytest.mark.parametrize("who", SEEN)
async def test_a_hidden_name_is_asked_for_with_the_same_statements_as_one_that_is_not_there(
    client: httpx2.AsyncClient,
    people: dict[str, Headers | None],
    statements: Statements,
    monkeypatch: pytest.MonkeyPatch,
    who: str,
) -> None:
    hidden = "secret" if who == "bob" else "of-bob"
    # Also when the hidden ones are too many to be read, but for those in a group of one's organization.
    for most in (2000,) if who == "bob" else (2000, 0):
        monkeypatch.setattr(name_parts_store, "MOST_FOUND", most)
        # The token is known from here on.
        await found(client, "first", people[who])
        noted = []
        for search in (hidden, "missing"):
            statements.begin()
            assert await found(client, search, people[who]) == []
            noted.append(statements.noted)
        assert noted[0] == noted[1]


async def index_of(conn: Any) -> set[tuple[str, str, str]]:
    return {tuple(row) for row in await conn.fetch_all("SELECT scope, part, id FROM name_parts")}


async def refilled(conn: Any) -> set[tuple[str, str, str]]:
    """Return the index as it is filled with the names of now."""
    await conn.execute("DELETE FROM name_parts")
    await name_parts_store.add_users(conn, after="", limit=10_000)
    await name_index_store.add_existing(conn, after="", limit=10_000)
    return await index_of(conn)


async def test_the_index_follows_names_owners_visibility_and_deletions(
    client: httpx2.AsyncClient, database: Database, ada: Headers, people: dict[str, Headers | None]
) -> None:
    async def move(before: str, after: str) -> None:
        body = {"fromRepo": before, "toRepo": after, "type": "model"}
        response = await client.post("/api/repos/move", headers=ada, json=body)
        assert response.status_code == 200, response.text

    async def set_private(name: str, *, private: bool) -> None:
        response = await client.put(
            f"{MODELS}/{name}/settings", headers=ada, json={"private": private}
        )
        assert response.status_code == 200, response.text

    await move("ada/x", "ada/turbine")
    assert (await found(client, "ada/x"), await found(client, "turb")) == ([], ["ada/turbine"])
    await move("ada/turbine", "acme/turbine")
    assert await found(client, "ada/turb") == []
    assert await found(client, "acme/turb") == ["acme/turbine"]
    await set_private("acme/turbine", private=True)
    assert await found(client, "turbine", people["eve"]) == []
    assert await found(client, "turbine", people["bob"]) == ["acme/turbine"]
    await move("acme/turbine", "ada/turbine")
    assert await found(client, "turbine", people["bob"]) == []
    await set_private("ada/turbine", private=False)
    assert await found(client, "turbine", people["bob"]) == ["ada/turbine"]
    async with database.transaction() as conn:
        before = await index_of(conn)
        assert before == await refilled(conn)

    for name in ("turbine", "engine"):
        response = await client.request(
            "DELETE", "/api/repos/delete", headers=ada, json={"name": f"ada/{name}"}
        )
        assert response.status_code == 200, response.text
    assert await found(client, "turbine", ada) == []
    async with database.transaction() as conn:
        after = await index_of(conn)
        assert len(after) < len(before)
        assert after == await refilled(conn)


async def test_a_bucket_is_found_by_its_name_alone(
    client: httpx2.AsyncClient, ada: Headers
) -> None:
    for name in ("box", "adapters"):
        response = await client.post(f"/api/buckets/ada/{name}", headers=ada, json={})
        assert response.status_code == 200, response.text

    for search, expected in {"ada": ["ada/adapters"], "OX": ["ada/box"], "ada/": []}.items():
        response = await client.get("/api/buckets/ada", params={"search": search}, headers=ada)
        assert [bucket["id"] for bucket in response.json()] == expected


async def test_more_than_are_read_by_their_ids_are_found_along_the_order(
    client: httpx2.AsyncClient, database: Database, ada: Headers
) -> None:
    await a_repo(client, ada, "ada/engine")
    numbers = range(1, name_parts_store.MOST_FOUND + 2)
    async with database.transaction() as conn:
        await conn.execute_many(
            """
            INSERT INTO repos (id, type, owner_id, name, name_key, visibility, creator_id, tags,
                               created_at, updated_at)
            SELECT $1, type, owner_id, $2, $2, visibility, creator_id, tags, $3, $3 FROM repos
            WHERE name = 'engine'
            """,
            [(f"{number:024x}", f"copy-{number}", number) for number in numbers],
        )
        await refilled(conn)
        few = await name_parts_store.find_ids(conn, ["model"], ["copy-7"])
        many = await name_parts_store.find_ids(conn, ["model"], ["copy"])

    assert few is not None
    assert many is None
    assert await found(client, "copy", limit="2") == ["ada/copy-2001", "ada/copy-2000"]
    assert await found(client, "copy-77", limit="2") == ["ada/copy-779", "ada/copy-778"]


class Explainer:
    """A connection that has the statement of a list explained instead of run."""

    def __init__(self, conn: Any, *, kind: str) -> None:
        self._conn, self._word = conn, {"sqlite": "EXPLAIN QUERY PLAN"}.get(kind, "EXPLAIN")
        self.plan = ""

    async def fetch_all(self, sql: str, *values: Any) -> list[Any]:
        rows = await self._conn.fetch_all(f"{self._word} {sql}", *values)
        self.plan = "\n".join(str(row[-1]) for row in rows)
        return []


@pytest.mark.parametrize("sort", list(ListSort))
@pytest.mark.parametrize(
    ("few", "indexes"),
    [
        pytest.param({"public_ids", "private_ids"}, ["sqlite_autoindex"] * 2, id="both few"),
        pytest.param({"public_ids"}, ["sqlite_autoindex", "private_repos"], id="many private"),
        pytest.param({"private_ids"}, ["public_repos", "sqlite_autoindex"], id="many public"),
    ],
)
async def test_each_part_of_a_list_reads_few_by_their_ids_and_many_in_order(
    database: Database, few: set[str], indexes: list[str], sort: ListSort
) -> None:
    reach = Reach(
        user_id="1" * 24, readable=("1" * 24,), where_created=(), created_with="", administered=()
    )
    ids: dict[str, Any] = {name: (name,) for name in few}
    wanted = RepoFilter(type=RepoType.model, words=("engine",), **ids)
    async with database.transaction() as conn:
        if database.kind == "postgresql":
            # Tables this small would be read from end to end whatever indexes there are.
            await conn.execute("SET LOCAL enable_seqscan = off")
        explainer: Any = Explainer(conn, kind=database.kind)
        order = ListOrder(sort=sort)
        await lists_store.list_of_type(explainer, wanted, reach, order=order, after=None, limit=10)

    if database.kind == "sqlite":
        read = [line for line in explainer.plan.split("\n") if line.startswith("SEARCH r ")]
        assert len(read) == len(indexes)
        assert all(
            f"USING INDEX {index}" in line for line, index in zip(read, indexes, strict=True)
        )
    else:
        assert "Seq Scan on repos" not in explainer.plan


BEFORE = """
INSERT INTO users (id, name, fullname, type, is_admin, created_at) VALUES
    ('u', 'Ada', 'Ada Lovelace', 'user', FALSE, 1);
INSERT INTO names (key, account_id, type) VALUES ('ada', 'u', 'user');
INSERT INTO repos (id, type, owner_id, name, name_key, visibility, creator_id, tags, created_at,
                   updated_at) VALUES
    ('r', 'model', 'u', 'Engine', 'engine', 'public', 'u', '[]', 1, 1),
    ('p', 'model', 'u', 'Hidden', 'hidden', 'private', 'u', '[]', 1, 1);
"""


async def test_names_of_before_an_upgrade_are_found_after_it(place: Place) -> None:
    place.data_dir.mkdir()
    known = known_migrations()
    wanted = RepoFilter(type=RepoType.model, words=("a/eng",))
    async with open_database(hub_of(place.settings)) as database:
        await migrate(database, [each for each in known if each.number < MIGRATION])
        async with database.transaction() as conn:
            await conn.apply(BEFORE)
        await migrate(database, known)

        async def found_now() -> list[str]:
            async with database.read() as conn:
                repos = await lists.list_repos(conn, None, wanted, order=ListOrder())
            return [repo.id for repo in repos]

        # Straight after the upgrade too, when the index has none of them.
        assert await found_now() == ["r"]
        async with database.transaction() as conn:
            assert not await name_parts_store.is_filled(conn)
            await name_backfill.schedule(conn)
        await drain(database)
        assert await found_now() == ["r"]
        async with database.read() as conn:
            # Processes of the version before may go on for a while.
            assert not await name_parts_store.is_filled(conn)

        clock.move(timedelta(hours=1, seconds=1))
        await drain(database)

        assert await found_now() == ["r"]
        async with database.read() as conn:
            assert await name_parts_store.is_filled(conn)
            for scope, text, expected in (
                ("model", "ada/engine", ("r",)),
                ("model", "idd", ()),
                ("model/u", "idd", ("p",)),
                ("user", "lace", ("u",)),
            ):
                assert await name_parts_store.find_ids(conn, [scope], [text]) == expected


async def test_many_names_are_filled_in_by_several_tasks(
    client: httpx2.AsyncClient,
    database: Database,
    ada: Headers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(name_backfill, "_BATCH", 2)
    monkeypatch.setattr(tasks, "_BATCHES_OF_TASK", 2)
    for number in range(5):
        await a_repo(client, ada, f"ada/engine-{number}")
        await sign_in(database, f"eve-{number}")
    async with database.transaction() as conn:
        written = await index_of(conn)
        await conn.execute("DELETE FROM name_parts")
        await metadata.set_value(conn, name_parts_store.FILLED_NAME, "")
        await name_backfill.schedule(conn)

    clock.move(timedelta(hours=1, seconds=1))
    await drain(database)

    async with database.read() as conn:
        assert await name_parts_store.is_filled(conn)
        assert await index_of(conn) == written
