"""Totals are what a count of the rows would be, whatever was written, undone, folded or copied."""

import asyncio
import io
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from hublet.core import totals
from hublet.core.database import Connection, Database, Reader, open_database
from hublet.core.database.migrations import known_migrations, migrate
from hublet.core.database.table_copy import TableShape, load_tables, open_snapshot
from hublet.worker import Worker
from processes import Place
from scratch_database import RollBack, hub_of, wait_until

PLANS = {"sqlite": "EXPLAIN QUERY PLAN", "postgresql": "EXPLAIN"}
# What each total is, counted.
COUNTED = """
    SELECT 'jobs:' || stage AS kind, owner_id || coalesce('/' || resource_group_id, '') AS subject,
        count(*) AS value
    FROM jobs GROUP BY stage, owner_id, resource_group_id
    UNION ALL
    SELECT 'members', organization_id, count(*) FROM memberships GROUP BY organization_id
    UNION ALL
    SELECT 'disabled_members', organization_id, count(*) FROM memberships WHERE user_id IN (
        SELECT id FROM users WHERE disabled_at IS NOT NULL
    ) GROUP BY organization_id
    UNION ALL
    SELECT 'followers', account_id, count(*) FROM follows GROUP BY account_id
    UNION ALL
    SELECT 'disabled_followers', account_id, count(*) FROM follows WHERE follower_id IN (
        SELECT id FROM users WHERE disabled_at IS NOT NULL
    ) GROUP BY account_id
    UNION ALL
    SELECT 'repo_bytes', owner_id, CAST(sum(size) AS BIGINT) FROM repos GROUP BY owner_id
    UNION ALL
    SELECT 'public_repos', owner_id || '/' || type, count(*) FROM repos
    WHERE visibility = 'public' GROUP BY owner_id, type
    UNION ALL
    SELECT 'scim_users', organization_id || CASE WHEN managed THEN '/managed' ELSE '' END, count(*)
    FROM scim_users GROUP BY organization_id, managed
    UNION ALL
    SELECT 'scim_groups', organization_id || CASE WHEN managed THEN '/managed' ELSE '' END, count(*)
    FROM scim_groups GROUP BY organization_id, managed
"""
KEPT = """
    SELECT kind, subject, CAST(sum(value) AS BIGINT) AS value FROM (
        SELECT kind, subject, value FROM totals
        UNION ALL SELECT kind, subject, change FROM total_changes
    ) AS kept GROUP BY kind, subject
"""
ORGANIZATIONS, USERS = ["acme", "umbrella"], ["ada", "bob", "eve"]
STAGES = ["SCHEDULING", "RUNNING", "COMPLETED", "DELETED"]
REPO_TYPES, VISIBILITIES = ["model", "dataset"], ["public", "private"]


async def sums(conn: Reader, sql: str) -> dict[tuple[str, str], int]:
    rows = await conn.fetch_all(sql)
    return {(row["kind"], row["subject"]): row["value"] for row in rows if row["value"]}


async def check(database: Database) -> None:
    async with database.transaction() as conn:
        assert await sums(conn, KEPT) == await sums(conn, COUNTED)


async def insert(conn: Connection, table: str, row: Mapping[str, Any]) -> None:
    places = ", ".join(f"${number}" for number in range(1, len(row) + 1))
    await conn.execute(
        f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places}) ON CONFLICT DO NOTHING",
        *row.values(),
    )


async def add_accounts(database: Database) -> None:
    async with database.transaction() as conn:
        for name in ORGANIZATIONS:
            account = {"id": name, "name": name, "fullname": name, "created_at": 1}
            await insert(conn, "organizations", account | {"plan": "team"})
        for name in USERS:
            account = {"id": name, "name": name, "fullname": name, "created_at": 1}
            await insert(conn, "users", account | {"type": "user", "is_admin": False})


