"""Nothing is lost, and little is kept, while one end of a session is slower than the other."""

import asyncio
import hashlib
import os
from collections.abc import Iterator

import asyncssh
import httpx2
import pytest

from gateway.ssh.guests import Key, SshHarness, a_running_job, register
from hublet.gateway.records import Guest
from hublet.gateway.ssh import sessions
from hublet.gateway.ssh.job_attachment import JobAttacher, SessionRequest
from hublet.runtime.records import Attachment
from patience import SOON_SECONDS
from people import Headers

# What the hub, the client and the network between them may hold back; less than is sent.
HELD_BYTES = 6 << 20
SENT_BYTES = 24 << 20


@pytest.fixture
async def job_id(harness: SshHarness, client: httpx2.AsyncClient, ada: Headers) -> str:
    return await a_running_job(harness, client, ada)


@pytest.fixture
async def key(harness: SshHarness) -> Key:
    return await register(harness.database, "ada")


async def test_a_client_that_reads_slowly_gets_the_last_byte(
    harness: SshHarness, job_id: str, key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "_DRAIN_SECONDS", 0.5)
    async with harness.visited(job_id, key) as conn:
        # How much is on its way is nobody's business: with one of them a pipe is full at the end.
        got = await asyncio.gather(*(read_slowly(conn, rest << 15) for rest in range(2, 14)))

    assert got == [(1 << 20, 0)] * 12


async def read_slowly(conn: asyncssh.SSHClientConnection, rest: int) -> tuple[int, int | None]:
    """Return how much of a mebibyte arrives, and how it ended, when the rest is read late."""
    process = await conn.create_process("head -c 1048576 /dev/zero", encoding=None, window=65536)
    got = len(await process.stdout.readexactly((1 << 20) - rest))
    await asyncio.sleep(2)
    got += len(await process.stdout.read())
    return got, (await process.wait()).exit_status


async def test_who_holds_the_output_of_a_command_open_does_not_hold_its_end(
    harness: SshHarness, job_id: str, key: Key, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "_DRAIN_SECONDS", 0.5)
    # Without its keeper nobody ends what goes on in the background.
    script = "read line; echo on; sleep 60 & kill -9 $PPID; exit 0"
    async with harness.visited(job_id, key) as conn:
        ended = await asyncio.wait_for(conn.run(script, input="\n"), SOON_SECONDS)

    assert ended.stdout == "on\n"
    assert ended.exit_signal is not None


@pytest.fixture
def opening(monkeypatch: pytest.MonkeyPatch) -> Iterator[asyncio.Event]:
    """Nobody comes into a job before this is set."""
    may_begin = asyncio.Event()
    begin = JobAttacher.begin

    async def begin_late(self: JobAttacher, guest: Guest, request: SessionRequest) -> Attachment:
        await may_begin.wait()
        return await begin(self, guest, request)

    monkeypatch.setattr(JobAttacher, "begin", begin_late)
    yield may_begin
    may_begin.set()


async def test_what_is_sent_before_a_session_begins_waits_with_its_sender(
    harness: SshHarness, job_id: str, key: Key, opening: asyncio.Event
) -> None:
    data = os.urandom(SENT_BYTES)
    taken = 0

    async def send(process: asyncssh.SSHClientProcess[bytes]) -> None:
        nonlocal taken
        for start in range(0, SENT_BYTES, 1 << 16):
            process.stdin.write(data[start : start + (1 << 16)])
            await process.stdin.drain()
            taken = start
        process.stdin.write_eof()

    async with harness.visited(job_id, key) as conn:
        process = await conn.create_process("sha256sum", encoding=None)
        sending = asyncio.create_task(send(process))
        before = -1
        while taken != before:
            before = taken
            await asyncio.sleep(0.5)
        assert taken < HELD_BYTES

        opening.set()
        await asyncio.wait_for(sending, SOON_SECONDS)
        ended = await asyncio.wait_for(process.wait(), SOON_SECONDS)

    assert isinstance(ended.stdout, bytes)
    assert ended.stdout.split()[0].decode() == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("size", [0, 1 << 10, 1 << 19])
async def test_a_whole_input_that_comes_early_ends_as_well(
    harness: SshHarness, job_id: str, key: Key, opening: asyncio.Event, size: int
) -> None:
    async with harness.visited(job_id, key) as conn:
        process = await conn.create_process("wc -c", encoding=None)
        process.stdin.write(bytes(size))
        process.stdin.write_eof()
        await asyncio.sleep(0.3)
        opening.set()
        ended = await asyncio.wait_for(process.wait(), SOON_SECONDS)

    assert isinstance(ended.stdout, bytes)
    assert int(ended.stdout) == size
