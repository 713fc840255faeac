"""Parts of names: the index finds what a look at each name would find, and the list of members uses it."""

from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hublet.accounts import name_parts_store as store
from hublet.accounts.name_parts_store import USERS
from hublet.accounts.organizations import store as organizations
from hublet.accounts.records import Role
from hublet.accounts.users import service as accounts
from hublet.core.database import Database
from people import Headers, a_user, an_organization

PLANS = {"sqlite": "EXPLAIN QUERY PLAN", "postgresql": "EXPLAIN"}
NAMES = (
    "ada",
    "ada/engine",
    "a_b%c~d\\e",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "grace hopper, rear admiral of the navy",
    "żółw 🐢 \U0010ffff\U0010ffff end",
    "Änne",
)
TEXTS = (
    *("a", "da", "ada", "engine", "gin", "a/e", "_", "%", "~", "\\", "_b%", "b_", "x", "zzz"),
    *("a" * 24, "a" * 25, "a" * 60, "r, rear admiral of the na", "r, rear admiral of a na"),
    *("ó", "🐢 ", "\U0010ffff", "\U0010ffff e", "\U0010ffff" * 3, "Ä", "ä"),
)
LETTERS = st.text(alphabet="ab_%/é\U0010ffff", max_size=60)


@pytest.mark.parametrize("text", TEXTS)
async def test_the_index_finds_every_name_that_contains_a_text(
    database: Database, text: str
) -> None:
    async with database.transaction() as conn:
        for number, name in enumerate(NAMES):
            await store.add(conn, "things", [name], id=str(number))
        found = await store.find_ids(conn, ["things"], [text])

    assert found is not None
    expected = {str(number) for number, name in enumerate(NAMES) if text in name}
    assert set(found) >= expected
    # A text as long as a part is matched exactly, and there is no other name here with these pieces.
    assert set(found) == expected or len(text) > 24


@given(name=LETTERS, start=st.integers(0, 60), length=st.integers(1, 60))
def test_each_piece_of_a_text_in_a_name_is_the_beginning_of_a_part(
    name: str, start: int, length: int
) -> None:
    text = name[start : start + length]
    parts = store.parts_of([name])
    for each in store.ranges_of([text]):
        assert any(each.first <= part <= each.last for part in parts)


async def test_of_several_texts_the_rarest_is_read(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "MOST_FOUND", 2)
    async with database.transaction() as conn:
        for number in range(4):
            await store.add(conn, "things", [f"common-{number}"], id=str(number))

        async def find(*texts: str) -> Any:
            return await store.find_ids(conn, ["things"], texts)

        assert await find("common") is None
        assert await find("common", "3", "n-") == ("3",)
        assert await find("common", "absent") == ()
        assert await find("") is None


async def test_other_scopes_count_for_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "MOST_FOUND", 1)
    async with database.transaction() as conn:
        for number, scope in enumerate(("a", "b", "b")):
            await store.add(conn, scope, ["engine"], id=str(number))
        assert await store.find_ids(conn, ["a"], ["gin"]) == ("0",)
        assert await store.find_ids(conn, ["a", "c"], ["gin"]) == ("0",)
        assert await store.find_ids(conn, ["b"], ["gin"]) is None


class Explainer:
    """A connection that has statements explained instead of run."""

    def __init__(self, conn: Any, kind: str) -> None:
        self._conn, self._word = conn, PLANS[kind]
        self.plans = list[str]()

    async def fetch_one(self, sql: str, *values: Any) -> Any:
        await self.fetch_all(sql, *values)
        return [0]

    async def fetch_all(self, sql: str, *values: Any) -> list[Any]:
        rows = await self._conn.fetch_all(f"{self._word} {sql}", *values)
        self.plans.append("\n".join(str(row[-1]) for row in rows))
        return []