class RandomWrites:
    """Writes to all that is counted, made up by a number."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._writes = [
            self._add_job, self._change_job, self._remove,
            self._join, self._disable, self._follow,
            self._add_repo, self._change_repo, self._provision,
        ]  # fmt: skip

    async def some(self, conn: Connection) -> None:
        for _ in range(self._random.randint(1, 8)):
            await self._random.choice(self._writes)(conn)

    def one_in(self, number: int) -> bool:
        return self._random.randrange(number) == 0

    def undo_one_in(self, number: int) -> None:
        if self.one_in(number):
            raise RollBack

    def _pick(self, *values: Any) -> Any:
        return self._random.choice(values)

    def _id(self) -> str:
        # Few enough that many rows are met again.
        return f"{self._random.randrange(30):024x}"

    async def _add_job(self, conn: Connection) -> None:
        row = {
            "id": self._id(), "owner_id": self._pick("acme", "ada"), "creator_id": "ada",
            "resource_group_id": self._pick(None, None, "g1", "g2"), "initiator_type": "user",
            "initiator_id": "ada", "spec": "{}", "labels": "{}", "secret_names": "[]",
            "stage": self._pick(*STAGES), "created_at": 1,
        }  # fmt: skip
        await insert(conn, "jobs", row)

    async def _change_job(self, conn: Connection) -> None:
        column, value = self._pick(
            ("stage", self._pick(*STAGES)), ("stage", self._pick(*STAGES)),
            ("owner_id", self._pick("acme", "ada")), ("resource_group_id", self._pick(None, "g1")),
        )  # fmt: skip
        await conn.execute(f"UPDATE jobs SET {column} = $2 WHERE id < $1", self._id(), value)

    async def _remove(self, conn: Connection) -> None:
        table = self._pick("jobs", "repos", "scim_users", "scim_groups")
        await conn.execute(f"DELETE FROM {table} WHERE id = $1", self._id())

    async def _join(self, conn: Connection) -> None:
        organization, user = self._pick(*ORGANIZATIONS), self._pick(*USERS)
        row = {"organization_id": organization, "user_id": user, "role": "read", "created_at": 1}
        if self.one_in(3):
            await conn.execute("DELETE FROM memberships WHERE user_id = $1", user)
        await insert(conn, "memberships", row)

    async def _disable(self, conn: Connection) -> None:
        await conn.execute(
            "UPDATE users SET disabled_at = $2 WHERE id = $1",
            self._pick(*USERS),
            self._pick(None, 5),
        )

    async def _follow(self, conn: Connection) -> None:
        user, account = self._pick(*USERS), self._pick(*USERS, *ORGANIZATIONS)
        if self.one_in(3):
            await conn.execute("DELETE FROM follows WHERE account_id = $1", account)
        row = {"follower_id": user, "account_id": account, "created_at": 1}
        await insert(conn, "follows", row)

    async def _add_repo(self, conn: Connection) -> None:
        name = self._id()
        row = {
            "id": name, "name": name, "name_key": name, "owner_id": self._pick("acme", "ada"),
            "type": self._pick(*REPO_TYPES), "visibility": self._pick(*VISIBILITIES),
            "creator_id": "ada", "tags": "[]", "size": self._random.randrange(3),
            "created_at": 1, "updated_at": 1,
        }  # fmt: skip
        await insert(conn, "repos", row)

    async def _change_repo(self, conn: Connection) -> None:
        change = self._pick(
            "size = size + 7", "size = size", "size = 0", "visibility = 'public'",
            "visibility = 'private', size = size + 1", "owner_id = 'ada', size = 4",
            "owner_id = 'acme'",
        )  # fmt: skip
        await conn.execute(f"UPDATE repos SET {change} WHERE id < $1", self._id())

    async def _provision(self, conn: Connection) -> None:
        stamp = {"created_at": 1, "updated_at": 1, "version": 1}
        directory = {"organization_id": self._pick(*ORGANIZATIONS), "managed": self._pick(True, False)}  # fmt: skip
        name = self._id()
        if self.one_in(2):
            row = {
                "id": name,
                "user_name": name,
                "user_name_key": name,
                "active": True,
                "kept": "{}",
            }
            await insert(conn, "scim_users", directory | row | stamp)
        else:
            row = {"id": name, "display_name": name, "display_name_key": name}
            await insert(conn, "scim_groups", directory | row | stamp)


@pytest.mark.parametrize("seed", range(4))
async def test_totals_are_what_a_count_of_the_rows_is(database: Database, seed: int) -> None:
    await add_accounts(database)
    writes = RandomWrites(seed)
    for _ in range(60):
        with suppress(RollBack):
            async with database.transaction() as conn:
                await writes.some(conn)
                with suppress(RollBack):
                    async with conn.savepoint():
                        await writes.some(conn)
                        writes.undo_one_in(2)
                # The transaction sees its own writes counted.
                assert await sums(conn, KEPT) == await sums(conn, COUNTED)
                writes.undo_one_in(4)
        if writes.one_in(5):
            await totals.fold(database)
        await check(database)
    async with database.read() as conn:
        assert len(await sums(conn, COUNTED)) > 12


async def test_those_who_fold_at_the_same_time_fold_each_change_once(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(totals, "FOLDED_AT_ONCE", 70)
    async with database.transaction() as conn:
        await add_changes(conn, 1_000)

    async def fold_all() -> None:
        while await totals.fold(database):
            pass

    await asyncio.gather(*(fold_all() for _ in range(4)))

    async with database.read() as conn:
        kept = await conn.fetch_all("SELECT subject, value FROM totals ORDER BY subject")
        assert [tuple(row) for row in kept] == [(f"s{number}", 200) for number in range(5)]
        assert await conn.fetch_value("SELECT count(*) FROM total_changes") == 0


async def add_changes(conn: Connection, count: int) -> None:
    await conn.execute_many(
        "INSERT INTO total_changes (kind, subject, change) VALUES ($1, $2, $3)",
        [("things", f"s{number % 5}", 1) for number in range(count)],
    )


async def test_a_fold_that_is_broken_off_changes_nothing(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with database.transaction() as conn:
        await add_changes(conn, 10)
    whole = totals._fold  # noqa: SLF001 - what runs in the transaction

    async def broken(conn: Connection, *, kind: str) -> int:
        await whole(conn, kind=kind)
        assert await totals.read(conn, "things", "s1") == 2
        raise RollBack

    monkeypatch.setattr(totals, "_fold", broken)
    with pytest.raises(RollBack):
        await totals.fold(database)

    async with database.read() as conn:
        assert await totals.read(conn, "things", "s1") == 2
        assert await conn.fetch_value("SELECT count(*) FROM total_changes") == 10


async def test_a_worker_folds_all_that_waits(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(totals, "FOLDED_AT_ONCE", 100)
    async with database.transaction() as conn:
        await add_changes(conn, 1_000)
    worker = Worker(database)
    worker.start()
    try:
        await wait_until(lambda: is_folded(database))
    finally:
        await worker.stop()


async def is_folded(database: Database) -> bool:
    async with database.read() as conn:
        left: int = await conn.fetch_value("SELECT count(*) FROM total_changes")
        assert await totals.read(conn, "things", "s1") == 200
    return left == 0


async def test_parts_are_those_of_one_subject(database: Database) -> None:
    values = {"ada": 1, "ada/g1": 2, "ada/g2": 4, "adam": 8, "ad": 16, "ada/g3": 0}
    async with database.transaction() as conn:
        for subject, value in values.items():
            await insert(conn, "totals", {"kind": "a", "subject": subject, "value": value})
            row = {"kind": "b", "subject": subject, "change": value * 100}
            await insert(conn, "total_changes", row)

        assert await totals.read_with_parts(conn, ["a", "b"], "ada") == 707
        assert await totals.read_parts(conn, "b", "ada") == {"g1": 200, "g2": 400}
        found = await totals.read_many(conn, ["a", "b"], ["ad", "ada/g1", "ada/g3", "nobody"])
        assert await totals.read_difference(conn, "b", "a", "ada") == 99
    assert found == {
        ("a", "ad"): 16, ("b", "ad"): 1600, ("a", "ada/g1"): 2, ("b", "ada/g1"): 200,
    }  # fmt: skip


class Explainer:
    """A connection that has statements explained instead of run."""

    def __init__(self, conn: Reader, *, kind: str) -> None:
        self._conn, self._word = conn, PLANS[kind]
        self.plan = ""

    async def fetch_all(self, sql: str, *values: Any) -> list[Any]:
        rows = await self._conn.fetch_all(f"{self._word} {sql}", *values)
        self.plan = "\n".join(str(row[-1]) for row in rows)
        return []

    async def fetch_value(self, sql: str, *values: Any) -> int:
        await self.fetch_all(sql, *values)
        return 0


READS = {
    "one": lambda conn: totals.read(conn, "members", "acme"),
    "difference": lambda conn: totals.read_difference(conn, "members", "disabled_members", "acme"),
    "many": lambda conn: totals.read_many(conn, ["a", "b"], ["acme", "ada"]),
    "parts": lambda conn: totals.read_parts(conn, "public_repos", "acme"),
    "with parts": lambda conn: totals.read_with_parts(conn, ["a", "b"], "acme"),
}


@pytest.mark.parametrize("read", READS)
async def test_a_total_is_looked_up_by_both_columns_of_a_key(database: Database, read: str) -> None:
    async with database.transaction() as conn:
        # As many owners have many totals; what PostgreSQL plans depends on it.
        rows = [(f"k{number % 10}", f"{number:024x}", 1) for number in range(5_000)]
        await conn.execute_many(
            "INSERT INTO totals (kind, subject, value) VALUES ($1, $2, $3)", rows
        )
        await conn.execute_many(
            "INSERT INTO total_changes (kind, subject, change) VALUES ($1, $2, $3)", rows
        )
        await conn.execute("ANALYZE totals")
        await conn.execute("ANALYZE total_changes")
        explainer: Any = Explainer(conn, kind=database.kind)
        await READS[read](explainer)

    plan = explainer.plan
    if database.kind == "sqlite":
        searches = [line for line in plan.splitlines() if line.startswith("SEARCH")]
        assert len(searches) in {2, 4}, plan
        assert all("(kind=? AND subject" in line for line in searches), plan
        assert "SCAN total" not in plan, plan
    else:
        conditions = [line for line in plan.splitlines() if "Index Cond" in line]
        assert len(conditions) in {2, 4}, plan
        assert all("kind" in line and "subject" in line for line in conditions), plan
        assert "Seq Scan" not in plan, plan


class Hold:
    """A transaction that stays open until it is told to commit."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.wrote = asyncio.Event()
        self.may_commit = asyncio.Event()

    async def run(self, sql: str, *values: Any) -> None:
        async with self._database.transaction() as conn:
            await conn.execute(sql, *values)
            self.wrote.set()
            await self.may_commit.wait()


