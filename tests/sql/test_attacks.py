"""What somebody may try with a query: the child is the real one, in both of its sandboxes."""

import asyncio
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hublet.sql import child, program, sandbox
from hublet.sql.child import Frame, running
from hublet.sql.sandbox import ChildOrder, ChildView, Sandbox
from patience import SOON_SECONDS
from sql.datasets import CSV

BUBBLEWRAP = pytest.param(
    "bubblewrap",
    marks=pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed"),
)
PROCESS = pytest.param("process", marks=pytest.mark.full)
COPIES = pytest.param("copies", marks=pytest.mark.full)
DESCRIPTOR = 200

READS = [
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_blob('/proc/self/environ')",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_json('/etc/passwd')",
    "SELECT * FROM read_parquet('/etc/passwd')",
    "SELECT * FROM sniff_csv('/etc/passwd')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM '/etc/*.csv'",
    "SELECT * FROM read_text('/data/../etc/passwd')",
    "SELECT * FROM read_text('../../etc/passwd')",
    "SELECT * FROM read_text('/proc/self/fd/0')",
    "SELECT * FROM read_text('/proc/1/environ')",
    "SELECT * FROM read_text('/program/program.py')",
    "SELECT * FROM read_csv('http://127.0.0.1:1/x.csv')",
    "SELECT * FROM read_parquet('s3://bucket/x.parquet')",
    "SELECT * FROM read_parquet('hf://datasets/ada/rows/x.parquet')",
    "SELECT getenv('HOME')",
    "SELECT * FROM query('COPY (SELECT 1) TO ''/data/x''')",
    "SELECT system('id')",
    "SELECT * FROM order",
    "SELECT * FROM sys",
]
# What is no SELECT never reaches DuckDB.
STATEMENTS = [
    "COPY (SELECT 1) TO '/data/0-0.csv' (USE_TMP_FILE false)",
    "COPY train TO '/tmp/x.csv'",
    "COPY train FROM '/etc/passwd'",
    "ATTACH '/data/x.db' AS x",
    "ATTACH ':memory:' AS x",
    "SET lock_configuration = false",
    "SET enable_external_access = true",
    "RESET allowed_paths",
    "PRAGMA enable_profiling",
    "PRAGMA database_list",
    "CALL pragma_version()",
    "INSTALL httpfs",
    "LOAD httpfs",
    "EXPORT DATABASE '/tmp/x'",
    "CREATE TABLE x AS SELECT 1",
    "CREATE SECRET (TYPE http, BEARER_TOKEN 'x')",
    "SET VARIABLE x = 1",
    "INSERT INTO train VALUES (1, 'x')",
    "DROP VIEW train",
    "CHECKPOINT",
    "PIVOT train ON b",
]
# The same with the filter of statements taken away: the lock, or the machine, must hold.
WRITES = [
    "COPY (SELECT 1) TO '{path}' (USE_TMP_FILE false)",
    "COPY (SELECT 1) TO '{path}'",
    "COPY (SELECT 1) TO '/empty/x.csv'",
    "ATTACH '/empty/x.db' AS x",
    "COPY (SELECT 1) TO '/tmp/x.csv' (USE_TMP_FILE false)",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "INSTALL httpfs",
    "LOAD httpfs",
]


@pytest.fixture
def content(tmp_path: Path) -> Path:
    path = tmp_path / "blob"
    path.write_bytes(CSV)
    path.chmod(0o644)
    return path


def is_unharmed(content: Path) -> bool:
    return content.read_bytes() == CSV


def is_there(path: str) -> bool:
    return Path(path).exists()


def chosen(kind: str) -> Sandbox:
    return Sandbox(bubblewrap=shutil.which("bwrap") if kind == "bubblewrap" else None, sentence="")


def order(content: Path, sql: str, *, seconds: float = 20) -> ChildOrder:
    view = ChildView(name="train", format="csv", paths=(content,))
    return ChildOrder(
        id="a" * 24, task="query", sql=sql, views=(view,), rows=100, bytes=100_000,
        seconds=seconds, memory=512 << 20,
    )  # fmt: skip


async def frames_of(kind: str, sent: ChildOrder) -> list[Frame]:
    async with running(chosen(kind), sent) as started:
        return [frame async for frame in started.frames()]


async def refusal(kind: str, sent: ChildOrder) -> str:
    frames = await frames_of(kind, sent)
    assert [frame.kind for frame in frames] == [program.ERROR], frames
    return frames[0].data.decode()


@pytest.mark.parametrize("kind", [BUBBLEWRAP, PROCESS])
async def test_a_query_reads_its_own_files(content: Path, kind: str) -> None:
    frames = await frames_of(kind, order(content, "FROM train"))

    assert [frame.kind for frame in frames] == [program.COLUMNS, program.ROWS, program.END]


@pytest.mark.full
@pytest.mark.parametrize("sql", READS)
@pytest.mark.parametrize("kind", [BUBBLEWRAP, PROCESS])
async def test_nothing_else_is_read(content: Path, kind: str, sql: str) -> None:
    text = await refusal(kind, order(content, sql))

    assert "root:" not in text
    assert str(content) not in text


@pytest.mark.full
@pytest.mark.parametrize("sql", STATEMENTS)
async def test_only_one_select_is_run(content: Path, sql: str) -> None:
    text = await refusal("process", order(content, sql))

    assert "must be a SELECT" in text or "must be exactly one statement" in text
    assert is_unharmed(content)


async def test_two_statements_are_refused(content: Path) -> None:
    text = await refusal("process", order(content, "SELECT 1; SELECT 2"))

    assert "sql must be exactly one statement, not 2." in text


