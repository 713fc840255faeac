"""The loads on notifications: what is put into the inboxes, and that every part runs."""

from typing import Any

import pytest
from benchmarks import inboxes
from benchmarks.inboxes import Crowd, load
from benchmarks.notification_ceiling import recorded
from benchmarks.query_plans import show_plans
from benchmarks.subjects import notifications, notifications_fan_out, notifications_streams
from benchmarks.subjects.notifications import questions
from benchmarks.workbench import workbench

from hublet.core.database import Database
from hublet.notifications.inbox.paging import read_page
from hublet.notifications.inbox.schemas import Filters
from hublet.notifications.inbox.service import select

LARGE = 2_000
TOTAL = 5_000


def engine_of(database: Database) -> Any:
    return {"sqlite": "SQLite", "postgresql": "PostgreSQL"}[database.kind]


@pytest.fixture
async def crowd(database: Database) -> Crowd:
    return await load(database, engine_of(database), total=TOTAL, large_has=LARGE)


async def value(database: Database, sql: str) -> Any:
    async with database.read() as conn:
        return await conn.fetch_value(sql)


async def test_so_many_items_lie_in_the_inboxes_and_all_are_counted(
    database: Database, crowd: Crowd
) -> None:
    assert await value(database, "SELECT count(*) FROM notifications") == TOTAL
    for user_id, items in ((crowd.large, LARGE), (crowd.small, inboxes.SMALL)):
        async with database.read() as conn:
            selection = await select(conn, user_id, Filters())
        page = await read_page(database, user_id, selection, page=0)
        assert page["count"] == {"view": items, "unread": inboxes.UNREAD, "all": items}
    indexes = {
        "sqlite": "SELECT count(*) FROM sqlite_master WHERE tbl_name = 'notifications' "
        "AND type = 'index' AND sql IS NOT NULL",
        # In the part that has the fewest.
        "postgresql": "SELECT min(indexes) FROM (SELECT count(*) AS indexes FROM pg_inherits i "
        "LEFT JOIN pg_index x ON x.indrelid = i.inhrelid AND x.indisvalid AND NOT x.indisprimary "
        "WHERE i.inhparent = 'notifications'::regclass GROUP BY i.inhrelid) each_part",
    }
    assert await value(database, indexes[database.kind]) >= 8


async def test_every_question_fills_a_page_in_either_inbox(
    database: Database, crowd: Crowd
) -> None:
    for question in questions(crowd):
        for user_id in (crowd.large, crowd.small):
            async with database.read() as conn:
                selection = await select(conn, user_id, question.filters)
            page = await read_page(database, user_id, selection, page=question.filters.p)
            assert len(page["notifications"]) == question.items, question.name


async def test_the_bare_route_asks_what_ours_asks(database: Database, crowd: Crowd) -> None:
    asked = await recorded(database.hub.settings, database.hub.keys, crowd.small)

    assert [sql.split()[0] for sql, _ in asked] == ["WITH", "SELECT", "SELECT"]
    assert crowd.small in asked[0][1]


async def test_plans_are_shown_for_each_statement(
    database: Database, crowd: Crowd, capsys: pytest.CaptureFixture[str]
) -> None:
    async def ask(on: Any) -> None:
        async with on.read() as conn:
            await conn.fetch_all("SELECT * FROM notifications WHERE user_id = $1", crowd.large)

    await show_plans(database, engine_of(database), "a test", ask)

    printed = capsys.readouterr().out
    assert f"a test, {engine_of(database)}" in printed
    assert "SELECT * FROM notifications WHERE user_id = $1" in printed


def test_every_subject_yields_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    # One engine is enough to see that the parts fit; the engines differ above.
    for subject in (notifications, notifications_fan_out, notifications_streams):
        monkeypatch.setattr(subject, "ENGINES", ["SQLite"])
    monkeypatch.setattr(notifications_streams, "_REST_SECONDS", 0.2)
    monkeypatch.setattr(inboxes, "LARGE", LARGE)
    monkeypatch.setattr(inboxes, "QUICK_TOTAL", TOTAL)
    monkeypatch.setattr(inboxes, "TOTAL", TOTAL)
    with workbench(seconds=2, rounds=1, share=0.01) as bench:
        compared = list(notifications.measure(bench))
        told = list(notifications_fan_out.measure(bench))
        heard = list(notifications_streams.measure(bench))

    subjects = [row.subject for row in compared]
    assert len(compared) == 11 + 2 + 2
    assert subjects[0] == "inbox of 2,000: list, SQLite"
    assert subjects[-1] == "page of 25 notifications, SQLite, by processor time"
    assert [row.unit for row in told] == ["s", "ms"]
    assert [row.unit for row in heard] == ["ms", "%"]
    assert all(row.ours > 0 for row in told)