JOIN = "INSERT INTO memberships VALUES ('acme', 'bob', 'read', 1)"
LEAVE = "DELETE FROM memberships WHERE user_id = 'bob'"
FOLLOW = "INSERT INTO follows VALUES ('bob', 'ada', 1)"
UNFOLLOW = "DELETE FROM follows WHERE follower_id = 'bob'"
DISABLE = "UPDATE users SET disabled_at = 5 WHERE id = 'bob'"
ENABLE = "UPDATE users SET disabled_at = NULL WHERE id = 'bob'"


@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
@pytest.mark.parametrize("first_commits", ["before the second begins to wait", "after"])
@pytest.mark.parametrize(
    ("before", "first", "second"),
    [
        ((), JOIN, DISABLE),
        ((), DISABLE, JOIN),
        ((JOIN,), LEAVE, DISABLE),
        ((JOIN,), DISABLE, LEAVE),
        ((DISABLE, JOIN), LEAVE, ENABLE),
        ((DISABLE, JOIN), ENABLE, LEAVE),
        ((), FOLLOW, DISABLE),
        ((), DISABLE, FOLLOW),
        ((FOLLOW,), UNFOLLOW, DISABLE),
        ((FOLLOW,), DISABLE, UNFOLLOW),
    ],
)
async def test_whoever_is_disabled_while_joining_or_leaving_is_counted_right(
    database: Database, before: tuple[str, ...], first: str, second: str, first_commits: str
) -> None:
    await add_accounts(database)
    for statement in before:
        async with database.transaction() as conn:
            await conn.execute(statement)
    one, other = Hold(database), Hold(database)
    other.may_commit.set()

    running = asyncio.create_task(one.run(first))
    await one.wrote.wait()
    following = asyncio.create_task(other.run(second))
    if first_commits == "after":
        await wait_until(lambda: waits_or_wrote(database, other))
    one.may_commit.set()
    await asyncio.gather(running, following)

    await check(database)