async def test_parts_are_counted_and_read_by_their_key_alone(database: Database) -> None:
    async with database.transaction() as conn:
        if database.kind == "postgresql":
            # Tables this small would be read from end to end whatever indexes there are.
            await conn.execute("SET LOCAL enable_seqscan = off")
            await conn.execute("SET LOCAL enable_bitmapscan = off")
        explainer: Any = Explainer(conn, database.kind)
        await store.find_ids(explainer, ["model"], ["engine"])

    assert len(explainer.plans) == 2
    for plan in explainer.plans:
        if database.kind == "sqlite":
            wanted = "SEARCH name_parts USING PRIMARY KEY (scope=? AND part>? AND part<?)"
            assert wanted in plan, plan
            assert "SCAN name_parts" not in plan
        else:
            assert "Index Only Scan using name_parts_pkey" in plan, plan
            assert "(part >= " in plan, plan


async def found_members(client: httpx2.AsyncClient, search: str) -> list[str]:
    response = await client.get("/api/organizations/acme/members", params={"search": search})
    assert response.status_code == 200, response.text
    return [member["user"] for member in response.json()]


FULLNAMES = {"ada": "Ada Lovelace", "bob": "100% Bob_by", "eve": "Ève Ünal", "zoe": "Zoe~\\"}
SEARCHED = [
    "a",
    "B",
    "LOVE",
    "0%",
    "b_b",
    "~\\",
    "%",
    "_",
    "ève",
    "È",
    "nal",
    "ove l",
    "none",
    "ÜN",
]


@pytest.fixture
async def acme(database: Database) -> None:
    await an_organization(database, "acme", members=dict.fromkeys(FULLNAMES, Role.read))
    for name, fullname in FULLNAMES.items():
        user = await a_user(database, name)
        async with database.transaction() as conn:
            await accounts.set_fullname(conn, user, fullname)
    await a_user(database, "adam")


@pytest.mark.usefixtures("acme")
async def test_members_are_found_by_any_part_of_name_and_full_name(
    client: httpx2.AsyncClient, ada: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.headers.update(ada)
    narrowed = {search: await found_members(client, search) for search in SEARCHED}
    monkeypatch.setattr(store, "MOST_FOUND", -1)
    walked = {search: await found_members(client, search) for search in SEARCHED}

    assert narrowed == walked
    for search, found in narrowed.items():
        if search.isascii():
            expected = [
                name
                for name, fullname in FULLNAMES.items()
                if search.lower() in name or search.lower() in fullname.lower()
            ]
            assert found == expected, search


@pytest.mark.usefixtures("acme")
async def test_another_full_name_takes_the_place_of_the_one_before(database: Database) -> None:
    user = await a_user(database, "ada")

    async def finds(text: str) -> bool:
        async with database.read() as conn:
            return user.id in (await store.find_ids(conn, [USERS], [text]) or ())

    async with database.transaction() as conn:
        await accounts.set_fullname(conn, user, "Augusta King")
    assert not await finds("lovelace")
    assert await finds("augusta king")
    # The name has a part that the full name of before had too.
    assert await finds("ada")


async def test_the_members_of_a_page_are_read_by_their_ids(database: Database) -> None:
    async with database.transaction() as conn:
        await store.add(conn, USERS, ["ada"], id="5" * 24)

        class Recorder:
            """Stands for the connection where the list is read."""

            fetch_one, fetch_value = conn.fetch_one, conn.fetch_value

            async def fetch_all(self, sql: str, *values: Any) -> Any:
                self.statement = (sql, values)
                return [] if "memberships" in sql else await conn.fetch_all(sql, *values)

        recorder: Any = Recorder()
        await organizations.list_members(recorder, "1" * 24, search="da")
        sql, values = recorder.statement
        if database.kind == "postgresql":
            await conn.execute("SET LOCAL enable_seqscan = off")
        rows = await conn.fetch_all(f"{PLANS[database.kind]} {sql}", *values)
    plan = "\n".join(str(row[-1]) for row in rows)

    if database.kind == "sqlite":
        assert "(organization_id=? AND user_id=?)" in plan, plan
    else:
        assert "Seq Scan" not in plan, plan
        assert "user_id = ANY" in plan, plan