@pytest.fixture
def unfiltered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The program without its filter of statements."""
    folder = tmp_path / "program"
    folder.mkdir()
    text = Path(program.__file__).read_text()
    assert "if kind not in" in text
    (folder / "program.py").write_text(
        text.replace("if kind not in", "if kind == 'NONE' and kind in")
    )
    monkeypatch.setattr(program, "__file__", str(folder / "program.py"))
    statistics = Path(sandbox.statistics_program.__file__)
    shutil.copy(statistics, folder / statistics.name)
    sandbox.python_mounts.cache_clear()
    yield
    sandbox.python_mounts.cache_clear()


async def test_the_filter_is_really_gone_there(content: Path, unfiltered: None) -> None:
    frames = await frames_of("process", order(content, "CREATE TABLE x AS SELECT 1"))

    assert frames[-1].kind == program.END


@pytest.fixture
def known_descriptor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The child gets the file as a descriptor that the test knows."""
    real = sandbox.open_files

    def open_files(sent: ChildOrder, *, copied: bool) -> list[list[int]]:
        [[number]] = real(sent, copied=copied)
        os.dup2(number, DESCRIPTOR)
        os.close(number)
        return [[DESCRIPTOR]]

    monkeypatch.setattr(sandbox, "open_files", open_files)


@pytest.mark.full
@pytest.mark.parametrize("sql", WRITES)
@pytest.mark.parametrize("kind", [BUBBLEWRAP, PROCESS, COPIES])
async def test_without_the_filter_the_machine_keeps_content_unharmed(
    content: Path,
    unfiltered: None,
    known_descriptor: None,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    sql: str,
) -> None:
    if kind == "copies":
        monkeypatch.setattr(os, "geteuid", lambda: 1)
    path = "/data/0-0.csv" if kind == "bubblewrap" else f"/proc/self/fd/{DESCRIPTOR}"

    frames = await frames_of(kind, order(content, sql.format(path=path)))

    assert frames[-1].kind == program.ERROR, frames
    assert is_unharmed(content)
    assert not is_there("/tmp/x.csv")


@pytest.mark.full
@pytest.mark.parametrize("kind", [BUBBLEWRAP, PROCESS])
async def test_a_link_beside_the_content_leads_nowhere(content: Path, kind: str) -> None:
    content.with_name("link").symlink_to("/etc/passwd")

    await refusal(kind, order(content, f"SELECT * FROM read_text('{content.with_name('link')}')"))


@pytest.mark.full
@pytest.mark.parametrize("kind", [BUBBLEWRAP, PROCESS])
@pytest.mark.parametrize(
    "sql",
    ["SELECT length(repeat('x', 2000000000))", "SELECT length(repeat('x', 4000000000)) FROM train"],
)
async def test_a_string_beyond_the_memory_is_refused(content: Path, kind: str, sql: str) -> None:
    assert '"memory"' in await refusal(kind, order(content, sql))


ENDLESS = "WITH RECURSIVE r(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM r) SELECT max(a) FROM r"


@pytest.mark.full
@pytest.mark.parametrize("kind", [BUBBLEWRAP, PROCESS])
async def test_an_endless_recursion_is_interrupted_at_the_deadline(
    content: Path, kind: str
) -> None:
    assert '"deadline"' in await refusal(kind, order(content, ENDLESS, seconds=3))


@pytest.mark.full
@pytest.mark.parametrize("kind", [BUBBLEWRAP, PROCESS])
async def test_what_cannot_be_interrupted_is_killed(
    content: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "GRACE_SECONDS", -2.5)
    sent = order(content, ENDLESS, seconds=5)

    async with running(chosen(kind), sent) as started:
        frames = [frame async for frame in started.frames()]

    assert frames == []
    assert (started.was_killed, started.exit_signal) == (True, 9)


@pytest.mark.parametrize("kind", [BUBBLEWRAP])
async def test_whoever_ends_the_child_ends_all_that_it_has_started(
    content: Path, kind: str
) -> None:
    async with running(chosen(kind), order(content, ENDLESS, seconds=60)) as started:
        while not (below := _children(started.pid)):
            await asyncio.sleep(0.005)
        groups = {os.getpgid(int(pid)) for pid in below}
        started.kill()
        await asyncio.wait_for(started.ended(), SOON_SECONDS)

    # bubblewrap ties what it starts to its own end late, so they are of one group.
    assert groups == {started.pid}


@pytest.mark.full
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a process of another user")
@pytest.mark.parametrize("kind", [BUBBLEWRAP, PROCESS])
async def test_the_child_is_nobody_on_this_machine(content: Path, kind: str) -> None:
    async with running(chosen(kind), order(content, ENDLESS, seconds=4)) as started:
        users = await _users_below(started.pid)

    assert 0 not in users, users


async def _users_below(pid: int) -> set[int]:
    """Wait until the process and all below it have given up root; return their users."""
    end = time.monotonic() + 3
    users = {0}
    while 0 in users and time.monotonic() < end:
        await asyncio.sleep(0.05)
        users = _users([str(pid), *_children(pid)])
    return users


def _users(pids: list[str]) -> set[int]:
    places = [Path("/proc", pid) for pid in pids]
    return {place.stat().st_uid for place in places if place.exists()}


def _children(pid: int) -> list[str]:
    try:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [*found, *(inner for each in found for inner in _children(int(each)))]


@pytest.mark.full
@pytest.mark.parametrize("kind", [BUBBLEWRAP, PROCESS])
async def test_settings_tell_nothing_of_the_machine(content: Path, kind: str) -> None:
    sql = "SELECT string_agg(value, ' ') FROM duckdb_settings()"

    frames = await frames_of(kind, order(content, sql))

    assert str(content.parent) not in frames[1].data.decode()
    assert "/root" not in frames[1].data.decode()