async def waits_or_wrote(database: Database, hold: Hold) -> bool:
    async with database.read() as conn:
        waiting = await conn.fetch_value("SELECT count(*) FROM pg_locks WHERE NOT granted")
    return hold.wrote.is_set() or waiting > 0


WITH_LEAVES = """
CREATE TABLE branches (id TEXT PRIMARY KEY);
CREATE TABLE leaves (branch_id TEXT NOT NULL REFERENCES branches (id) ON DELETE CASCADE);
-- only sqlite
CREATE TRIGGER count_leaf AFTER DELETE ON leaves BEGIN
    INSERT INTO total_changes VALUES ('leaves', OLD.branch_id, -1);
END;
-- end
-- only postgresql
CREATE FUNCTION count_leaf() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO total_changes VALUES ('leaves', OLD.branch_id, -1);
    RETURN NULL;
END $$;
CREATE TRIGGER count_leaf AFTER DELETE ON leaves FOR EACH ROW EXECUTE FUNCTION count_leaf();
-- end
INSERT INTO branches VALUES ('oak');
INSERT INTO leaves VALUES ('oak'), ('oak');
"""
WITHOUT_LEAVES = """
DROP TABLE leaves;
DROP TABLE branches;
-- only postgresql
DROP FUNCTION count_leaf;
-- end
"""


async def test_rows_that_go_with_others_are_counted_too(database: Database) -> None:
    async with database.transaction() as conn:
        await conn.apply(WITH_LEAVES)
        await conn.execute("DELETE FROM branches")

        assert await totals.read(conn, "leaves", "oak") == -2
        await conn.apply(WITHOUT_LEAVES)


@pytest.fixture
async def empty(place: Place) -> AsyncIterator[Database]:
    """A database without a schema."""
    place.data_dir.mkdir()
    async with open_database(hub_of(place.settings)) as database:
        yield database


async def test_a_migration_counts_what_was_there(empty: Database) -> None:
    before = [each for each in known_migrations() if each.name != "totals"]
    await migrate(empty, before)
    await add_accounts(empty)
    writes = RandomWrites(7)
    async with empty.transaction() as conn:
        for _ in range(40):
            await writes.some(conn)

    await migrate(empty)

    await check(empty)
    async with empty.transaction() as conn:
        assert len(await sums(conn, KEPT)) > 12
        await writes.some(conn)
    await check(empty)


async def test_a_copy_has_the_totals_that_its_rows_have(
    database: Database, empty: Database
) -> None:
    await add_accounts(database)
    writes = RandomWrites(3)
    for _ in range(20):
        async with database.transaction() as conn:
            await writes.some(conn)
    await totals.fold(database)
    async with database.transaction() as conn:
        await writes.some(conn)
    async with open_snapshot(database) as snapshot:
        tables = [table for table in snapshot.tables if table.name != "migrations"]
        files = {table.name: io.BytesIO() for table in tables}
        for table in tables:
            await snapshot.write(table, files[table.name])

    await migrate(empty)
    async with empty.transaction() as conn:
        # What a fresh hub has of its own gives way, and is not counted.
        await insert(conn, "totals", {"kind": "members", "subject": "acme", "value": 99})

        def rows_of(table: TableShape) -> io.BytesIO:
            files[table.name].seek(0)
            return files[table.name]

        await load_tables(conn, tables, rows_of)

    await check(empty)
    async with database.read() as conn:
        expected = await sums(conn, KEPT)
    async with empty.transaction() as conn:
        assert await sums(conn, KEPT) == expected
        # The triggers are back.
        await writes.some(conn)
    await totals.fold(empty)
    await check(empty)
